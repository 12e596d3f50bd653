"""Settings of a test run, set before Django reads them; COMPILEWATCH_TEST_DATABASE selects sqlite
(default) or postgresql."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from tests.flow.database_templates import shared_folder
from tests.long_forms import find_marker
from tests.machine import need

DATA = Path(tempfile.mkdtemp(prefix="compilewatch-test-"))
OWNER = os.getpid()
DATABASE = os.environ.get("COMPILEWATCH_TEST_DATABASE", "sqlite")
QUICK_INDUCTOR = {"TORCHINDUCTOR_COMPILE_THREADS": "1", "TORCHINDUCTOR_VEC_ISA_OK": "1"}
"""Settings that do not change the compiled code: one saves a pool of workers, the other a process
that tests vector instructions."""
LONG_FORMS = {
    "full_only": "FAULTS",
    "frameworks_only": "FRAMEWORKS",
    "engines_only": "ENGINES",
    "pages_only": "PAGES",
}
"""By marker: which COMPILEWATCH_TEST_... variable, set to `full`, runs these tests."""
LONG_FIRST = [
    Path(__file__).parent / folder
    for folder in ("faults", "agent/ground_truth", "hostile", "flow", "demo")
]
DASHBOARD = Path(__file__).parent / "dashboard"
PAGES = [DASHBOARD / folder for folder in ("access", "accounts", "serving", "ui")]
PAGES_ON_POSTGRESQL = {
    DASHBOARD / f"{name}.py"
    for name in (
        "access/test_foreign_parameters_break_no_page",
        "accounts/test_people_sign_in_safely",
        "accounts/test_anonymous_requests_leave_no_rows",
        "accounts/test_the_record_is_only_added_to",
        "accounts/test_the_way_back_is_open_to_its_own_browser_once",
        "ui/test_a_page_without_its_database_shows_an_error",
        "ui/test_a_quantile_below_the_first_bucket_is_a_bound",
        "ui/test_a_spreadsheet_runs_no_cell",
        "ui/test_alerts_are_sorted_by_their_address",
        "ui/test_alerts_that_belong_together_are_shown_so",
        "ui/test_an_engine_without_an_agent_shows_gaps",
        "ui/test_a_cache_shows_its_misses_with_reasons",
        "ui/test_the_compare_page_shows_all_known_metrics",
        "ui/test_findings_are_shown_over_time",
        "ui/test_findings_have_pages_of_their_own",
        "ui/test_forty_hostile_strings_stay_text",
        "ui/test_half_a_fleet_of_older_agents_makes_no_false_claim",
        "ui/test_instances_have_pages_of_their_own",
        "ui/test_missed_caches_are_added_up_over_all_models",
        "ui/test_model_page_shows_how_versions_compare",
        "ui/test_the_tabs_show_stages_and_memory",
        "ui/test_pages_ask_a_fixed_number_of_questions",
        "ui/test_pages_stay_light_and_whole_with_odd_data",
        "ui/test_ranks_of_a_job_are_shown_in_one_table",
        "ui/test_settings_are_tried_on_the_last_days",
        "ui/test_settings_of_keys_data_and_audit",
        "ui/test_tables_are_sorted_and_paged_by_their_address",
        "ui/test_tables_are_there_as_json_and_csv",
        "ui/test_the_alerts_are_graded_by_what_became_of_them",
        "ui/test_the_fleet_page_shows_the_trend",
        "ui/test_the_fleet_page_shows_problems_with_their_place",
        "ui/test_the_health_page_shows_the_state_of_the_pipeline",
        "ui/test_the_model_page_shows_the_trend",
        "ui/test_the_search_finds_what_a_project_has",
        "ui/test_the_table_of_versions_is_sorted_and_paged",
        "ui/test_the_startup_tab_shows_starts_and_payback",
        "ui/test_the_compiles_tab_compares_kernels",
        "ui/test_foreign_text_stays_text",
        "ui/test_the_version_that_loaded_a_miss_is_named",
    )
}
"""Test files of pages that `make test` runs on PostgreSQL too: they call every selector, every page
and every kind of bad input. `make pages` runs the other files there."""

for name in [
    name
    for name in os.environ
    if name.startswith("COMPILEWATCH_") and not name.startswith("COMPILEWATCH_TEST_")
]:
    del os.environ[name]

os.environ["COMPILEWATCH_DATA"] = str(DATA)
shared_folder()  # before the processes of a parallel run start
os.environ.setdefault("PLAYWRIGHT_BROWSERS_PATH", str(Path.home() / ".cache" / "ms-playwright"))
# Agents keep their user data in the run's folder, in every process that a test starts.
os.environ["XDG_CACHE_HOME"] = str(DATA / "cache")
os.environ.update(QUICK_INDUCTOR | dict(os.environ))
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


def is_full(name: str) -> bool:
    """True if the environment asks for the tests of this long form."""
    return os.environ.get(f"COMPILEWATCH_TEST_{name}") == "full"


def asks_no_database(item: pytest.Item) -> bool:
    """True for a dashboard test without a database fixture: pytest-django refuses its queries, so
    both databases give the same result."""
    asked = {"db", "transactional_db", "live_server", "django_db_setup"}.intersection(
        getattr(item, "fixturenames", ())
    )
    return (
        not asked
        and item.get_closest_marker("django_db") is None
        and item.path.is_relative_to(DASHBOARD)
    )


def runs_here(path: Path) -> bool:
    """True if a test file runs on PostgreSQL: not if it reads a page whose queries another file
    sends."""
    is_page = any(map(path.is_relative_to, PAGES))
    return is_full("PAGES") or not is_page or path in PAGES_ON_POSTGRESQL


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects tests of the other database or of full runs. A skip would look like a missing
    part."""
    for item in items:
        if marker := find_marker(item.nodeid):
            item.add_marker(marker)
    left_out = {"sqlite_only"} if DATABASE == "postgresql" else {"postgresql_only"}
    left_out |= {marker for marker, name in LONG_FORMS.items() if not is_full(name)}
    mine = [item for item in items if not left_out & {mark.name for mark in item.iter_markers()}]
    if DATABASE == "postgresql":
        mine = [item for item in mine if not asks_no_database(item) and runs_here(item.path)]
        for item in mine:
            item.add_marker(pytest.mark.needs("PostgreSQL"))
    if len(mine) < len(items):
        kept = set(map(id, mine))
        config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    # If a long file comes last, all other processes are idle.
    items[:] = sorted(mine, key=lambda item: not any(map(item.path.is_relative_to, LONG_FIRST)))
