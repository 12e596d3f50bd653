"""Groups of the Alerts list: alerts of one cause share a group row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.alerts.models import Alert, AlertState
from dashboard.vocabulary import numbers
from dashboard.vocabulary.severity import rank_severity


@dataclass(frozen=True)
class AlertRows:
    """A group with its alerts, or one alert alone, which has no title."""

    title: str
    alerts: list[Alert]
    key: str = ""
    query: str = ""
    """Query of the address that lists the alerts of the group; empty for a common cause."""

    @property
    def tone(self) -> str:
        """The worst verdict of the unresolved alerts."""
        open_now = [one for one in self.alerts if one.state != AlertState.RESOLVED]
        return max((one.worst for one in open_now), key=rank_severity, default="")

    @property
    def places(self) -> str:
        """`2 alerts, 2 environments`."""
        alerts = numbers.plural(len(self.alerts), "alert")
        environments = len({one.deployment.environment for one in self.alerts})
        models = len({one.deployment.model_id for one in self.alerts})
        parts = [alerts]
        if models > 1:
            parts.append(numbers.plural(models, "model"))
        if environments > 1:
            parts.append(numbers.plural(environments, "environment"))
        return ", ".join(parts)

    @property
    def open_numbers(self) -> str:
        """The numbers of the unacknowledged alerts, for the action of the group."""
        return " ".join(str(one.number) for one in self.alerts if one.state == AlertState.OPEN)

    @property
    def open_count(self) -> int:
        """Number of these alerts."""
        return sum(one.state == AlertState.OPEN for one in self.alerts)


def group_alerts(alerts: Sequence[Alert], *, grouped: bool = True) -> list[AlertRows]:
    """Alerts by common environment, by version in several environments, or by cause. A group is at
    the place of its first alert."""
    if not grouped:
        return [AlertRows("", [one]) for one in alerts]
    found: dict[str, list[Alert]] = {}
    for one in alerts:
        found.setdefault(_key(one), []).append(one)
    return [
        _group(key, members) if len(members) > 1 else AlertRows("", members)
        for key, members in found.items()
    ]


def _key(one: Alert) -> str:
    if one.group_id is not None:
        return f"group {one.group_id}"
    if vars(one).get("elsewhere"):
        return f"version {one.deployment.version_id}"
    reason = vars(one).get("reason")
    # Only unresolved alerts have a current cause: an old alert with the same text is another one.
    if reason and one.state != AlertState.RESOLVED:
        return f"cause {reason}"
    return f"alert {one.pk}"


def _group(key: str, members: list[Alert]) -> AlertRows:
    first = members[0]
    if key.startswith("group ") and first.group is not None:
        return AlertRows(first.group.title, members, key, f"?group={first.group_id}")
    if key.startswith("version "):
        version = first.deployment.version
        title = f"{first.deployment.model.name} {version.name}"
        return AlertRows(title, members, key, f"?version={version.pk}")
    return AlertRows(key.removeprefix("cause ").removesuffix("."), members, key)
