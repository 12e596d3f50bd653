"""`init` may be called again: with the same settings the instance continues, with other settings
another instance begins."""

from __future__ import annotations

from collections.abc import Callable

import compilewatch
import pytest
from compilewatch.recording.recorder import RECORDER

from tests.agent.conftest import the_instance


@pytest.fixture
def call(start: Callable[..., None]) -> Callable[[], int]:
    start(interval=200)
    return compilewatch.watch(lambda: 7, name="forward")


def test_a_cell_that_is_run_again_starts_no_other_instance(
    start: Callable[..., None], call: Callable[[], int]
) -> None:
    before = the_instance().identity.id
    call()
    RECORDER.record_eager_fallback("f", "limit")
    start(interval=200)
    call()
    assert the_instance().identity.id == before
    report = RECORDER.rotate(1, 0.0, 1.0)
    assert ([region.calls for region in report.regions], report.gauges.degraded_frames) == ([2], 1)


def test_other_settings_start_another_instance(
    start: Callable[..., None], call: Callable[[], int]
) -> None:
    before = the_instance().identity.id
    start(interval=200, version="2")
    assert the_instance().identity.id != before


def test_after_the_end_of_an_instance_the_next_one_starts(
    start: Callable[..., None], call: Callable[[], int]
) -> None:
    before = the_instance().identity.id
    compilewatch.shutdown()
    start(interval=200)
    assert the_instance().identity.id != before
