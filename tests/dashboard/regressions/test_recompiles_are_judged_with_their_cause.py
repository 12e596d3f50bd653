"""Recompiles without a guard are evaluated like all others, and the verdict, its evidence and the
pages name their cause."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from compilewatch.wire.messages import REASON_KINDS, Compile, Report
from django.test import Client

from dashboard.alerts.evidence_lines import select_strongest_evidence
from dashboard.demo.simulated_fleet import SimulatedInstance
from dashboard.fleet.metrics.recompile_reasons import REASONS, REPEAT_REASONS, summarize_reason
from dashboard.projects.models import Project
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.models import Verdict
from dashboard.ui.charts.evidence_table import build_evidence_rows
from tests.dashboard.regressions.test_certain_facts_ask_for_watch_at_most import healthy
from tests.dashboard.ui.version_story import HIT, Story, compiled, part, shown, url_of

NEW = "2026.11.3"
ERROR = "RuntimeError: No space left on device"
CAUSES = {
    "reset": "`forward` recompiles after torch._dynamo.reset()",
    "new code object": "`forward` recompiles as a new code object",
    "failed again": "`forward` recompiles at each call "
    "because the compilation fails (error: "
    f"{ERROR})",
    "guard": "`forward` recompiles (guard: x.size(0) == 8)",
}
TEXTS = {"failed again": ERROR, "guard": "x.size(0) == 8\nx.size(0) == 4"}


def recompile(one: SimulatedInstance, kind: str) -> None:
    """Compiles the same function again in each window."""
    plain = one.report

    def changed(*, seq: int, start: float, end: float) -> Report:
        report = plain(seq=seq, start=start, end=end)
        outcome = "suppressed" if kind == "failed again" else "ok"
        again = Compile(
            start + 1,
            f"0/{seq}",
            "recompile",
            outcome,
            frame="forward",
            file="m.py",
            line=4,
            seconds={"total": 0.2},
        )
        again.reason, again.reason_kind = TEXTS.get(kind, ""), kind
        report.compiles.append(again)
        return report

    one.report = changed  # type: ignore[method-assign]


@pytest.mark.django_db
@pytest.mark.parametrize("kind", CAUSES)
def test_the_verdict_names_the_cause_of_recompiles(
    side_by_side: list[SimulatedInstance], send: Callable[..., None], kind: str
) -> None:
    healthy(side_by_side)
    for one in side_by_side:
        if one.identity.version == NEW:
            recompile(one, kind)
        send(one)
    deployments_judge()
    verdict = Verdict.objects.get(current=True, deployment__version__name=NEW)
    assert (verdict.kind, verdict.cause) == ("watch", CAUSES[kind])
    assert f"; {CAUSES[kind]}; not a reason to roll back on its own." in verdict.sentence
    (row,) = [
        row
        for row in build_evidence_rows(verdict.evidence, verdict="watch")
        if row.key == "recompiles"
    ]
    assert row.label == "REGRESSED" and row.causes.startswith(f"{kind} ")
    line = next(
        line
        for line in select_strongest_evidence(verdict.evidence)
        if line["metric"] == "recompiles"
    )
    assert line["causes"][kind] > 60 and f"{kind} " in line["text"]


def test_every_kind_of_reason_has_a_text_and_those_without_a_guard_a_remedy() -> None:
    assert set(REASONS) == set(REASON_KINDS)
    assert all(reason.remedy for reason in REPEAT_REASONS.values())
    assert (
        summarize_reason("reset", "") == "After a reset"
        and summarize_reason("guard", "a == 1\nb == 2") == "a == 1"
    )


@pytest.mark.django_db
def test_the_tab_names_the_causes_in_the_list_of_compilations_and_per_frame(
    store_reports: Callable[..., object], signed_in: Client, project: Project
) -> None:
    story = Story(store_reports)
    first = compiled(0, 5.0, HIT)
    events = [
        first,
        *(compiled(0, 1.0, HIT, kind="recompile", reason_kind=kind) for kind in REPEAT_REASONS),
    ]
    story.start("1", ago=29, timed=events)
    story.fold()
    text = shown(signed_in, project, "1", "?compilations=all")
    rows = part(text, "longest")
    for kind, reason in REPEAT_REASONS.items():
        assert f'recompile <span class="tag line">{reason.name.lower()}</span>' in rows
        assert reason.remedy in rows
        assert kind in signed_in.get(url_of(project, "1", ".csv")).content.decode()
    assert "After a reset" in part(text, "frames"), "what varies"
