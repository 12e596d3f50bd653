"""Answer strip of the Alert page: since when, impact, confidence and likely cause."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from dashboard.alerts.models import AlertCause, AlertState
from dashboard.common import clock
from dashboard.regressions.evidence_reader import read_changes, read_facts
from dashboard.regressions.judge.text.sentences import capitalize
from dashboard.regressions.models import VerdictKind
from dashboard.regressions.stored_evidence import Change, StoredFact
from dashboard.ui.pages.alerts.affected_ranks import AlertRanks
from dashboard.ui.pages.alerts.driving_data import Traffic
from dashboard.ui.pages.alerts.queries import AlertData
from dashboard.ui.pages.alerts.timeline import find_cause, find_onset
from dashboard.vocabulary import numbers
from dashboard.vocabulary.metrics import find_metric

_COUNTED = re.compile(r"[\d,]+ of [\d,]+[\s\u00a0]instances?")
_WITH_REASON = re.compile(r"^(?P<what>.+?) \((?P<kind>guard|error): (?P<reason>.+)\)\.?$", re.S)
MAX_REASON_CHARS = 240


@dataclass(frozen=True)
class Fact:
    """One fact of the strip: a short statement, and one line of detail. `code` is shown as code
    before the detail, and `page` names the page that shows more."""

    text: str
    detail: str = ""
    code: str = ""
    page: str = ""


@dataclass(frozen=True)
class Answer:
    """The four facts, always in this order."""

    since: datetime
    since_detail: str
    impact: Fact
    confidence: Fact
    cause: Fact


def build_answer(page: AlertData, traffic: Traffic, ranks: AlertRanks | None) -> Answer:
    """The strip of an alert."""
    since, detail = _since(page, ranks)
    if page.alert.cause in AlertCause.SILENT:
        return Answer(since, detail, _silent_impact(page), _COUNT, _SILENT_CAUSE)
    change, fact = _leading(page)
    affected = _find_affected(page, fact)
    named_ranks = ranks if ranks is not None and change is None else None
    return Answer(
        since,
        detail,
        _ranks_impact(named_ranks) if named_ranks else _impact(page, traffic, affected),
        _confidence(page, change, fact),
        _cause(page, change is None, fact, affected, ranks),
    )


def _since(page: AlertData, ranks: AlertRanks | None) -> tuple[datetime, str]:
    """The start of the regression, and its distance from the deployment."""
    alert = page.alert
    if alert.cause in AlertCause.SILENT:
        return alert.opened_at, _ended(page)
    onset, bad = find_onset(page), page.bad
    minute = onset[0] if onset else bad.since_minute if bad else None
    since = clock.at_minute(minute) if minute is not None else alert.opened_at
    if ranks is not None and not onset:
        since = ranks.since
    deployed = clock.at_minute(alert.deployment.started_minute)
    late = (since - deployed).total_seconds()
    version = alert.deployment.version.name
    after = (
        f"{numbers.format_coarse_duration(late)} after deployment of {version}"
        if late >= 60
        else f"from the start of {version}"
    )
    within = f"onset within {numbers.plural(onset[1] - onset[0] + 1, 'minute')}" if onset else ""
    return since, ", ".join(filter(None, (after, within, _ended(page))))


def _ended(page: AlertData) -> str:
    alert = page.alert
    if alert.resolved_at is None:
        return ""
    lasted = numbers.format_coarse_duration((alert.resolved_at - alert.opened_at).total_seconds())
    return f"alert open for {lasted}"


def _leading(page: AlertData) -> tuple[Change | None, StoredFact | None]:
    """The change that drives the verdict, else its first confirmed fact. A fact that asks for ROLL
    BACK leads."""
    if page.bad is None:
        return None, None
    changes = read_changes(page.bad.evidence)
    driving = [one for one in changes if one.drives and one.judged]
    regressed = driving or [one for one in changes if one.regressed and one.judged]
    fact = next((one for one in read_facts(page.bad.evidence) if one.news), None)
    if fact is not None and fact.severity == VerdictKind.ROLL_BACK and not driving:
        return None, fact
    return (regressed[0], fact) if regressed else (None, fact)


def _find_affected(page: AlertData, fact: StoredFact | None) -> tuple[int, int]:
    """Affected instances of the version, and its evaluated instances; 0 if not counted. A fact
    names its instances, and a share of calls counts them."""
    changes = read_changes(page.bad.evidence) if page.bad else []
    counted = [one for one in changes if one.regressed and one.judged]
    whole = max((one.candidate_instances or 0 for one in counted), default=0)
    named = len(fact.instances or ()) if fact is not None else 0
    shares = [one.affected_instances or 0 for one in counted]
    return max([named, *shares]), whole


def _impact(page: AlertData, traffic: Traffic, affected: tuple[int, int]) -> Fact:
    """Instances, share of traffic and calls; for an ended version the counts of the evidence."""
    if page.alert.state == AlertState.RESOLVED or not traffic.own_instances:
        count = affected[0] or affected[1]
        text = numbers.plural(count, "instance") if count else "Not known"
        now = "" if page.alert.state == AlertState.RESOLVED else "no report now"
        return Fact(text, now, page="instances")
    own = min(affected[0] or traffic.own_instances, traffic.own_instances)
    text = f"{numbers.number(own)} of {numbers.plural(traffic.instances, 'instance')}"
    if traffic.share is None:
        return Fact(text, "no calls in the last minutes", page="instances")
    calls = f"{numbers.number(traffic.per_second)} calls/s"
    detail = f"{numbers.percent(traffic.share)} of traffic, {calls}"
    return Fact(text, detail, page="instances")


def _ranks_impact(ranks: AlertRanks) -> Fact:
    count = len(ranks.differing) + ranks.more + ranks.alike
    text = f"Job of {numbers.plural(count, 'rank')}" if count else "Job with several ranks"
    return Fact(text, "May stop: ranks wait for each other in collectives.", page="ranks")


def _confidence(page: AlertData, change: Change | None, fact: StoredFact | None) -> Fact:
    """How sure the verdict is. A fact is observed; a change has an interval."""
    if change is None:
        if fact is None:
            return Fact("Unknown", "No verdict with evidence is retained.")
        return Fact("Confirmed", "Observed, not an estimate.")
    spread = f"95% CI {change.range_said}" if change.range_said else change.affected_said
    parts = [change.change_said, spread, change.window_said]
    detail = ", ".join(part for part in parts if part) + "."
    if change.strata and change.strata_agreeing is not None:
        shapes = numbers.plural(change.strata, "cohort")
        detail += f" {change.strata_agreeing} of {shapes} agree{'s' * (change.strata == 1)}."
    high = page.bad is not None and page.bad.kind == VerdictKind.ROLL_BACK
    return Fact("High" if high else "Likely", f"{find_metric(change.metric).name} {detail}")


def _cause(
    page: AlertData,
    observed: bool,
    fact: StoredFact | None,
    affected: tuple[int, int],
    ranks: AlertRanks | None,
) -> Fact:
    """The cause with its guard, and whether it is confirmed; without one, the next step. With
    `observed`, the alert is about a fact, not about a change."""
    cause = find_cause(page)
    if cause:
        found = _WITH_REASON.match(cause)
        what, _, rest = cause.partition("; ")
        if found:
            reason = found["reason"][:MAX_REASON_CHARS]
            return Fact(_begin(found["what"]), _confirmed(affected), reason, "compiles")
        detail = " ".join(filter(None, (_begin(rest), _confirmed(affected))))
        return Fact(_begin(what.removesuffix(".")), detail, page="compiles")
    if ranks is not None and ranks.frame:
        odd = f"Confirmed on rank {ranks.odd.rank}." if ranks.odd else "Confirmed."
        return Fact(f"`{ranks.frame}` was compiled differently", odd, page="ranks")
    if fact is not None and observed:
        about = f" in `{fact.about}`" if fact.about else ""
        text = f"{find_metric(fact.kind).name}{about}"
        return Fact(text, _confirmed(affected), fact.why[:MAX_REASON_CHARS], "findings")
    return Fact("Unknown", "Next step: find what differs between the instances.", page="differs")


def _begin(text: str) -> str:
    """The text as a sentence, unless it begins with a name of the job's code."""
    return capitalize(text) if text.partition(" ")[0].isalpha() and " " in text else text


def _confirmed(affected: tuple[int, int]) -> str:
    count, whole = affected
    if not count:
        return "Not confirmed: the most frequent reason."
    of = f" of {whole}" if whole >= count else ""
    return f"Confirmed on {count}{of} instance{'' if (whole or count) == 1 else 's'}."


_COUNT = Fact("Confirmed", "Counted, not an estimate.")
_SILENT_CAUSE = Fact("Unknown", "Next step: check whether other projects report.", page="health")


def _silent_impact(page: AlertData) -> Fact:
    found = _COUNTED.search(page.alert.title)
    return Fact(found[0] if found else "Most instances", "Calls and verdicts are unknown.")
