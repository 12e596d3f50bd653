"""If torch was imported before the agent starts, the agent's thread installs the sources; an
earlier compilation installs them first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch._dynamo.utils as utils
from compilewatch.recording.recorder import RECORDER
from compilewatch.sources.registry import InstalledSources


@pytest.fixture
def late() -> Iterator[InstalledSources]:
    """The state that `init` leaves before the agent's thread has run."""
    torch._dynamo.reset()
    RECORDER.start()
    sources = InstalledSources(RECORDER)
    sources.install(late=True)
    yield sources
    sources.uninstall()
    RECORDER.stop()


def test_a_compilation_before_the_thread_ran_is_reported_with_its_start_and_phases(
    late: InstalledSources,
) -> None:
    assert late.capabilities()["compilations"][0] == "no"
    assert torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2)).tolist() == [2.0, 2.0]
    assert late.capabilities()["compilations"] == ("yes", "")
    report = RECORDER.rotate(1, 0.0, 1.0)
    (event,) = report.compiles
    assert (event.kind, event.outcome, event.frame) == ("first", "ok", "<lambda>")
    assert {"dynamo", "guards"} <= set(event.seconds)
    assert RECORDER.internal_error_count == 0


def test_the_temporary_hook_is_removed(late: InstalledSources) -> None:
    event = utils.record_chromium_event_internal
    late.install_unbound()
    assert utils.record_chromium_event_internal is not event
    late.uninstall()
    assert not hasattr(utils.record_chromium_event_internal, "__wrapped__")
    event({"name": "a caller that kept the temporary hook", "ph": "i", "ts": 0.0})


def test_a_wrapper_bound_meanwhile_keeps_working_and_is_called_once(
    late: InstalledSources, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    inner = utils.record_chromium_event_internal

    def theirs(event: dict[str, str]) -> None:
        heard.append(event["name"])
        inner(event)

    monkeypatch.setattr(utils, "record_chromium_event_internal", theirs)
    utils.record_chromium_event_internal({"name": "one", "ph": "i", "ts": 0.0})
    assert late.capabilities()["compilations"][0] == "yes"
    utils.record_chromium_event_internal({"name": "two", "ph": "i", "ts": 0.0})
    assert heard == ["one", "two"]
    monkeypatch.undo()
    utils.record_chromium_event_internal = (
        inner.__wrapped__
    )  # the function of torch, for the tests that follow
