"""The origin of a cache miss: the first process that differs from the warm process, or none if the
origin is unknown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from compilewatch.wire.cache_miss_causes import ONLY_AOT_PREFIX, OTHER_SIZES, THREAD_COUNT

from dashboard.fleet.selectors.compilations.compilations import ProcessCacheAnswers
from dashboard.fleet.selectors.instances.cold_starts import ProcessStart
from dashboard.ui.pages.compiles.cache_misses import misses_card

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
FREEZING = "env TORCHINDUCTOR_FREEZING"


def process(number: int, version: int, **components: str) -> ProcessStart:
    named = {FREEZING if name == "freezing" else name: value for name, value in components.items()}
    at = NOW + timedelta(minutes=number)
    return ProcessStart(
        number,
        f"host-{number} / rank 0",
        f"host-{number}",
        version,
        str(version),
        "production",
        "",
        0,
        1,
        at,
        0,
        False,
        None,
        named,
    )


def answers(number: int, miss: str = "") -> ProcessCacheAnswers:
    return ProcessCacheAnswers(
        number, "key", miss, 1, 0 if miss else 1, 1 if miss else 0, 4.0, 4.0 if miss else 0.0
    )


def find_origin(miss: str, *processes: ProcessStart) -> str:
    """The origin of the miss of the last process. The first process was warm, and the others
    missed."""
    said = [answers(one.id, miss if one is not processes[0] else "") for one in processes]
    (row,) = misses_card(processes[-1:], processes[::-1], said).rows
    return row.newest.brought


@pytest.mark.parametrize("before", ["", ONLY_AOT_PREFIX])
def test_the_origin_is_the_first_process_with_the_new_value(before: str) -> None:
    chain = (process(1, 1, freezing="a"), process(2, 2, freezing="b"), process(3, 2, freezing="b"))
    assert find_origin(before + FREEZING, *chain) == "2 on host-2"


def test_the_origin_of_a_removed_variable_is_the_first_process_without_it() -> None:
    assert (
        find_origin(FREEZING, process(1, 1, freezing="a"), process(2, 2), process(3, 2))
        == "2 on host-2"
    )


def test_the_first_of_several_options_determines_the_origin() -> None:
    name = {"inductor_config freezing": "a"}
    assert (
        find_origin("inductor_config: freezing and 2 more", process(1, 1), process(2, 2, **name))
        == "2 on host-2"
    )


@pytest.mark.parametrize(
    "cause", ["default_dtype", "inductor_config: freezing", "how it is compiled: cpp_wrapper"]
)
def test_the_origin_of_a_cause_without_a_component_is_the_version(cause: str) -> None:
    assert find_origin(cause, process(1, 1), process(2, 2)) == "2, after 1"
    assert find_origin(cause, process(1, 1), process(2, 1)) == ""


@pytest.mark.parametrize("cause", [THREAD_COUNT, OTHER_SIZES])
def test_a_cause_in_the_host_or_the_traffic_has_no_origin(cause: str) -> None:
    assert find_origin(cause, process(1, 1), process(2, 2)) == ""
