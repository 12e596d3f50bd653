"""Timeline of an alert, with the deliveries and the recovery chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import quote

from dashboard.alerts.models import (
    Alert,
    AlertCause,
    AlertEvent,
    Delivery,
    DeliveryState,
    EventKind,
)
from dashboard.common import clock
from dashboard.fleet.metrics.time_bins import TimeBins
from dashboard.fleet.models import DeploymentMark
from dashboard.fleet.retention import find_first_kept_minute
from dashboard.fleet.selectors.versions.quantiles import P50Level, read_p50_levels
from dashboard.regressions.evidence_reader import read_onset
from dashboard.regressions.models import Verdict, VerdictKind
from dashboard.ui.charts.fact_lines import FactLine, fact_lines
from dashboard.ui.charts.recovery_chart import RecoveryChart, choose_span, recovery_draw
from dashboard.ui.layout.change_rows import ChangeRow, build_change_rows
from dashboard.ui.pages.alerts.affected_hosts import FactHosts, list_fact_hosts
from dashboard.ui.pages.alerts.queries import AlertData
from dashboard.vocabulary import numbers

_PINS = {
    VerdictKind.ROLL_BACK: "rb",
    VerdictKind.WATCH: "wt",
    VerdictKind.HEALTHY: "ok",
}
_MARKS = {
    EventKind.EVIDENCE: ("worse", ""),
    EventKind.ACKNOWLEDGED: ("alert-acknowledged", ""),
    EventKind.SNOOZED: ("alert-snoozed", ""),
    EventKind.REOPENED: ("watch", "wt"),
    EventKind.RESOLVED: ("healthy", "ok"),
    EventKind.DISMISSED: ("failed", ""),
    EventKind.DELIVERED: ("mail", ""),
    EventKind.FAILED: ("failed", ""),
    EventKind.ROLLBACK_SEEN: ("deployment", ""),
    EventKind.LEVEL_BACK: ("healthy", "ok"),
    EventKind.LEVEL_NOT_BACK: ("watch", "wt"),
    EventKind.LEVEL_UNKNOWN: ("not_enough_data", ""),
    EventKind.GROUPED: ("same", ""),
    EventKind.REPEATED: ("mail", ""),
    EventKind.ESCALATED: ("mail", ""),
}
_HEADS = {
    EventKind.EVIDENCE: "More evidence.",
    EventKind.REOPENED: "Reopened.",
    EventKind.RESOLVED: "Resolved.",
    EventKind.DISMISSED: "False positive.",
    EventKind.DELIVERED: "Notification delivered.",
    EventKind.FAILED: "Notification failed.",
    EventKind.ROLLBACK_SEEN: "Rollback detected.",
    EventKind.LEVEL_BACK: "Recovered.",
    EventKind.LEVEL_NOT_BACK: "Not recovered.",
    EventKind.LEVEL_UNKNOWN: "Recovery unknown.",
    EventKind.GROUPED: "Related alerts.",
    EventKind.REPEATED: "Reminder sent.",
    EventKind.ESCALATED: "Escalated.",
}
_WITH_EVIDENCE = {EventKind.OPENED, EventKind.VERDICT, EventKind.EVIDENCE}


@dataclass(frozen=True)
class TimelineEvent:
    """One entry of the timeline."""

    at: datetime
    mark: str
    pin: str
    head: str
    text: str
    quoted: bool
    evidence: list[ChangeRow]
    after: str
    link: str = ""
    certain: list[FactLine] = field(default_factory=list)

    @property
    def pinned(self) -> str:
        """The CSS classes of the mark."""
        return f"pin {self.pin}"


@dataclass(frozen=True)
class SentMessage:
    """One notification with its delivery status."""

    channel: str
    what: str
    mark: str
    answer: str
    at: datetime
    again_at: datetime | None


def build_timeline(page: AlertData) -> list[TimelineEvent]:
    """Entries, newest first; the deployment itself is the oldest entry."""
    deployed = clock.at_minute(page.alert.deployment.started_minute)
    lines = [_moment(event, page.alert) for event in page.events]
    version = page.alert.deployment.version.name
    first = TimelineEvent(
        deployed,
        "deployment",
        "",
        f"{version} deployed",
        f"to {page.alert.deployment.environment}.",
        False,
        [],
        "",
    )
    if page.alert.cause == AlertCause.FLEET_SILENCE:
        return sorted(lines, key=lambda moment: moment.at, reverse=True)
    return sorted(
        [*lines, *map(_posted, page.posted), first], key=lambda moment: moment.at, reverse=True
    )


def list_sent_messages(page: AlertData) -> list[SentMessage]:
    """The notifications of the alert, newest first."""
    return [_sent(delivery) for delivery in page.deliveries]


def build_recovery_chart(page: AlertData) -> RecoveryChart | None:
    """p50 of both versions from before the deployment until half an hour after the end."""
    alert, deployment = page.alert, page.alert.deployment
    baseline = _baseline(page)
    until = clock.minute_of(clock.unix())
    if alert.resolved_at is not None:
        until = min(until, clock.minute_of(alert.resolved_at.timestamp()) + 30)
    until = max(
        until, deployment.started_minute
    )  # a clock that runs ahead can report a later start
    span = choose_span(
        deployment.started_minute,
        until,
        minutes_from=find_first_kept_minute(project=alert.project, now=clock.unix()),
    )
    ids = [one for one in (baseline, deployment.version_id) if one is not None]
    window = TimeBins(
        span.start, span.start + ((span.end - span.start) // span.bin + 1) * span.bin, span.bin
    )
    levels = read_p50_levels(
        project_id=alert.project_id,
        version_ids=ids,
        environment=deployment.environment,
        window=window,
    )
    roles = [(1 if one == baseline else 2, _line(levels, one)) for one in ids]
    marks = [
        (deployment.started_minute, "deployment"),
        (clock.minute_of(alert.opened_at.timestamp()), "alert"),
    ]
    marks += [
        (clock.minute_of(event.at.timestamp()), "deployment")
        for event in page.events
        if event.kind == EventKind.ROLLBACK_SEEN
    ]
    names = {deployment.version_id: deployment.version.name, baseline or 0: baseline_name(page)}
    return recovery_draw(
        span,
        roles,
        marks,
        _level(levels, baseline, window, deployment.started_minute),
        _bounds(levels, ids, names),
        find_onset(page),
    )


def find_onset(page: AlertData) -> tuple[int, int] | None:
    """The minutes between which the regression began, from the newest verdict that has them."""
    verdicts = (verdict for verdict in list_alert_verdicts(page) if verdict is not None)
    return next(filter(None, (read_onset(verdict.evidence) for verdict in verdicts)), None)


def find_rollback_time(page: AlertData) -> datetime | None:
    """When the traffic was observed to have moved back."""
    return next((event.at for event in page.events if event.kind == EventKind.ROLLBACK_SEEN), None)


def find_recovery_kind(page: AlertData) -> str:
    """The event kind with the outcome of the rollback; empty while the outcome is unknown."""
    return next((event.kind for event in page.events if event.kind.startswith("level_")), "")


def baseline_name(page: AlertData) -> str:
    """The rollback target: the baseline of the newest verdict that has one."""
    for verdict in (page.alert.verdict, page.verdict):
        if verdict is not None and verdict.baseline is not None:
            return verdict.baseline.version.name
    return ""


def find_cause(page: AlertData) -> str:
    """The cause from the newest verdict that has one."""
    return next(
        (
            verdict.cause
            for verdict in list_alert_verdicts(page)
            if verdict is not None and verdict.cause
        ),
        "",
    )


def list_affected_hosts(page: AlertData) -> list[FactHosts]:
    """The hosts of the confirmed facts."""
    return list_fact_hosts(project=page.alert.project, verdicts=list_alert_verdicts(page))


def list_alert_verdicts(page: AlertData) -> list[Verdict | None]:
    """All verdicts while the alert was open, newest first."""
    return [page.verdict, page.alert.verdict, *(event.verdict for event in page.events)]


def compare_query(page: AlertData) -> str:
    """Query string of the Compare page for the two versions of the evidence."""
    baseline = _baseline(page)
    return (f"a={baseline}&" if baseline else "") + f"b={page.alert.deployment.version_id}"


def format_delay(alert: Alert, at: datetime | None) -> str:
    """The time since the deployment as text."""
    if at is None:
        return ""
    seconds = (at - clock.at_minute(alert.deployment.started_minute)).total_seconds()
    if seconds < 1:
        return "under 1\u00a0s"
    return numbers.duration(seconds // 60 * 60 if seconds >= 60 else round(seconds))


def fill_runbook_text(text: str, page: AlertData) -> str:
    """The runbook text with both versions filled in."""
    return text.replace("{version}", page.alert.deployment.version.name).replace(
        "{baseline}", baseline_name(page)
    )


def fill_runbook_url(page: AlertData) -> str:
    """The runbook URL with both versions filled in; empty for a URL that a browser would execute
    instead of open."""
    version, before = (
        quote(name, safe="") for name in (page.alert.deployment.version.name, baseline_name(page))
    )
    address = (
        page.guide.url.replace("{version}", version).replace("{baseline}", before)
        if page.guide
        else ""
    )
    return address if address.startswith(("https://", "http://")) else ""


def _baseline(page: AlertData) -> int | None:
    for verdict in (page.alert.verdict, page.verdict):
        if verdict is not None and verdict.baseline is not None:
            return verdict.baseline.version_id
    return None


def _moment(event: AlertEvent, alert: Alert) -> TimelineEvent:
    kind = EventKind(event.kind) if event.kind in EventKind.values else EventKind.EVIDENCE
    mark, pin = _MARKS.get(kind, ("not_enough_data", ""))
    head, quoted = _HEADS.get(kind, ""), False
    if event.verdict is not None and kind in (EventKind.OPENED, EventKind.VERDICT):
        mark, pin = event.verdict.kind, _PINS.get(VerdictKind(event.verdict.kind), "")
        head = VerdictKind(event.verdict.kind).label + (
            ", alert opened." if kind == EventKind.OPENED else "."
        )
    if kind == EventKind.ACKNOWLEDGED:
        head, quoted = (
            f"{event.actor_name} acknowledged" + (":" if event.text else "."),
            bool(event.text),
        )
    if kind == EventKind.SNOOZED:
        head = f"{event.actor_name} snoozed the alert."
    shown = (
        build_change_rows(event.verdict.evidence, event.verdict.kind)
        if event.verdict and kind in _WITH_EVIDENCE
        else []
    )
    timed = alert.cause == AlertCause.REGRESSION and kind in (
        EventKind.OPENED,
        EventKind.VERDICT,
        EventKind.ROLLBACK_SEEN,
    )
    later = f"after {format_delay(alert, event.at)}" if timed else ""
    known = event.verdict.evidence if event.verdict and kind in _WITH_EVIDENCE else None
    certain = fact_lines(known, sentence=event.text)
    return TimelineEvent(
        event.at, mark, pin, head or "Opened.", event.text, quoted, shown, later, certain=certain
    )


def _posted(told: DeploymentMark) -> TimelineEvent:
    by = f" by {told.by}" if told.by else ""
    return TimelineEvent(
        told.at,
        "deployment",
        "",
        f"CI: {told.version_name} deployed{by}.",
        told.note,
        False,
        [],
        "",
        told.link,
    )


def _sent(delivery: Delivery) -> SentMessage:
    channel = f"{delivery.channel.get_kind_display()} {delivery.channel.name}"
    status = f"{delivery.last_status} " if delivery.last_status else ""
    answer = f"{status}{delivery.last_answer}".strip()
    tries = (
        f" after {numbers.plural(delivery.attempts, 'attempt')}" if delivery.attempts > 1 else ""
    )
    state = DeliveryState(delivery.state)
    mark = f"delivery-{state.value}"
    if state == DeliveryState.DELIVERED:
        said = f"delivered{tries}: {answer}" if answer else f"delivered{tries}"
        return SentMessage(
            channel, delivery.get_kind_display(), mark, said, delivery.created_at, None
        )
    if state == DeliveryState.WAITING:
        said, again = (
            (f"{answer.removesuffix('.')}, next attempt", delivery.next_attempt_at)
            if answer
            else ("waiting", None)
        )
        return SentMessage(
            channel, delivery.get_kind_display(), mark, said, delivery.created_at, again
        )
    if state == DeliveryState.HELD:
        return SentMessage(
            channel,
            delivery.get_kind_display(),
            mark,
            "queued for delivery",
            delivery.created_at,
            delivery.held_until,
        )
    if state == DeliveryState.MERGED:
        return SentMessage(
            channel,
            delivery.get_kind_display(),
            mark,
            "merged into a later notification",
            delivery.created_at,
            None,
        )
    said = f"failed{tries}: {answer}" if answer else f"failed{tries}"
    return SentMessage(channel, delivery.get_kind_display(), mark, said, delivery.created_at, None)


def _line(levels: Mapping[int, Mapping[int, P50Level]], version: int) -> dict[int, float]:
    return {
        place: level.value
        for place, level in levels.get(version, {}).items()
        if level.value is not None
    }


def _bounds(
    levels: Mapping[int, Mapping[int, P50Level]], ids: Sequence[int], names: Mapping[int, str]
) -> list[str]:
    """Newest bound and mean of each version without points, because its p50 lies in an engine's
    first bucket."""
    known = {
        one: [level.known for _, level in sorted(levels.get(one, {}).items()) if level.known]
        for one in ids
    }
    return [
        f"{names[one]} {numbers.below(found[-1].bound, found[-1].mean)}"
        for one, found in known.items()
        if found
    ]


def _level(
    levels: Mapping[int, Mapping[int, P50Level]],
    baseline: int | None,
    window: TimeBins,
    deployed: int,
) -> float | None:
    """The baseline's p50 before the deployment, or over all of its bins if it started with the
    deployment; None if only a bound is known."""
    line = levels.get(baseline, {}) if baseline is not None else {}
    before = [
        level for place, level in line.items() if window.first + place * window.step < deployed
    ]
    chosen = sorted(before or line.values(), key=lambda level: level.at_most)
    return chosen[len(chosen) // 2].value if chosen else None
