"""Answer of the Overview: the facts of its verdict, or the next step that leads to a verdict."""

from __future__ import annotations

from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.versions.current_traffic import CurrentTraffic
from dashboard.regressions.evidence_reader import read_changes, read_next_step
from dashboard.regressions.judge.text.steps import next_step_phrase
from dashboard.regressions.models import Verdict, VerdictKind
from dashboard.regressions.stored_evidence import Change
from dashboard.ui.layout.answer import (
    AnswerFact,
    JobRanks,
    build_answer,
    build_impact,
    build_since,
)
from dashboard.vocabulary import numbers
from dashboard.vocabulary.severity import ALERTING_VERDICTS


def build_overview_answer(
    verdict: Verdict,
    deployment: Deployment,
    traffic: CurrentTraffic,
    ranks: JobRanks | None,
    *,
    live: bool,
    alone: bool,
) -> list[AnswerFact]:
    """The facts below the verdict sentence. `live`: the range ends now; `alone`: no other version
    ran in this environment."""
    if verdict.kind in ALERTING_VERDICTS:
        return build_answer(verdict, deployment, traffic, ranks, live=live)
    changes = [one for one in read_changes(verdict.evidence) if one.judged]
    facts = [build_since(verdict, deployment), build_impact(traffic, live=live)]
    if verdict.kind == VerdictKind.NOT_ENOUGH_DATA:
        missing = _window(changes) if verdict.baseline_id else "no baseline"
        return [
            *facts,
            AnswerFact("Confidence", "None yet", missing),
            *_next_step(verdict, alone),
        ]
    count = f"{numbers.plural(len(changes), 'metric')} evaluated"
    said = ", ".join(filter(None, (count, _window(changes))))
    return [
        *facts,
        AnswerFact("Confidence", "High", said),
        AnswerFact("Likely cause", "None", "No evaluated metric regressed."),
    ]


def _window(changes: list[Change]) -> str:
    return next((one.window_said for one in changes if one.window_said), "")


def _next_step(verdict: Verdict, alone: bool) -> list[AnswerFact]:
    """The step that leads to a verdict; none if the sentence states it."""
    step = read_next_step(verdict.evidence)
    if alone:
        detail = "A verdict needs traffic of both versions in the same minutes."
        return [AnswerFact("Next step", "Deploy a second version", detail)]
    text = next_step_phrase(step, step.stratum) if step else ""
    stated = text.removesuffix(".").lower() in verdict.sentence.lower()
    return [] if stated else [AnswerFact("Next step", text)]
