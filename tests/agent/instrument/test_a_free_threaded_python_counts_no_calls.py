"""Without the interpreter's lock calls are not counted, the job runs unchanged, and the report
names the missing calls.

No free-threaded interpreter is needed: Python answers the question by `sys._is_gil_enabled`, which
the tests replace."""

from __future__ import annotations

import sys
from collections.abc import Callable

import compilewatch
import pytest
from compilewatch.recording.recorder import RECORDER
from compilewatch.runtime.interpreters import is_gil_enabled

from tests.agent.conftest import the_instance


@pytest.fixture
def free_threaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)


def answer() -> int:
    return 7


def capabilities() -> dict[str, tuple[str, str]]:
    instance = the_instance()
    instance._update_identity()
    return instance.identity.capabilities


def test_calls_and_regions_are_not_changed(
    free_threaded: None, start: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    start(interval=200)
    assert compilewatch.watch(answer) is answer
    with compilewatch.region("block"):
        assert answer() == 7
    assert RECORDER.rotate(1, 0.0, 1.0).regions == []
    assert "PYTHON_GIL=1" in capsys.readouterr().err


def test_the_report_names_the_missing_calls(
    free_threaded: None, start: Callable[..., None]
) -> None:
    start(interval=200)
    assert capabilities()["calls"][0] == "partly"


@pytest.mark.parametrize(
    "enabled", [lambda: True, None], ids=["a free-threaded build with its lock on", "a usual build"]
)
def test_calls_are_counted_while_the_lock_is_on(
    monkeypatch: pytest.MonkeyPatch, start: Callable[..., None], enabled: Callable[[], bool] | None
) -> None:
    if enabled is None:
        monkeypatch.delattr(sys, "_is_gil_enabled", raising=False)
    else:
        monkeypatch.setattr(sys, "_is_gil_enabled", enabled, raising=False)
    assert is_gil_enabled()
    start(interval=200)
    compilewatch.watch(answer, name="forward")()
    assert [region.calls for region in RECORDER.rotate(1, 0.0, 1.0).regions] == [1]
    assert "calls" not in capabilities()
