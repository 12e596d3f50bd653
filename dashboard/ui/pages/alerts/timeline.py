"""Activity of an alert: its events with their evidence, and its notifications."""

from __future__ import annotations

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
from dashboard.fleet.models import DeploymentMark
from dashboard.regressions.evidence_reader import read_onset
from dashboard.regressions.models import VerdictKind
from dashboard.ui.charts.fact_lines import FactLine, fact_lines
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
    EventKind.UNDONE: ("watch", "wt"),
    EventKind.NOTE: ("note", ""),
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
    def marked(self) -> str:
        """The CSS classes of the mark."""
        return f"m {self.pin}"


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
    """Entries, newest first; the deployment itself is the oldest entry. The evidence of the page is
    not repeated."""
    deployed = clock.at_minute(page.alert.deployment.started_minute)
    shown = page.bad.pk if page.bad else None
    lines = [_moment(event, page.alert, shown) for event in page.events]
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


def find_onset(page: AlertData) -> tuple[int, int] | None:
    """The minutes between which the regression began, from the newest verdict that has them."""
    return next(filter(None, (read_onset(one.evidence) for one in page.verdicts)), None)


def find_rollback_time(page: AlertData) -> datetime | None:
    """When the traffic was observed to have moved back."""
    return next((event.at for event in page.events if event.kind == EventKind.ROLLBACK_SEEN), None)


def find_recovery_kind(page: AlertData) -> str:
    """The event kind with the outcome of the rollback; empty while the outcome is unknown."""
    return next((event.kind for event in page.events if event.kind.startswith("level_")), "")


def find_baseline_version(page: AlertData) -> tuple[int, str] | None:
    """ID and name of the rollback target: the baseline of the newest verdict that has one."""
    for verdict in (page.alert.verdict, page.verdict, *page.verdicts):
        if verdict is not None and verdict.baseline is not None:
            return verdict.baseline.version_id, verdict.baseline.version.name
    return None


def baseline_name(page: AlertData) -> str:
    """The name of the rollback target; empty if there is none."""
    found = find_baseline_version(page)
    return found[1] if found else ""


def find_cause(page: AlertData) -> str:
    """The cause from the newest verdict that has one."""
    return next((one.cause for one in page.verdicts if one.cause), "")


def list_affected_hosts(page: AlertData) -> list[FactHosts]:
    """The hosts of the confirmed facts."""
    return list_fact_hosts(project=page.alert.project, verdicts=page.verdicts)


def compare_query(page: AlertData) -> str:
    """Query string of the Compare page for the two versions of the evidence."""
    baseline = find_baseline_version(page)
    return (f"a={baseline[0]}&" if baseline else "") + f"b={page.alert.deployment.version_id}"


def build_delays(page: AlertData) -> list[tuple[str, str]]:
    """Time to detect, to acknowledge and to end, all from the deployment; those that are known."""
    alert, rolled_back = page.alert, find_rollback_time(page)
    if alert.cause in AlertCause.SILENT:
        return []
    ended = rolled_back or alert.resolved_at
    named = (
        ("Time to detect", alert.opened_at),
        ("Time to acknowledge", alert.acknowledged_at),
        ("Rolled back after" if rolled_back else "Ended after", ended),
    )
    return [(name, format_delay(alert, at)) for name, at in named if at is not None]


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


def _moment(event: AlertEvent, alert: Alert, shown_verdict: int | None) -> TimelineEvent:
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
    if kind == EventKind.NOTE:
        head, quoted = f"{event.actor_name}:", True
    if kind == EventKind.UNDONE:
        head = f"{event.actor_name} undid an action."
    if kind == EventKind.SNOOZED:
        head = f"{event.actor_name} snoozed the alert."
    shown = (
        build_change_rows(event.verdict.evidence, event.verdict.kind)
        if event.verdict and kind in _WITH_EVIDENCE and event.verdict.pk != shown_verdict
        else []
    )
    timed = alert.cause == AlertCause.REGRESSION and kind in (
        EventKind.OPENED,
        EventKind.VERDICT,
        EventKind.ROLLBACK_SEEN,
    )
    later = f"after {format_delay(alert, event.at)}" if timed else ""
    known = event.verdict.evidence if event.verdict and shown else None
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
