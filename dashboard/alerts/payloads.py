"""Message payload as JSON: the only source for all channels, and the `data` of generic webhooks.
Keys are only added, never removed."""

from __future__ import annotations

from typing import TypedDict
from urllib.parse import quote

from dashboard.alerts import links
from dashboard.alerts.evidence_lines import EvidenceLine, select_strongest_evidence
from dashboard.alerts.models import Alert, AlertCause, AlertState, Channel, RollbackGuide
from dashboard.common.clock import at_minute
from dashboard.projects.models import Project
from dashboard.regressions.evidence_reader import read_onset
from dashboard.regressions.models import Verdict


class EntityRef(TypedDict):
    """An object with an ID and a name."""

    id: int
    name: str


class AlertPayload(TypedDict):
    """An alert and its state. Times are ISO 8601 in UTC; `id` is the name people use, such as
    A-418."""

    id: str
    number: int
    state: str
    severity: str
    cause: str
    opened_at: str
    resolved_at: str | None
    outcome: str


class DigestLine(TypedDict):
    """One alert in a digest, with its latest news."""

    id: str
    kind: str
    severity: str
    model: str
    environment: str
    version: str
    simulated: bool
    text: str
    link: str | None


class GroupPayload(TypedDict):
    """Alerts that belong together: kind "environment" with the shared traits in words, or kind
    "version" for one version in several environments.

    `alerts` lists the members at the time of the message, up to a maximum."""

    kind: str
    title: str
    alerts: list[str]
    link: str


class OnsetPayload(TypedDict):
    """The times between which a change began."""

    earliest: str
    latest: str


class PayloadLinks(TypedDict):
    """Links to pages; None if there is no page."""

    alert: str | None
    evidence: str | None
    roll_back_guide: str | None
    project: str
    alerts: str


class MessagePayload(TypedDict):
    """The complete content of a message. In a channel test, `alert` and all fields that depend on
    it are None or empty.

    `sentence` is the alert's verdict in words, and `news` how the alert ended. `covers` lists the
    IDs of earlier, undelivered messages that this message replaces. `alerts` has one line per alert
    in a digest and is empty otherwise. `group` is the group of this alert or of all alerts in the
    digest."""

    project: EntityRef
    slug: str
    alert: AlertPayload | None
    model: EntityRef | None
    environment: str
    version: EntityRef | None
    baseline: EntityRef | None
    simulated: bool
    sentence: str
    cause: str
    since: str | None
    onset: OnsetPayload | None
    evidence: list[EvidenceLine]
    roll_back_guide: str
    news: str
    covers: list[str]
    alerts: list[DigestLine]
    links: PayloadLinks
    group: GroupPayload | None


def build_alert_payload(
    *, alert: Alert, verdict: Verdict | None, news: str = "", covers: list[str] | None = None
) -> MessagePayload:
    """Payload of an alert in its current state, with the evidence of the verdict."""
    if alert.cause in AlertCause.SILENT:
        return _build_silence_payload(alert, news, covers)
    deployment, project = alert.deployment, alert.project
    bad = _find_alert_verdict(alert, verdict)
    # All parts of a message about an open alert use its last bad verdict. A message about a
    # resolved alert uses the values of the verdict that ended it.
    verdict = verdict if alert.state == AlertState.RESOLVED and verdict else bad
    baseline = next((one.baseline.version for one in (verdict, bad) if one and one.baseline), None)
    guide = RollbackGuide.objects.filter(project=project, model_name=deployment.model.name).first()
    version, before = deployment.version.name, baseline.name if baseline else ""
    return MessagePayload(
        project=EntityRef(id=project.pk, name=project.name),
        slug=project.slug,
        alert=_alert(alert),
        model=EntityRef(id=deployment.model.pk, name=deployment.model.name),
        environment=deployment.environment,
        version=EntityRef(id=deployment.version.pk, name=version),
        baseline=EntityRef(id=baseline.pk, name=baseline.name) if baseline else None,
        simulated=deployment.model.simulated,
        sentence=bad.sentence if bad else alert.title,
        cause=verdict.cause if verdict else "",
        since=at_minute(verdict.since_minute).isoformat()
        if verdict and verdict.since_minute is not None
        else None,
        onset=build_onset_payload(verdict),
        evidence=select_strongest_evidence(verdict.evidence) if verdict else [],
        roll_back_guide=_fill_placeholders(guide.text, version, before) if guide else "",
        news=news,
        covers=covers or [],
        alerts=[],
        group=None,
        links=PayloadLinks(
            alert=links.alert_url(project=project.slug, number=alert.number),
            evidence=links.compare_url(
                project=project.slug,
                model_id=deployment.model.pk,
                baseline_id=baseline.pk if baseline else None,
                candidate_id=deployment.version.pk,
            ),
            roll_back_guide=(
                _fill_placeholders(guide.url, quote(version, safe=""), quote(before, safe=""))
                or None
            )
            if guide
            else None,
            project=links.project_url(project=project.slug),
            alerts=links.alerts_url(project=project.slug),
        ),
    )


def build_onset_payload(verdict: Verdict | None) -> OnsetPayload | None:
    """The times between which the earliest change behind a verdict began; None if unknown."""
    found = read_onset(verdict.evidence) if verdict else None
    if found is None:
        return None
    earliest, latest = (at_minute(minute).isoformat() for minute in found)
    return OnsetPayload(earliest=earliest, latest=latest)


def _build_silence_payload(alert: Alert, news: str, covers: list[str] | None) -> MessagePayload:
    """Payload of a silence alert. It has no version, so there is no baseline and no rollback."""
    model = None if alert.cause == AlertCause.FLEET_SILENCE else alert.deployment.model
    facts = _build_project_payload(alert.project, f"{alert.title}.")
    facts["alert"], facts["news"], facts["covers"] = _alert(alert), news, covers or []
    facts["model"] = EntityRef(id=model.pk, name=model.name) if model else None
    facts["environment"] = alert.deployment.environment if model else ""
    facts["simulated"] = alert.deployment.model.simulated
    facts["since"] = alert.opened_at.isoformat()
    facts["links"]["alert"] = links.alert_url(project=alert.project.slug, number=alert.number)
    return facts


def build_channel_test_payload(*, channel: Channel) -> MessagePayload:
    """Payload of a channel test."""
    return _build_project_payload(
        channel.project,
        f"Test notification. Alerts for {channel.project.name} will be sent to {channel.name}.",
    )


def build_digest_payload(
    *,
    channel: Channel,
    replaced: list[tuple[str, MessagePayload]],
    covers: list[str],
    group: GroupPayload | None = None,
) -> MessagePayload:
    """Payload of a digest: the latest news of each alert, the worst first.

    `replaced` holds kind and payload of every message that the digest replaces, oldest first; a
    replaced message may be a digest too."""
    latest: dict[str, DigestLine] = {}
    for kind, earlier in replaced:
        alone = [_digest_line(kind, earlier, earlier["alert"])] if earlier["alert"] else []
        latest.update((line["id"], line) for line in (*earlier["alerts"], *alone))
    lines = sorted(
        latest.values(),
        key=lambda line: (line["kind"] == "resolved", line["severity"] != "roll_back"),
    )
    over = sum(line["kind"] == "resolved" for line in lines)
    counts = [f"{count} {words}" for count, words in (*_counts(lines), (over, "resolved")) if count]
    said = (
        group["title"] + "."
        if group
        else f"{len(lines)} alert{'s' if len(lines) > 1 else ''} in {channel.project.name}:"
    )
    facts = _build_project_payload(
        channel.project, f"{said} {', '.join(counts)}{' in this message' if group else ''}."
    )
    if group:
        facts["group"], facts["links"]["alerts"] = group, group["link"]
    facts["alerts"], facts["covers"] = lines, covers
    facts["simulated"] = all(line["simulated"] for line in lines)
    return facts


def _counts(lines: list[DigestLine]) -> list[tuple[int, str]]:
    going = [line["severity"] for line in lines if line["kind"] != "resolved"]
    return [(going.count("roll_back"), "ROLL BACK"), (going.count("watch"), "WATCH")]


def _digest_line(kind: str, facts: MessagePayload, alert: AlertPayload) -> DigestLine:
    return DigestLine(
        id=alert["id"],
        kind=kind,
        severity=alert["severity"],
        model=facts["model"]["name"] if facts["model"] else "",
        environment=facts["environment"],
        version=facts["version"]["name"] if facts["version"] else "",
        simulated=facts["simulated"],
        text=facts["news"] or facts["sentence"],
        link=facts["links"]["alert"],
    )


def _build_project_payload(project: Project, sentence: str) -> MessagePayload:
    """Payload without a version."""
    where = PayloadLinks(
        alert=None,
        evidence=None,
        roll_back_guide=None,
        project=links.project_url(project=project.slug),
        alerts=links.alerts_url(project=project.slug),
    )
    return MessagePayload(
        project=EntityRef(id=project.pk, name=project.name),
        slug=project.slug,
        alert=None,
        model=None,
        environment="",
        version=None,
        baseline=None,
        simulated=False,
        sentence=sentence,
        cause="",
        since=None,
        onset=None,
        evidence=[],
        roll_back_guide="",
        news="",
        covers=[],
        alerts=[],
        group=None,
        links=where,
    )


def _find_alert_verdict(alert: Alert, verdict: Verdict | None) -> Verdict | None:
    """The latest verdict with the alert's severity; the newest verdict may have another kind by
    now."""
    if verdict is not None and verdict.kind == alert.severity:
        return verdict
    rows = Verdict.objects.filter(
        deployment_id=alert.deployment_id, kind=alert.severity
    ).select_related("baseline__version")
    return rows.order_by("-pk").first()


def _alert(alert: Alert) -> AlertPayload:
    return AlertPayload(
        id=f"A-{alert.number}",
        number=alert.number,
        state=alert.state,
        severity=alert.severity,
        cause=alert.cause,
        opened_at=alert.opened_at.isoformat(),
        resolved_at=alert.resolved_at.isoformat() if alert.resolved_at else None,
        outcome=alert.outcome,
    )


def _fill_placeholders(template: str, version: str, baseline: str) -> str:
    return template.replace("{version}", version).replace("{baseline}", baseline)
