"""Answer of a verdict: since when, impact, confidence and likely cause. The Alert page and the
Overview of a model show the same facts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from dashboard.common import clock
from dashboard.fleet.models import Deployment, Instance
from dashboard.fleet.selectors.instances.instances import InstanceData
from dashboard.fleet.selectors.versions.current_traffic import CurrentTraffic
from dashboard.regressions.evidence_reader import read_changes, read_facts, read_onset
from dashboard.regressions.models import Verdict, VerdictKind
from dashboard.regressions.stored_evidence import Change, StoredFact
from dashboard.vocabulary import numbers
from dashboard.vocabulary.metrics import find_metric

_WITH_REASON = re.compile(r"^(?P<what>.+?) \((?P<kind>guard|error): (?P<reason>.+)\)\.?$", re.S)
_ARTICLE = re.compile(r"^(an?|the) ")
MAX_REASON_CHARS = 240


@dataclass(frozen=True)
class AnswerFact:
    """One fact: its label, a short statement, and one line of detail. `code` is text of the agent
    before the detail, `page` names the page that shows more, and `at` is a time before the
    statement."""

    label: str
    text: str
    detail: str = ""
    code: str = ""
    page: str = ""
    at: datetime | None = None


@dataclass(frozen=True)
class JobRanks:
    """The number of ranks of the job that a verdict names, and the first rank that differs."""

    count: int
    odd: int | None


@dataclass(frozen=True)
class Affected:
    """Affected instances of the version, and its evaluated instances; 0 if not counted."""

    count: int = 0
    whole: int = 0


def build_answer(
    verdict: Verdict,
    deployment: Deployment,
    traffic: CurrentTraffic,
    ranks: JobRanks | None = None,
    *,
    live: bool,
) -> list[AnswerFact]:
    """The four facts of a verdict that is WATCH or worse, always in this order. `live`: the page
    shows the present, so the traffic is part of the impact."""
    change, fact = find_leading(verdict)
    affected = _find_affected(verdict, fact)
    of_job = ranks if change is None else None
    return [
        build_since(verdict, deployment, fact if change is None else None),
        _rank_impact(of_job) if of_job else build_impact(traffic, affected, live=live),
        _confidence(verdict, change, fact),
        _cause(verdict, fact if change is None else None, affected, ranks),
    ]


def find_leading(verdict: Verdict) -> tuple[Change | None, StoredFact | None]:
    """The change that drives the verdict, else its first confirmed fact. A fact that asks for ROLL
    BACK leads."""
    changes = read_changes(verdict.evidence)
    driving = [one for one in changes if one.drives and one.judged]
    regressed = driving or [one for one in changes if one.regressed and one.judged]
    fact = next((one for one in read_facts(verdict.evidence) if one.news), None)
    if fact is not None and fact.severity == VerdictKind.ROLL_BACK and not driving:
        return None, fact
    return (regressed[0], fact) if regressed else (None, fact)


def count_job_ranks(
    instances: Iterable[Instance | InstanceData], named: Collection[str]
) -> JobRanks:
    """The ranks of the job of the first named instance."""
    rows = list(instances)
    odd = sorted((one.rank, one.job) for one in rows if one.instance_id in named and one.job)
    job = odd[0][1] if odd else ""
    ranks = {one.rank for one in rows if job and one.job == job}
    return JobRanks(len(ranks), odd[0][0] if odd else None)


def build_since(
    verdict: Verdict, deployment: Deployment, fact: StoredFact | None = None
) -> AnswerFact:
    """The start of the regression, and its distance from the deployment. `fact` leads."""
    onset = read_onset(verdict.evidence)
    minute = onset[0] if onset else (fact.since if fact else None) or verdict.since_minute
    started = deployment.started_minute
    minute = started if minute is None else minute
    version = deployment.version.name
    after = (
        f"{numbers.format_coarse_duration((minute - started) * 60)} after deployment of {version}"
        if minute > started
        else f"from the start of {version}"
    )
    within = f"onset within {numbers.plural(onset[1] - onset[0] + 1, 'minute')}" if onset else ""
    detail = ", ".join(filter(None, (after, within)))
    return AnswerFact("Since", "", detail, at=clock.at_minute(minute))


def build_impact(
    traffic: CurrentTraffic, affected: Affected = Affected(), *, live: bool
) -> AnswerFact:
    """Instances, share of traffic and calls; without present traffic the counts of the evidence."""
    if not live or not traffic.own_instances:
        count = affected.count or affected.whole
        text = numbers.plural(count, "instance") if count else "Not known"
        return AnswerFact("Impact", text, "no report now" if live else "", page="instances")
    own = min(affected.count or traffic.own_instances, traffic.own_instances)
    text = f"{numbers.number(own)} of {numbers.plural(traffic.instances, 'instance')}"
    detail = "no calls in the last minutes"
    if traffic.share is not None:
        calls = f"{numbers.number(traffic.per_second)} calls/s"
        detail = f"{numbers.percent(traffic.share)} of traffic, {calls}"
    return AnswerFact("Impact", text, detail, page="instances")


def _find_affected(verdict: Verdict, fact: StoredFact | None) -> Affected:
    """A fact names its instances, and a share of calls counts them."""
    counted = [one for one in read_changes(verdict.evidence) if one.regressed and one.judged]
    named = len(fact.instances or ()) if fact is not None else 0
    return Affected(
        max([named, *(one.affected_instances or 0 for one in counted)]),
        max((one.candidate_instances or 0 for one in counted), default=0),
    )


def _rank_impact(ranks: JobRanks) -> AnswerFact:
    count = numbers.plural(ranks.count, "rank")
    text = f"Job of {count}" if ranks.count else "Job with several ranks"
    detail = "May stop: ranks wait for each other in collectives."
    return AnswerFact("Impact", text, detail, page="ranks")


def _confidence(verdict: Verdict, change: Change | None, fact: StoredFact | None) -> AnswerFact:
    """How sure the verdict is. A fact is observed; a change has an interval."""
    if change is None:
        if fact is None:
            return AnswerFact("Confidence", "Unknown", "The verdict has no stored evidence.")
        return AnswerFact("Confidence", "Confirmed", "Observed, not an estimate.")
    spread = f"95% CI {change.range_said}" if change.range_said else change.affected_said
    parts = [change.change_said, spread, change.window_said]
    detail = ", ".join(part for part in parts if part) + "."
    if change.strata and change.strata_agreeing is not None:
        shapes = numbers.plural(change.strata, "cohort")
        detail += f" {change.strata_agreeing} of {shapes} agree{'s' * (change.strata == 1)}."
    sure = "High" if verdict.kind == VerdictKind.ROLL_BACK else "Likely"
    return AnswerFact("Confidence", sure, f"{find_metric(change.metric).name} {detail}")


def _cause(
    verdict: Verdict, fact: StoredFact | None, affected: Affected, ranks: JobRanks | None
) -> AnswerFact:
    """The cause with its guard, and whether it is confirmed; without one, the next step. With
    `fact`, the verdict is about a fact, not about a change."""
    label, cause = "Likely cause", verdict.cause
    if cause:
        if found := _WITH_REASON.match(cause):
            what, reason = _begin(found["what"]), found["reason"][:MAX_REASON_CHARS]
            return AnswerFact(label, what, _confirmed(affected), reason, "compiles")
        what, _, rest = cause.partition("; ")
        detail = " ".join(filter(None, (_begin(rest), _confirmed(affected))))
        return AnswerFact(label, _begin(what.removesuffix(".")), detail, page="compiles")
    if ranks is not None and fact is not None and fact.about:
        odd = "Confirmed." if ranks.odd is None else f"Confirmed on rank {ranks.odd}."
        return AnswerFact(label, f"`{fact.about}` was compiled differently", odd, page="ranks")
    if fact is not None:
        about = f" in `{fact.about}`" if fact.about else ""
        text, why = f"{find_metric(fact.kind).name}{about}", fact.why[:MAX_REASON_CHARS]
        return AnswerFact(label, text, _confirmed(affected), why, "findings")
    step = "Next step: find what differs between the instances."
    return AnswerFact(label, "Unknown", step, page="differs")


def _begin(text: str) -> str:
    """The text as a sentence. Only an article gets a capital: another first word may be a name of
    the job's code."""
    return text[:1].upper() + text[1:] if _ARTICLE.match(text) else text


def _confirmed(affected: Affected) -> str:
    count, whole = affected.count, affected.whole
    if not count:
        return "Not confirmed: the most frequent reason."
    of = f" of {whole}" if whole >= count else ""
    return f"Confirmed on {count}{of} instance{'' if (whole or count) == 1 else 's'}."
