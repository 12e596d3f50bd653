"""Judge service: evaluates deployments and writes their verdicts as rows. Writes a row on change
and once an hour; otherwise updates the current row."""

import json
import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from dashboard.common import clock
from dashboard.common.counters import measure_stage
from dashboard.common.write_lock import write_transaction
from dashboard.fleet.metrics.eager_causes import cause_sentence
from dashboard.fleet.models import Deployment, Instance
from dashboard.fleet.retention import find_first_kept_instance_minute
from dashboard.fleet.selectors.judge_inputs.execution_modes import ARROW
from dashboard.fleet.selectors.judge_inputs.judge_minutes import closed_minute
from dashboard.regressions.baseline_selection import select_baseline
from dashboard.regressions.comparison_cache import get_comparison
from dashboard.regressions.due_deployments import list_due_deployments, name_environment
from dashboard.regressions.evidence_reader import list_urgent_facts
from dashboard.regressions.judge.certain_facts import (
    KINDS_WITHOUT_BASELINE,
    CertainFact,
    describe_fact,
    group_certain_facts,
)
from dashboard.regressions.judge.comparison import Comparison as Running
from dashboard.regressions.judge.evaluate import evaluate_comparison, list_muted_facts
from dashboard.regressions.judge.past_levels import DAY_MINUTES
from dashboard.regressions.judge.result import Outcome
from dashboard.regressions.judge.self_drift import SelfDrift
from dashboard.regressions.judge.settings import Settings
from dashboard.regressions.judge.text.sentences import capitalize
from dashboard.regressions.judge.text.verdict import (
    drift_phrase,
    first_version_sentence,
    verdict_sentence,
)
from dashboard.regressions.judge_context import read_facts, read_judge_context, read_stall_budget
from dashboard.regressions.models import Comparison, Verdict, VerdictKind
from dashboard.regressions.recompile_cause import explain_recompiles
from dashboard.regressions.run_reader import read_run_comparison
from dashboard.regressions.settings_resolver import SettingsResolver
from dashboard.regressions.stall_cause import STALLED, find_stall_cause, has_stalls

logger = logging.getLogger(__name__)

VERDICT_INTERVAL = timedelta(hours=1)


@dataclass(frozen=True)
class Judgement:
    """The verdict of a deployment, before it is written."""

    kind: str
    sentence: str
    cause: str
    evidence: dict[str, Any]
    since_minute: int | None


@measure_stage("judge")
def deployments_judge(
    *, seconds: float = math.inf, unfinished: Callable[[], None] = lambda: None
) -> int:
    """Evaluates every live deployment that has a new closed minute or late data. Returns the number
    of written verdicts.

    After `seconds`, and at least one successful evaluation, starts no further deployment and calls
    `unfinished`.
    """
    now_minute = closed_minute(clock.unix()) + 1
    written, judged, stop = 0, 0, time.monotonic() + seconds
    book = SettingsResolver()
    for deployment, earlier in list_due_deployments(now_minute=now_minute):
        if judged and time.monotonic() >= stop:
            unfinished()
            break
        try:
            settings = book.of(project_id=deployment.project_id, model_id=deployment.model_id)
            written += deployment_judge(
                deployment=deployment, earlier=earlier, now_minute=now_minute, settings=settings
            )
            judged += 1
        except Exception:
            # A deployment whose evaluation fails must not block the others. It stays due and is
            # retried.
            logger.exception(
                "deployment %s of %s could not be evaluated", deployment.pk, deployment.model
            )
    return written


def deployment_judge(
    *, deployment: Deployment, earlier: list[Deployment], now_minute: int, settings: Settings
) -> bool:
    """Evaluates one deployment and writes changes. Returns True if a verdict row was added."""
    late = deployment.version.late_folds
    baseline = select_baseline(deployment=deployment, earlier=earlier)
    stands = baseline is not None and keeps_current_verdict(
        deployment=deployment, baseline=baseline, now_minute=now_minute
    )
    judgement = None
    if baseline is None:
        judgement = _judge_alone(deployment, now_minute, settings)
    elif not stands:
        judgement = _judge_against(deployment, baseline, earlier, now_minute, settings)
    with write_transaction():
        Comparison.objects.update_or_create(
            deployment=deployment,
            defaults={
                "project_id": deployment.project_id,
                "baseline": baseline,
                "judged_minute": now_minute,
                "judged_revision": late,
            },
        )
        return judgement is not None and verdict_write(
            deployment=deployment, baseline=baseline, judgement=judgement, minute=now_minute - 1
        )


def keeps_current_verdict(*, deployment: Deployment, baseline: Deployment, now_minute: int) -> bool:
    """True if the verdict is frozen: its input minutes are being purged, and the baseline will
    produce no new ones."""
    if deployment.ended_minute is not None or baseline.ended_minute is None:
        return False
    kept_from = find_first_kept_instance_minute(project=deployment.project, now=now_minute * 60)
    return (
        deployment.started_minute - DAY_MINUTES < kept_from
        and Verdict.objects.filter(deployment=deployment, current=True).exists()
    )


def verdict_write(
    *, deployment: Deployment, baseline: Deployment | None, judgement: Judgement, minute: int
) -> bool:
    """Adds a row if the verdict changed, if it contains new facts that are reported at once, or if
    an hour passed. A row of a change is never updated."""
    now = clock.now()
    current = (
        Verdict.objects.select_for_update().filter(deployment=deployment, current=True).first()
    )
    fields = {
        "baseline": baseline,
        "sentence": judgement.sentence,
        "cause": judgement.cause,
        "evidence": judgement.evidence,
        "minute": minute,
        "since_minute": judgement.since_minute,
    }
    same = (
        current is not None
        and current.kind == current.previous_kind == judgement.kind
        and now - current.created_at < VERDICT_INTERVAL
    )
    if (
        current is not None
        and same
        and list_urgent_facts(judgement.evidence) <= list_urgent_facts(current.evidence)
    ):
        Verdict.objects.filter(pk=current.pk).update(**fields)
        return False
    Verdict.objects.filter(deployment=deployment, current=True).update(current=False)
    previous = current.kind if current is not None else ""
    project_id = deployment.project_id
    Verdict.objects.create(
        project_id=project_id,
        deployment=deployment,
        kind=judgement.kind,
        previous_kind=previous,
        created_at=now,
        **fields,
    )
    return True


def find_fallback_cause(*, deployment: Deployment, baseline: Deployment) -> str:
    """The frame that fell back to eager on this version and not on its baseline, with the guard
    that used up its recompiles."""
    versions = {deployment.version_id: "candidate", baseline.version_id: "baseline"}
    frames: dict[str, dict[str, dict[str, Any]]] = {"candidate": {}, "baseline": {}}
    rows = Instance.objects.filter(
        version_id__in=versions, environment=deployment.environment
    ).exclude(latched_eager=[])
    for version_id, latched in rows.values_list("version_id", "latched_eager"):
        for item in latched:
            frames[versions[version_id]].setdefault(str(item.get("frame", "")), item)
    new = [
        item
        for frame, item in frames["candidate"].items()
        if frame and frame not in frames["baseline"]
    ]
    if not new:
        return ""
    first = new[0]
    named, cause = f"`{first['frame']}`", str(first.get("cause") or "limit")
    guard = str(first.get("reason") or "")
    return (cause_sentence(cause, named) or f"{named} runs eager ({cause})") + (
        f" (guard: {guard[:120]})" if guard else ""
    )


def find_uncompiled_cause(outcome: Outcome) -> str:
    """A sentence that compilation was requested for a region and nothing was compiled; empty if
    that is not new in this version."""
    return next(
        (
            describe_fact(fact)
            for fact in outcome.facts
            if fact.kind == "compiled_nothing" and fact.severity != "known"
        ),
        "",
    )


def find_mode_cause(outcome: Outcome) -> str:
    """A sentence that a region which determines the verdict runs in another execution mode than
    before; empty if not."""
    for row in outcome.evidence:
        for stratum in row.strata if row.drives else ():
            before, arrow, after = next(
                (part for part in stratum.stratum.split(" · ") if ARROW in part), ""
            ).partition(ARROW)
            if arrow:
                return f"`{row.region}` changed its execution mode from {before} to {after}"
    return ""


def _judge_against(
    deployment: Deployment,
    baseline: Deployment,
    earlier: Sequence[Deployment],
    now_minute: int,
    settings: Settings,
) -> Judgement:
    comparison = get_comparison(
        deployment=deployment, baseline=baseline, now_minute=now_minute, settings=settings
    )
    comparison.runs = read_run_comparison(
        comparison=comparison,
        deployment=deployment,
        baseline=baseline,
        earlier=earlier,
        now_minute=now_minute,
    )
    return build_judgement(
        comparison=comparison, deployment=deployment, baseline=baseline, now_minute=now_minute
    )


def build_judgement(
    *, comparison: Running, deployment: Deployment, baseline: Deployment, now_minute: int
) -> Judgement:
    """The verdict of a comparison, with its sentence and evidence."""
    known = read_judge_context(
        comparison=comparison, deployment=deployment, baseline=baseline, now_minute=now_minute
    )
    outcome = evaluate_comparison(comparison, now_minute=now_minute, known=known)
    eager = any(row.metric == "eager" and row.candidate for row in outcome.evidence)
    stalled = has_stalls(outcome.facts) or any(
        row.metric in STALLED and row.label == "REGRESSED" for row in outcome.evidence
    )
    outcome, again = explain_recompiles(outcome, deployment=deployment, now_minute=now_minute)
    nothing = find_uncompiled_cause(outcome)
    latched = find_fallback_cause(deployment=deployment, baseline=baseline) if eager else ""
    waited = find_stall_cause(deployment=deployment, now_minute=now_minute) if stalled else ""
    # A frame in eager fallback compiles no further graphs. It explains the current slowness, unless
    # stalled calls still exceed their budget.
    beyond = waited if has_stalls(outcome.facts) else ""
    cause = beyond or find_mode_cause(outcome) or latched or waited or again
    sentence = verdict_sentence(
        outcome,
        candidate=deployment.version.name,
        baseline=baseline.version.name,
        say_minute=clock.format_minute,
        cause=cause or None,
        environment=name_environment(deployment),
    )
    evidence = json.loads(json.dumps(outcome.as_dict()))
    return Judgement(outcome.verdict, sentence, nothing or cause, evidence, _since(outcome))


def _judge_alone(deployment: Deployment, now_minute: int, settings: Settings) -> Judgement:
    """Evaluates a first version without a baseline: compared with its own past, and by facts that
    need no baseline."""
    facts = read_facts(deployment=deployment, arm="candidate", now_minute=now_minute)
    comparison = get_comparison(
        deployment=deployment, baseline=None, now_minute=now_minute, settings=settings
    )
    facts += comparison.stalls.facts(read_stall_budget(deployment))
    shown = group_certain_facts(
        (fact for fact in facts if fact.kind in KINDS_WITHOUT_BASELINE), now_minute=now_minute
    )
    muted = list_muted_facts(settings)
    found = tuple(fact for fact in shown if fact.kind not in muted)
    cause = (
        find_stall_cause(deployment=deployment, now_minute=now_minute)
        if has_stalls(found[:1])
        else ""
    )
    drift = comparison.drifted()
    stored = {"facts": [asdict(fact) for fact in shown], "drift": [asdict(one) for one in drift]}
    evidence = {"reason": "first_version", "evidence": [], **json.loads(json.dumps(stored))}
    sentence = _write_first_version(deployment.version.name, found, drift, cause)
    if not found and not drift:
        return Judgement(
            VerdictKind.NOT_ENOUGH_DATA, sentence, "", evidence, deployment.started_minute
        )
    kind = (
        VerdictKind.ROLL_BACK
        if any(fact.severity == "roll_back" for fact in found)
        else VerdictKind.WATCH
    )
    return Judgement(
        kind,
        sentence,
        cause,
        evidence,
        min([fact.since for fact in found] + [one.since for one in drift]),
    )


def _write_first_version(
    name: str, found: Sequence[CertainFact], drift: Sequence[SelfDrift], cause: str
) -> str:
    """The sentence of a version without a baseline: its first fact, or else its drift."""
    if found:
        return first_version_sentence(
            found[0], candidate=name, say_minute=clock.format_minute, cause=cause
        )
    if drift:
        return f"{capitalize(drift_phrase(drift, name, clock.format_minute))}."
    return f"{name} is the first version seen here: no baseline yet."


def _since(outcome: Outcome) -> int | None:
    driving = [row.since for row in outcome.evidence if row.drives and row.since is not None]
    found = driving or [one.since for one in outcome.drift if outcome.verdict == "watch"]
    return min(found, default=outcome.since)
