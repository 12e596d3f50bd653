"""Answer of the Alert page: the facts of its verdict, or those of silent instances."""

from __future__ import annotations

import re
from dataclasses import replace

from dashboard.alerts.models import Alert, AlertCause, AlertState
from dashboard.fleet.selectors.versions.current_traffic import CurrentTraffic
from dashboard.ui.layout.answer import AnswerFact, build_answer, build_impact
from dashboard.ui.pages.alerts.affected_ranks import AlertRanks
from dashboard.ui.pages.alerts.queries import AlertData
from dashboard.vocabulary import numbers

_COUNTED = re.compile(r"[\d,]+ of [\d,]+[\s\u00a0]instances?")


def build_alert_answer(
    page: AlertData, traffic: CurrentTraffic, ranks: AlertRanks | None
) -> list[AnswerFact]:
    """The four facts of an alert; with the time that an ended alert was open."""
    alert, live = page.alert, page.alert.state != AlertState.RESOLVED
    if alert.cause in AlertCause.SILENT:
        facts = _silent(alert)
    elif page.bad is None:
        facts = _without_verdict(alert, traffic, live)
    else:
        job = ranks.job_ranks if ranks else None
        facts = build_answer(page.bad, alert.deployment, traffic, job, live=live)
    since, *others = facts
    detail = ", ".join(filter(None, (since.detail, _ended(alert))))
    return [replace(since, detail=detail), *others]


def _silent(alert: Alert) -> list[AnswerFact]:
    found = _COUNTED.search(alert.title)
    silent, step = found[0] if found else "Most instances", "check whether other projects report"
    return [
        AnswerFact("Since", "", at=alert.opened_at),
        AnswerFact("Impact", silent, "Calls and verdicts are unknown."),
        AnswerFact("Confidence", "Confirmed", "Counted, not an estimate."),
        AnswerFact("Likely cause", "Unknown", f"Next step: {step}.", page="health"),
    ]


def _without_verdict(alert: Alert, traffic: CurrentTraffic, live: bool) -> list[AnswerFact]:
    """The facts after the verdicts were deleted."""
    step = "Next step: find what differs between the instances."
    return [
        AnswerFact("Since", "", at=alert.opened_at),
        build_impact(traffic, live=live),
        AnswerFact("Confidence", "Unknown", "No verdict with evidence is retained."),
        AnswerFact("Likely cause", "Unknown", step, page="differs"),
    ]


def _ended(alert: Alert) -> str:
    if alert.resolved_at is None:
        return ""
    lasted = numbers.format_coarse_duration((alert.resolved_at - alert.opened_at).total_seconds())
    return f"alert open for {lasted}"
