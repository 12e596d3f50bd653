"""Deploy gate: whether a version may proceed, as pass, fail or inconclusive.

A version passes only on data or on a person's decision. Missing data never passes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from dashboard.alerts.current_verdict import resolve_current_verdict
from dashboard.alerts.evidence_lines import select_strongest_evidence
from dashboard.alerts.links import alert_url, compare_url
from dashboard.alerts.models import Alert, AlertCause, AlertOutcome, AlertState
from dashboard.alerts.payloads import build_onset_payload
from dashboard.common import clock
from dashboard.common.clock import at_minute
from dashboard.fleet.models import Deployment, ModelVersion, WatchedModel
from dashboard.regressions.baseline_choices import ACCEPT
from dashboard.regressions.evidence_reader import (
    list_wrong_results,
    read_coverage,
    read_held_by,
    read_next_step,
)
from dashboard.regressions.judge.text.steps import next_step_phrase
from dashboard.regressions.models import BaselineChoice, Comparison, Verdict, VerdictKind
from dashboard.vocabulary.severity import rank_severity

SILENT_AFTER_MINUTES = 10
"""Minutes without a report or an evaluation after which HEALTHY no longer passes the gate."""

PERMANENT_REASONS = {
    "first_version",
    "no_baseline",
    "no_common_stratum",
    "no_common_host",
    "too_few_runs",
}
"""Reasons for NOT ENOUGH DATA that more data cannot remove."""

PASS, FAIL, INCONCLUSIVE = "pass", "fail", "inconclusive"


@dataclass
class GateResult:
    """Gate result before its encoding as JSON. `wait`: another request in a minute may yield
    another result."""

    state: str
    sentence: str
    reasons: list[dict[str, str]]
    wait: bool = False
    known: dict[str, Any] = field(default_factory=dict)

    def as_dict(self, asked: dict[str, str]) -> dict[str, Any]:
        """The JSON object of the answer. Keys are only ever added; unknown values are null."""
        unknown = dict.fromkeys(
            (
                "verdict",
                "baseline",
                "since",
                "onset",
                "judged_at",
                "bound",
                "simulated",
                "held_by",
                "next_step",
                "evidence_url",
                "alert_url",
            )
        )
        answer = {
            "state": self.state,
            "wait": self.wait,
            "sentence": self.sentence,
            "reasons": self.reasons,
        }
        return {"cw": 1, **asked, **answer, **unknown, **self.known}


def evaluate_gate(*, project_id: int, model: str, version: str, environment: str) -> GateResult:
    """Evaluates the newest deployment of this version in the environment."""
    rows = Deployment.objects.filter(
        project_id=project_id, model__name=model, version__name=version, environment=environment
    )
    deployment = (
        rows.select_related("model", "version", "project")
        .order_by("-started_minute", "-pk")
        .first()
    )
    if deployment is None:
        return _build_unknown(project_id, model, version, environment)
    verdict = resolve_current_verdict(deployment_id=deployment.pk)
    alert = (
        Alert.objects.filter(deployment=deployment, cause=AlertCause.REGRESSION)
        .order_by("-number")
        .first()
    )
    gate = _evaluate_deployment(deployment, verdict, alert)
    number = (
        verdict.outlived.alert if verdict and verdict.outlived else alert.number if alert else None
    )
    gate.known = _collect_details(deployment, verdict, number)
    if gate.state == INCONCLUSIVE and verdict is not None:
        gate.known |= _collect_advice(verdict)
    return gate


def _evaluate_deployment(
    deployment: Deployment, verdict: Verdict | None, alert: Alert | None
) -> GateResult:
    if verdict is None:
        return _inconclusive(
            "not_judged",
            f"{deployment.version.name} has not been evaluated yet.",
            wait=deployment.ended_minute is None,
        )
    if rank_severity(verdict.kind) and (
        word := (alert and _find_alert_decision(verdict, alert))
        or _find_acceptance(deployment, verdict)
    ):
        return GateResult(PASS, verdict.sentence, [word])
    if verdict.kind == VerdictKind.ROLL_BACK:
        return GateResult(FAIL, verdict.sentence, _evidence(verdict))
    coverage = read_coverage(verdict.evidence)
    # The runs of a short job have ended when CI asks for their verdict.
    final = coverage.runs_ended and verdict.minute >= deployment.last_minute
    if not final and (stale := _find_stale_data(deployment, verdict)):
        return stale
    if verdict.kind == VerdictKind.HEALTHY:
        return GateResult(PASS, verdict.sentence, [_reason("healthy", verdict.sentence)])
    if verdict.kind == VerdictKind.WATCH:
        return GateResult(INCONCLUSIVE, verdict.sentence, _evidence(verdict), wait=not final)
    why = coverage.reason
    return _inconclusive(
        why or "not_enough_data",
        verdict.sentence,
        wait=not final and why not in PERMANENT_REASONS,
    )


def _find_stale_data(deployment: Deployment, verdict: Verdict) -> GateResult | None:
    """The result for a deployment without current reports or evaluations; None if both are
    current."""
    name, minute = deployment.version.name, clock.minute_of(clock.unix())
    if deployment.ended_minute is not None:
        return _inconclusive(
            "ended",
            f"{name} has received no traffic since {_format_minute(deployment.last_minute)}.",
        )
    if deployment.last_minute < minute - SILENT_AFTER_MINUTES:
        return _inconclusive(
            "silent",
            f"No instance of {name} has reported since {_format_minute(deployment.last_minute)}.",
            wait=True,
        )
    judged = (
        Comparison.objects.filter(deployment=deployment)
        .values_list("judged_minute", flat=True)
        .first()
    )
    # Minute 0 requests a re-evaluation at the next sweep, within seconds. Until then the minute of
    # the verdict counts.
    last = judged or verdict.minute
    if judged is None or last < minute - SILENT_AFTER_MINUTES:
        return _inconclusive(
            "judge_late",
            f"{name} was last evaluated at {_format_minute(last)}: evaluation is behind.",
            wait=True,
        )
    return None


def _find_alert_decision(verdict: Verdict, alert: Alert) -> dict[str, str] | None:
    """A person's decision on this alert, unless the verdict has become worse since."""
    if alert.state != AlertState.RESOLVED or _is_worse(verdict, alert.worst, alert.verdict):
        return None
    if alert.outcome == AlertOutcome.ACCEPTED:
        return _reason(
            "accepted", f"An operator accepted this level as the new baseline (A-{alert.number})."
        )
    if alert.outcome == AlertOutcome.DISMISSED:
        return _reason("dismissed", f"An operator marked A-{alert.number} as a false positive.")
    return None


def _find_acceptance(deployment: Deployment, verdict: Verdict) -> dict[str, str] | None:
    """A person's acceptance of the version, unless the verdict has become worse since.

    The acceptance may be older than any alert.
    """
    rows = BaselineChoice.objects.filter(
        version_id=deployment.version_id,
        environment=deployment.environment,
        kind=ACCEPT,
        ended_at=None,
    )
    choice = rows.first()
    if choice is None:
        return None
    seen = (
        Verdict.objects.filter(deployment=deployment, created_at__lte=choice.chosen_at)
        .order_by("-pk")
        .first()
    )
    if _is_worse(verdict, seen.kind if seen else "", seen):
        return None
    return _reason(
        "accepted", f"{choice.chosen_by_name} accepted this version as the new baseline."
    )


def _is_worse(verdict: Verdict, kind: str, seen: Verdict | None) -> bool:
    """True if the verdict is more severe than the one that the person answered, or reports a wrong
    result that was not reported then."""
    return rank_severity(verdict.kind) > rank_severity(kind) or bool(
        list_wrong_results(verdict.evidence) - list_wrong_results(seen.evidence if seen else None)
    )


def _build_unknown(project_id: int, model: str, version: str, environment: str) -> GateResult:
    """A result for missing data. CI often queries the gate before the first instance runs, so this
    is not an error."""
    if not WatchedModel.objects.filter(project_id=project_id, name=model).exists():
        return _inconclusive(
            "unknown_model",
            f"No instance of the model {model} has ever reported to this project.",
            wait=True,
        )
    if not ModelVersion.objects.filter(
        project_id=project_id, model__name=model, name=version
    ).exists():
        return _inconclusive(
            "unknown_version", f"No instance of {model} {version} has ever reported.", wait=True
        )
    return _inconclusive(
        "not_deployed",
        f"No instance of {model} {version} has ever reported from {environment}.",
        wait=True,
    )


def _collect_details(
    deployment: Deployment, verdict: Verdict | None, alert: int | None
) -> dict[str, Any]:
    slug, baseline = deployment.project.slug, verdict.baseline if verdict else None
    return {
        "verdict": verdict.kind if verdict else None,
        "baseline": baseline.version.name if baseline else None,
        "since": at_minute(verdict.since_minute).isoformat()
        if verdict and verdict.since_minute is not None
        else None,
        "onset": build_onset_payload(verdict),
        "judged_at": at_minute(verdict.minute).isoformat() if verdict else None,
        "bound": read_coverage(verdict.evidence).bound if verdict else None,
        "simulated": deployment.model.simulated,
        "evidence_url": compare_url(
            project=slug,
            model_id=deployment.model_id,
            baseline_id=baseline.version_id if baseline else None,
            candidate_id=deployment.version_id,
        ),
        "alert_url": alert_url(project=slug, number=alert) if alert is not None else None,
    }


def _collect_advice(verdict: Verdict) -> dict[str, Any]:
    """The metric that holds back HEALTHY, and the step that leads to a verdict."""
    held_by, step = read_held_by(verdict.evidence), read_next_step(verdict.evidence)
    return {
        "held_by": asdict(held_by) if held_by else None,
        "next_step": {"kind": step.kind, "text": next_step_phrase(step), "minutes": step.minutes}
        if step
        else None,
    }


def _evidence(verdict: Verdict) -> list[dict[str, str]]:
    """The strongest evidence by metric, or the sentence of the verdict if there is none."""
    lines = select_strongest_evidence(verdict.evidence)
    return [_reason(line["metric"], f"{line['name']}: {line['text']}") for line in lines] or [
        _reason(verdict.kind, verdict.sentence)
    ]


def _inconclusive(code: str, sentence: str, *, wait: bool = False) -> GateResult:
    return GateResult(INCONCLUSIVE, sentence, [_reason(code, sentence)], wait)


def _reason(code: str, text: str) -> dict[str, str]:
    return {"code": code, "text": text}


def _format_minute(minute: int) -> str:
    return clock.format_minute(minute)
