"""Runbook of the Alert page: the steps of its kind, filled in, with the current one marked."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.alerts.models import AlertCause, AlertOutcome, AlertState
from dashboard.alerts.runbook_steps import (
    KINDS,
    RunbookFacts,
    RunbookKind,
    RunbookStep,
    build_runbook_steps,
    choose_runbook_kind,
)
from dashboard.fleet.models import Instance
from dashboard.fleet.selectors.versions.current_traffic import CurrentTraffic
from dashboard.projects.selectors import for_project
from dashboard.regressions.evidence_reader import read_changes, read_facts
from dashboard.regressions.models import VerdictKind
from dashboard.ui.charts.guard_advice import (
    count_observed_values,
    find_varying_input,
    list_guard_remedies,
)
from dashboard.ui.pages.alerts.affected_ranks import AlertRanks
from dashboard.ui.pages.alerts.queries import AlertData
from dashboard.ui.pages.alerts.timeline import (
    baseline_name,
    fill_runbook_text,
    fill_runbook_url,
    find_cause,
    find_recovery_kind,
    find_rollback_time,
)
from dashboard.vocabulary import numbers

NEEDS_PROCESS = ("stalled", "memory")
"""Kinds whose commands name a process of an affected instance."""


@dataclass(frozen=True)
class ShownStep:
    """A step with its state; `current` is the first step that is not done."""

    step: RunbookStep
    current: bool


@dataclass(frozen=True)
class Runbook:
    """The runbook of an alert. `closing` replaces the steps if a person decided the alert."""

    kind: RunbookKind
    steps: list[ShownStep]
    closing: str = ""
    written: bool = True
    """Whether the owners wrote a runbook of their own."""

    @property
    def name(self) -> str:
        """The kind as text."""
        return KINDS[self.kind]

    @property
    def current(self) -> int:
        """The number of the current step; 0 if all are done."""
        return next((n for n, one in enumerate(self.steps, 1) if one.current), 0)


_CLOSING = {
    AlertOutcome.DISMISSED: "Marked as a false positive. A new alert opens only if the deployment "
    "gets worse.",
    AlertOutcome.ACCEPTED: "Accepted as the new baseline. The verdict does not change, and later "
    "versions are compared with this version. A new alert opens only if the deployment gets worse.",
}


def build_runbook(page: AlertData, traffic: CurrentTraffic, ranks: AlertRanks | None) -> Runbook:
    """The runbook of an alert."""
    kind = choose_kind(page, ranks)
    steps = build_runbook_steps(kind, _read_facts(page, kind, traffic, ranks))
    over = page.alert.state == AlertState.RESOLVED
    current = next((n for n, step in enumerate(steps) if not step.done), None)
    closing = _CLOSING.get(AlertOutcome(page.alert.outcome), "") if page.alert.outcome else ""
    return Runbook(
        kind,
        [] if closing else [ShownStep(s, n == current and not over) for n, s in enumerate(steps)],
        closing,
        page.guide is not None,
    )


def choose_kind(page: AlertData, ranks: AlertRanks | None) -> RunbookKind:
    """The kind of an alert: from what drives its verdict, else from its first fact."""
    if page.alert.cause in AlertCause.SILENT:
        return "silence"
    changes = read_changes(page.bad.evidence) if page.bad else []
    facts = [one for one in read_facts(page.bad.evidence) if one.news] if page.bad else []
    grave = [one.kind for one in facts if one.severity == VerdictKind.ROLL_BACK]
    driving = [one.metric for one in changes if one.drives and one.judged]
    if ranks is not None and not grave and not driving:
        return "ranks"
    regressed = [one.metric for one in changes if one.regressed and one.judged]
    return choose_runbook_kind([*grave, *driving, *regressed, *(one.kind for one in facts)])


def _read_facts(
    page: AlertData, kind: RunbookKind, traffic: CurrentTraffic, ranks: AlertRanks | None
) -> RunbookFacts:
    deployment, odd = page.alert.deployment, ranks.odd if ranks else None
    host, pid = (odd.host, ranks.pid) if ranks and odd else _find_process(page, kind)
    version, cause = deployment.version.name, find_cause(page)
    share = traffic.share
    return RunbookFacts(
        model=deployment.model.name,
        version=version,
        baseline=baseline_name(page),
        roll_back=page.alert.worst == VerdictKind.ROLL_BACK,
        moved=f"{numbers.percent(share)} of calls run {version}" if share is not None else "",
        level=_describe_level(page),
        host=host,
        rank=odd.rank if odd else None,
        pid=pid,
        job=ranks.job if ranks else "",
        frame=ranks.frame if ranks else "",
        cause=cause,
        fix=_find_fix(cause),
        written=fill_runbook_text(page.guide.text, page) if page.guide else "",
        address=fill_runbook_url(page),
        rolled_back=find_rollback_time(page) is not None,
        recovery=find_recovery_kind(page),
    )


def _describe_level(page: AlertData) -> str:
    """`p50 must return to 19.3 ms ±5%`: the level of the first latency that drives the alert."""
    changes = read_changes(page.bad.evidence) if page.bad else []
    for one in changes:
        if one.drives and one.named.kind == "latency" and one.baseline is not None:
            return f"{one.named.name} must return to {one.baseline_said} ±5%"
    return ""


def _find_fix(cause: str) -> str:
    """One line of code against the guard that the cause names."""
    found = find_varying_input(cause.partition("(guard: ")[2].rstrip(").") or cause)
    ways = list_guard_remedies(found, count_observed_values([cause]))
    return next((one.code for one in ways if one.code), "")


def _find_process(page: AlertData, kind: RunbookKind) -> tuple[str, int | None]:
    """Host and process ID of an affected instance, for kinds that need them; one query."""
    facts = read_facts(page.bad.evidence) if page.bad and kind in NEEDS_PROCESS else []
    named = [id for one in facts if one.news for id in (one.instances or ())[:1]]
    if not named:
        return "", None
    rows = for_project(Instance, page.alert.project).filter(instance_id=named[0])
    return rows.values_list("host", "pid").first() or ("", None)
