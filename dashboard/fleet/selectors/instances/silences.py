"""Silences: models, or the whole fleet, whose instances stopped reporting together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from dashboard.fleet.fold.roles import is_helper
from dashboard.fleet.metrics.silence import InstanceSpan, Silence, find_silence
from dashboard.fleet.models import Instance
from dashboard.fleet.selectors.instances.instance_states import has_ended, is_silent
from dashboard.fleet.selectors.instances.recent_instances import RecentInstance


@dataclass(frozen=True)
class Silences:
    """Silence of more than half of all instances (`fleet`), and of more than half of a model's
    instances (`models`)."""

    fleet: Silence | None
    models: dict[int, Silence]


def find_silences(instances: Iterable[Instance | RecentInstance], now: datetime) -> Silences:
    """Return the silences; ended, starting and helper processes do not count."""
    lives = [
        InstanceSpan(
            one.model_id,
            one.started_at.timestamp(),
            one.last_seen_at.timestamp(),
            is_silent(one, now),
        )
        for one in instances
        if one.active_minute is not None and not has_ended(one) and not is_helper(one)
    ]
    by_model: dict[int, list[InstanceSpan]] = defaultdict(list)
    for life in lives:
        by_model[life.model].append(life)
    found = ((model, find_silence(own)) for model, own in by_model.items())
    return Silences(
        find_silence(lives), {model: silence for model, silence in found if silence is not None}
    )


def find_most_silent_version(
    instances: Sequence[RecentInstance], silence: Silence, now: datetime
) -> tuple[int, str]:
    """Return the ModelVersion.id and environment with the most silent instances."""
    silent = [one for one in instances if one.model_id in silence.models and is_silent(one, now)]
    counts = Counter((one.version_id, one.environment) for one in silent)
    return max(counts, key=lambda place: (counts[place], place))
