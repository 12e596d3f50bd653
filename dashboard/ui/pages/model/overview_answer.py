"""Answer of the Overview: since when, impact, confidence, and likely cause or next step."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dashboard.common import clock
from dashboard.regressions.evidence_reader import read_changes, read_facts, read_next_step
from dashboard.regressions.judge.text.sentences import capitalize
from dashboard.regressions.judge.text.steps import next_step_phrase
from dashboard.regressions.models import Verdict, VerdictKind
from dashboard.regressions.stored_evidence import Change, StoredFact
from dashboard.ui.pages.findings.columns import EagerFallback
from dashboard.vocabulary import numbers
from dashboard.vocabulary.metrics import find_metric
from dashboard.vocabulary.severity import ALERTING_VERDICTS, REGRESSED

_WITH_REASON = re.compile(r"^(?P<what>.+?) \((?P<kind>guard|error): (?P<reason>.+)\)\.?$", re.S)
MAX_REASON_CHARS = 160


@dataclass(frozen=True)
class AnswerFact:
    """One fact: its label, a short statement, and a line of detail. `code` is text of the agent
    before the detail, and `minute` a time before the statement."""

    label: str
    text: str
    detail: str = ""
    code: str = ""
    minute: int | None = None


@dataclass(frozen=True)
class Traffic:
    """Calls of the evaluated version in the newest minutes, and reporting instances; None if they
    are not known."""

    share: float | None
    per_second: float | None
    own_instances: int
    instances: int
    live: bool
    """Whether the range of the calls ends now."""


def build_answer(
    verdict: Verdict | None,
    started_minute: int,
    traffic: Traffic,
    latched: list[EagerFallback],
    *,
    alone: bool,
) -> list[AnswerFact]:
    """The facts below the verdict sentence; none without a verdict. `alone`: no other version ran
    in this environment."""
    if verdict is None:
        return []
    changes = [one for one in read_changes(verdict.evidence) if one.judged]
    bad = verdict.kind in ALERTING_VERDICTS
    driving = next(
        (one for one in changes if one.drives),
        next((one for one in changes if one.label == REGRESSED), None) if bad else None,
    )
    fact = next((one for one in read_facts(verdict.evidence) if one.news), None) if bad else None
    facts = [
        _since(verdict, driving, started_minute),
        _impact(driving, fact, traffic),
        _confidence(verdict, changes, driving, fact),
    ]
    if bad:
        return [*facts, _cause(verdict, driving, fact, latched)]
    if verdict.kind == VerdictKind.NOT_ENOUGH_DATA:
        return [*facts, *_next_step(verdict, alone)]
    return [*facts, AnswerFact("Likely cause", "None", "No evaluated metric regressed.")]


def _since(verdict: Verdict, driving: Change | None, started_minute: int) -> AnswerFact:
    minute = (driving.since if driving else None) or verdict.since_minute or started_minute
    late, now = minute - started_minute, clock.minute_of(clock.unix())
    after = (
        f"{numbers.format_coarse_duration(late * 60)} after deployment"
        if late >= 1
        else "since deployment"
    )
    ago = f"{numbers.format_coarse_duration(max(0, now - minute) * 60)} ago"
    return AnswerFact("Since", "", f"{after}, {ago}", minute=minute)


def _impact(driving: Change | None, fact: StoredFact | None, traffic: Traffic) -> AnswerFact:
    affected = driving.affected_instances if driving else len(fact.instances or ()) if fact else 0
    count = affected or traffic.own_instances
    text = (
        f"{numbers.number(count)} of {numbers.plural(max(count, traffic.instances), 'instance')}"
        if traffic.instances
        else "No instance reports now"
    )
    if not traffic.live:
        return AnswerFact("Impact", text)
    if traffic.share is None or traffic.per_second is None:
        return AnswerFact("Impact", text, "no calls in the last minutes")
    calls = f"{numbers.number(traffic.per_second)} calls/s"
    return AnswerFact("Impact", text, f"{numbers.percent(traffic.share)} of traffic, {calls}")


def _confidence(
    verdict: Verdict, changes: list[Change], driving: Change | None, fact: StoredFact | None
) -> AnswerFact:
    if verdict.kind == VerdictKind.NOT_ENOUGH_DATA:
        missing = "" if verdict.baseline_id else "no baseline"
        return AnswerFact("Confidence", "None yet", missing or _window(changes))
    if verdict.kind == VerdictKind.HEALTHY:
        count = numbers.plural(len(changes), "metric")
        said = ", ".join(filter(None, (f"{count} evaluated", _window(changes))))
        return AnswerFact("Confidence", "High", said)
    if driving is None:
        return AnswerFact("Confidence", "Confirmed" if fact else "Unknown", "observed" * bool(fact))
    agree = (
        f"{driving.strata_agreeing} of {numbers.plural(driving.strata, 'cohort')} agree"
        if driving.strata > 1 and driving.strata_agreeing is not None
        else ""
    )
    detail = ", ".join(filter(None, (driving.window_said, agree or driving.affected_said)))
    return AnswerFact(
        "Confidence",
        "High" if verdict.kind == VerdictKind.ROLL_BACK else "Likely",
        f"{find_metric(driving.metric).title}: {detail}" if detail else "",
    )


def _window(changes: list[Change]) -> str:
    return next((one.window_said for one in changes if one.window_said), "")


def _cause(
    verdict: Verdict,
    driving: Change | None,
    fact: StoredFact | None,
    latched: list[EagerFallback],
) -> AnswerFact:
    if verdict.cause:
        found = _WITH_REASON.match(verdict.cause)
        what, _, rest = verdict.cause.partition("; ")
        if found:
            what, rest = found["what"], ""
        return AnswerFact(
            "Likely cause",
            capitalize(what.removesuffix(".")),
            _confirmed(driving, fact) or capitalize(rest),
            found["reason"][:MAX_REASON_CHARS] if found else "",
        )
    if latched:
        one = latched[0]
        on = f"confirmed on {one.instances} of {numbers.plural(one.known, 'instance')}"
        text = f"`{one.frame}` runs eager until restart"
        return AnswerFact("Likely cause", text, on, one.cause[:MAX_REASON_CHARS])
    if fact is not None and driving is None:
        about = f" in `{fact.about}`" if fact.about else ""
        text = f"{find_metric(fact.kind).title}{about}"
        why = "" if fact.why.lower() in verdict.sentence.lower() else fact.why[:MAX_REASON_CHARS]
        detail = ", ".join(filter(None, (why, _confirmed(None, fact))))
        return AnswerFact("Likely cause", text, detail)
    return AnswerFact("Likely cause", "Unknown", "Next step: see Compare and Findings.")


def _confirmed(driving: Change | None, fact: StoredFact | None) -> str:
    if fact is not None and fact.instances:
        return f"confirmed on {numbers.plural(len(fact.instances), 'instance')}"
    return f"confirmed on {driving.affected_said}" if driving and driving.affected_said else ""


def _next_step(verdict: Verdict, alone: bool) -> list[AnswerFact]:
    """The step that leads to a verdict; none if the sentence states it."""
    step = read_next_step(verdict.evidence)
    if alone:
        detail = "A verdict needs traffic of both versions in the same minutes."
        return [AnswerFact("Next step", "Deploy a second version", detail)]
    text = next_step_phrase(step, step.stratum) if step else ""
    stated = text.removesuffix(".").lower() in verdict.sentence.lower()
    return [] if stated else [AnswerFact("Next step", text)]
