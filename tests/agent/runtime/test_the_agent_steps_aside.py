"""Faults inside the agent are counted and never raised; after twenty faults the agent switches
itself off and states this in its last report."""

from __future__ import annotations

from collections.abc import Callable

import compilewatch
import pytest
from compilewatch import agent
from compilewatch.recording.recorder import RECORDER
from compilewatch.runtime.fault_barrier import FaultBarrier
from compilewatch.sources import Source
from compilewatch.sources.registry import InstalledSources

from tests.agent.server import Dashboard


def job() -> int:
    """The job's function."""
    return 7


def test_twenty_faults_switch_the_agent_off(
    dashboard: Dashboard, start: Callable[..., None]
) -> None:
    start()
    call = compilewatch.watch(job, name="forward")
    call()
    for number in range(20):
        RECORDER.record_internal_error(ValueError(number))
    assert RECORDER.buffers is None
    assert call() == 7
    dashboard.wait(
        lambda it: any(
            fact.data.get("name") == "agent switched itself off"
            for r in it.reports()
            for fact in r.facts
        )
    )
    last = dashboard.reports()[-1]
    assert last.losses.internal_errors == 20
    assert dashboard.calls("forward") == 1


def test_a_job_that_recurses_too_deep_leaves_the_agent_on(window: Callable[[], object]) -> None:
    for _ in range(40):
        RECORDER.record_internal_error(RecursionError("maximum recursion depth exceeded"))
    assert (RECORDER.internal_error_count, RECORDER.buffers is not None) == (40, True)
    for number in range(20):
        RECORDER.record_internal_error(ValueError(number))
    assert RECORDER.buffers is None


def test_a_guard_swallows_exceptions_and_nothing_else() -> None:
    before = RECORDER.internal_error_count
    with FaultBarrier(RECORDER.record_internal_error):
        raise MemoryError
    assert RECORDER.internal_error_count == before + 1
    for passing in (KeyboardInterrupt, SystemExit):
        with pytest.raises(passing), FaultBarrier(RECORDER.record_internal_error):
            raise passing
    RECORDER.internal_error_count = 0


def test_a_source_that_fails_is_named_and_the_others_continue(window: Callable[[], object]) -> None:
    sources = InstalledSources(RECORDER)
    sources.install(
        (("no_such_source:Nothing", "nothing", ""), ("host.memory:Memory", "memory", ""))
    )
    sources.install_unbound()
    found = sources.capabilities()
    sources.uninstall()
    assert found["nothing"][0] == "no" and "ModuleNotFoundError" in found["nothing"][1]
    assert found["memory"][0] in ("yes", "partly")
    assert RECORDER.internal_error_count == 1


def test_a_source_that_raises_while_it_is_polled_is_counted(
    window: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(Source):
        name, module = "broken", ""

        def install(self, recorder: object) -> tuple[str, str]:
            return "yes", ""

        def poll(self, recorder: object) -> None:
            raise OSError

        def uninstall(self) -> None:
            raise OSError

    monkeypatch.setattr("compilewatch.sources.registry.load", lambda listed: Broken())
    sources = InstalledSources(RECORDER)
    sources.install((("broken:Broken", "broken", "json"),))
    sources.poll()
    sources.uninstall()
    assert RECORDER.internal_error_count == 2


def test_an_object_that_cannot_be_watched_is_returned_unchanged(
    window: Callable[[], object], capfd: pytest.CaptureFixture[str]
) -> None:
    for odd in (3, "text", dict):
        assert compilewatch.watch(odd) is odd  # type: ignore[type-var]
    assert capfd.readouterr().err.count("watch() takes a function or a module") == 3


def test_starting_fails_quietly_without_a_thread(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refused(self: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", refused)
    assert agent.init(model="m", endpoint="file:/dev/null") is False
    assert (
        capfd.readouterr().err
        == "compilewatch: off: the agent failed to start (RuntimeError: can't start new thread)\n"
    )
    assert RECORDER.buffers is None
    assert agent.AGENT.sources.capabilities() == {}  # nothing stays bound to torch
