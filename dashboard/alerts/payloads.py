"""What a message tells, as JSON: the one source for every channel, and the `data` of generic
webhooks. Keys are only ever added."""

from __future__ import annotations

from typing import TypedDict
from urllib.parse import quote

from dashboard.alerts import links
from dashboard.alerts.evidence_lines import EvidenceLine, select_strongest_evidence
from dashboard.alerts.models import Alert, AlertCause, AlertState, Channel, RollbackGuide
from dashboard.common.clock import at_minute
from dashboard.projects.models import Project
from dashboard.regressions.models import Verdict


class EntityRef(TypedDict):
    """Something with an id and a name."""

    id: int
    name: str


class AlertPayload(TypedDict):
    """Which alert, and where it stands. Times are ISO 8601 in UTC; `id` is the name people use:
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
    """One alert among several: what was last to tell of it."""

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
    """Several alerts that belong together: "environment", with what they share in words, or one
    "version" in several environments.

    `alerts` are those that the group had when the message was made, the first ones of many."""

    kind: str
    title: str
    alerts: list[str]
    link: str


class PayloadLinks(TypedDict):
    """Pages to open; None where there is none."""

    alert: str | None
    evidence: str | None
    roll_back_guide: str | None
    project: str
    alerts: str


class MessagePayload(TypedDict):
    """Everything there is to tell. A test of a channel has no alert, and what hangs on it is None
    or empty.

    `sentence` is what the alert stands for; `news`, when there is any, how it ended;
    `covers` lists the ids of earlier messages that were not delivered and that this one stands for;
    `alerts` says what a message about several of them tells of each, and is empty in every other;
    `group` is what this alert, or all of those, belong to."""

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
    """The alert as it is now, with the evidence of the verdict."""
    if alert.cause in AlertCause.SILENT:
        return _build_silence_payload(alert, news, covers)
    deployment, project = alert.deployment, alert.project
    bad = _find_alert_verdict(alert, verdict)
    # An open alert stands for its last bad verdict, in each part of a message; how it ended has the
    # numbers of the verdict that ended it.
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


def _build_silence_payload(alert: Alert, news: str, covers: list[str] | None) -> MessagePayload:
    """Instances that stopped reporting are about no version: there is nothing to compare and
    nothing to roll back."""
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
    """What a test of a channel tells."""
    return _build_project_payload(
        channel.project,
        f"This is a test of the channel {channel.name}: alerts of {channel.project.name} "
        "will arrive here.",
    )


def build_digest_payload(
    *,
    channel: Channel,
    told: list[tuple[str, MessagePayload]],
    covers: list[str],
    group: GroupPayload | None = None,
) -> MessagePayload:
    """What one message about several alerts tells: of each the last thing there was to say, the
    worst first.

    `told` holds the kind and the facts of every message it stands for, the oldest first; some may
    be about several alerts themselves."""
    latest: dict[str, DigestLine] = {}
    for kind, earlier in told:
        alone = [_digest_line(kind, earlier, earlier["alert"])] if earlier["alert"] else []
        latest.update((line["id"], line) for line in (*earlier["alerts"], *alone))
    lines = sorted(
        latest.values(),
        key=lambda line: (line["kind"] == "resolved", line["severity"] != "roll_back"),
    )
    over = sum(line["kind"] == "resolved" for line in lines)
    counts = [f"{count} {words}" for count, words in (*_counts(lines), (over, "over")) if count]
    said = (
        group["title"] + "."
        if group
        else f"{len(lines)} alert{'s' if len(lines) > 1 else ''} of {channel.project.name}:"
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
    """A message that is about no version."""
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
        evidence=[],
        roll_back_guide="",
        news="",
        covers=[],
        alerts=[],
        group=None,
        links=where,
    )


def _find_alert_verdict(alert: Alert, verdict: Verdict | None) -> Verdict | None:
    """The verdict that the alert stands for; the newest verdict may be another one by now."""
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
