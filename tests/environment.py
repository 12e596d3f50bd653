"""Settings of a test run, set before Django reads them; COMPILEWATCH_TEST_DATABASE selects sqlite
(default) or postgresql."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from tests.machine import need

DATA = Path(tempfile.mkdtemp(prefix="compilewatch-test-"))
OWNER = os.getpid()
DATABASE = os.environ.get("COMPILEWATCH_TEST_DATABASE", "sqlite")
LONG_FIRST = [
    Path(__file__).parent / folder
    for folder in ("faults", "agent/ground_truth", "hostile", "flow", "demo")
]
PURE_IN = Path(__file__).parent / "dashboard"

for name in [
    name
    for name in os.environ
    if name.startswith("COMPILEWATCH_") and not name.startswith("COMPILEWATCH_TEST_")
]:
    del os.environ[name]

os.environ["COMPILEWATCH_DATA"] = str(DATA)
os.environ.setdefault("PLAYWRIGHT_BROWSERS_PATH", str(Path.home() / ".cache" / "ms-playwright"))
# Agents keep their user data in the run's folder, in every process that a test starts.
os.environ["XDG_CACHE_HOME"] = str(DATA / "cache")
# Neither variable changes the output of inductor: one saves a worker pool, the other a process that
# tests vector instructions.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")
if DATABASE == "postgresql":
    user, host, port = (
        os.environ.get("PGUSER", "postgres"),
        os.environ.get("PGHOST", "127.0.0.1"),
        os.environ.get("PGPORT", "5432"),
    )
    os.environ["COMPILEWATCH_DATABASE_URL"] = (
        f"postgresql://{user}@{host}:{port}/compilewatch_{os.getpid()}"
    )


@atexit.register
def data_remove() -> None:
    """Removes the data of the run; a forked child leaves the removal to its parent."""
    if os.getpid() == OWNER:
        shutil.rmtree(DATA, ignore_errors=True)


# A slow machine is not a failing test.
settings.register_profile("compilewatch", deadline=None)
settings.load_profile("compilewatch")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips a test whose required part of the machine is missing."""
    for marker in item.iter_markers("needs"):
        need(*marker.args)


def asks_no_database(item: pytest.Item) -> bool:
    """True for a dashboard test without a database fixture: pytest-django refuses its queries, so
    both databases give the same result."""
    asked = {"db", "transactional_db", "live_server", "django_db_setup"}.intersection(
        getattr(item, "fixturenames", ())
    )
    return (
        not asked
        and item.get_closest_marker("django_db") is None
        and item.path.is_relative_to(PURE_IN)
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects tests of the other database or of full runs. A skip would look like a missing
    part."""
    left_out = {"sqlite_only"} if DATABASE == "postgresql" else {"postgresql_only"}
    if os.environ.get("COMPILEWATCH_TEST_FAULTS") != "full":
        left_out.add("full_only")
    if os.environ.get("COMPILEWATCH_TEST_FRAMEWORKS") != "full":
        left_out.add("frameworks_only")
    mine = [item for item in items if not left_out & {mark.name for mark in item.iter_markers()}]
    if DATABASE == "postgresql":
        mine = [item for item in mine if not asks_no_database(item)]
        for item in mine:
            item.add_marker(pytest.mark.needs("PostgreSQL"))
    if len(mine) < len(items):
        kept = set(map(id, mine))
        config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    # If a long file comes last, all other processes are idle.
    items[:] = sorted(mine, key=lambda item: not any(map(item.path.is_relative_to, LONG_FIRST)))
