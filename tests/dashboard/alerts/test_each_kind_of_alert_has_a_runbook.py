"""Each kind of alert has steps that are useful unedited: imperative titles, one sentence, and
commands that exist with their values quoted."""

from __future__ import annotations

import shlex

import pytest
from compilewatch.cli.main import _parser

from dashboard.alerts.runbook_steps import (
    KINDS,
    RunbookFacts,
    RunbookStep,
    build_runbook_steps,
    choose_runbook_kind,
)
from dashboard.vocabulary.metrics import METRICS

HOSTILE = "rank'er; rm -rf / #"
PROGRAMS = ("kubectl", "compilewatch", "py-spy", "ssh", "nvidia-smi", "scontrol", "export")


def facts(**given: object) -> RunbookFacts:
    known: dict[str, object] = {
        "model": "ranker", "version": "3", "baseline": "2", "roll_back": True, "host": "gpu-1",
        "pid": 41, "rank": 2, "job": "99120", "frame": "step (train.py:8)",
    }  # fmt: skip
    return RunbookFacts(**(known | given))  # type: ignore[arg-type]


def commands(steps: list[RunbookStep]) -> list[str]:
    return [step.command for step in steps if step.command]


@pytest.mark.parametrize("kind", KINDS)
def test_the_steps_are_complete_without_any_setting(kind: str) -> None:
    steps = build_runbook_steps(kind, facts())
    assert 4 <= len(steps) <= 8 and commands(steps)
    for step in steps:
        assert step.title[0].isupper() and step.text.endswith("."), step
        assert "\n" not in step.command
    bare = RunbookFacts(model="ranker", version="3")
    assert len(build_runbook_steps(kind, bare)) >= 4


@pytest.mark.parametrize("kind", KINDS)
def test_each_command_runs_a_known_program_and_quotes_names(kind: str) -> None:
    for command in commands(build_runbook_steps(kind, facts(model=HOSTILE, host=HOSTILE))):
        if command.startswith("torch."):
            compile(command, "step", "exec")
            continue
        words = shlex.split(command)
        assert words[0] in PROGRAMS, command
        assert "rm" not in words, command


@pytest.mark.parametrize("kind", KINDS)
def test_each_command_of_compilewatch_exists(kind: str) -> None:
    for command in commands(build_runbook_steps(kind, facts())):
        words = shlex.split(command)
        if words[0] == "compilewatch":
            assert _parser().parse_args(words[1:]).command


def test_the_text_of_the_owners_comes_first() -> None:
    for kind in KINDS:
        steps = build_runbook_steps(kind, facts(written="argo undo", address="https://wiki/x"))
        first = steps[0]
        if kind == "silence":
            assert not any(step.written for step in steps)
            continue
        assert (first.written, first.address, first.command) == ("argo undo", "https://wiki/x", "")
        assert len([step for step in steps if step.written]) == 1
        # A page of the owners alone does not replace the command.
        linked = build_runbook_steps(kind, facts(address="https://wiki/x"))[0]
        assert linked.address and bool(linked.command) == (kind != "ranks")


def test_a_watch_alert_begins_with_the_evidence() -> None:
    first = build_runbook_steps("slower", facts(roll_back=False))[0]
    assert (first.title, first.page) == ("Review the evidence", "compare")
    alone = build_runbook_steps("slower", facts(roll_back=False, baseline=""))[0]
    assert (alone.text, alone.page) == ("3 has no baseline version.", "model")


def test_a_detected_rollback_marks_its_steps_as_done() -> None:
    steps = build_runbook_steps("slower", facts(rolled_back=True, recovery="level_back"))
    assert [step.done for step in steps] == [True, True, True, False]


def test_each_metric_and_fact_has_a_kind() -> None:
    kinds = {key: choose_runbook_kind([key]) for key in METRICS}
    assert kinds["p99"] == "slower" and kinds["leak"] == "memory" and kinds["parity"] == "parity"
    assert kinds["latched_eager"] == "eager" and kinds["cold_start"] == "cold_start"
    assert set(kinds.values()) == set(KINDS) - {"silence"}
    assert choose_runbook_kind([]) == "slower"


def test_a_rank_runbook_names_the_process_and_the_job() -> None:
    said = commands(build_runbook_steps("ranks", facts()))
    assert "ssh gpu-1 py-spy dump --native --pid 41" in said
    assert "scontrol requeue 99120" in said
    assert "torch._dynamo.mark_dynamic(tokens, 1)" in said
    other = commands(
        build_runbook_steps("ranks", facts(job="run-0411", fix="torch._dynamo.mark_dynamic(x, 0)"))
    )
    assert not any("scontrol" in one for one in other)
    assert "torch._dynamo.mark_dynamic(x, 0)" in other
