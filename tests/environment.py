"""Settings of a test run, put in place before Django reads them; COMPILEWATCH_TEST_DATABASE picks
sqlite (default) or postgresql."""

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
# What agents keep for their user goes to the run's own folder, in every process that a test starts.
os.environ["XDG_CACHE_HOME"] = str(DATA / "cache")
# Neither changes what inductor compiles: one saves a pool of workers, the other a process that
# tries out vector instructions.
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
    """Removes what the run wrote; a forked child leaves it to its parent."""
    if os.getpid() == OWNER:
        shutil.rmtree(DATA, ignore_errors=True)


# A slow machine is not a failing test.
settings.register_profile("compilewatch", deadline=None)
settings.load_profile("compilewatch")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leaves a test that says which part of the machine it needs, where that part is missing."""
    for marker in item.iter_markers("needs"):
        need(*marker.args)


def asks_no_database(item: pytest.Item) -> bool:
    """True for a dashboard test without a database fixture: pytest-django refuses its queries, so
    both databases give the same answer."""
    asked = {"db", "transactional_db", "live_server", "django_db_setup"}.intersection(
        getattr(item, "fixturenames", ())
    )
    return (
        not asked
        and item.get_closest_marker("django_db") is None
        and item.path.is_relative_to(PURE_IN)
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out, without a skip that would look like something missing, what is for the other
    database or for full runs."""
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
    # A long file that comes last leaves every process but its own without work.
    items[:] = sorted(mine, key=lambda item: not any(map(item.path.is_relative_to, LONG_FIRST)))
