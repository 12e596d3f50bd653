"""Which alarms belong together because what they run on is the same, and what that is; it knows no
database and no clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from dashboard.common.unicode_safety import visible_name

MAX_ALARM_GAP = timedelta(minutes=10)
"""Alarms further apart than this are no sign of one change."""
MIN_OVERLAP_RATIO = 0.5
"""Of the machines of the smaller one, so many have to be the other's as well."""
MIN_ALARMED_RATIO = 0.5
"""What many models run on (a GPU type, say) counts only where so many of the models that run on it
alarm."""
TRAIT_KINDS = ("machine", "changed", "GPU", "driver", "torch")
"""What may be shared, the most telling first."""
DECISIVE_KINDS = ("machine", "changed")
"""What tells by itself; the others are often those of the whole fleet."""
MAX_TRAITS_NAMED, MAX_NAME_LENGTH = 3, 60
"""Things that a title names, and the characters of each."""

Trait = tuple[str, str]
"""One of KINDS, and which: ("machine", "gpu-7"), ("changed", "driver 570 to 580")."""


@dataclass(frozen=True)
class Alarm:
    """An alert, what it is about, and what that ran on when it opened."""

    id: int
    version: int
    model: int
    at: datetime
    traits: frozenset[Trait]

    @cached_property
    def machines(self) -> frozenset[Trait]:
        """Those that it runs on."""
        return frozenset(trait for trait in self.traits if trait[0] == "machine")


@dataclass(frozen=True)
class SharedTrait:
    """Something that several alarms have in common, and how many of them."""

    kind: str
    name: str
    alarms: int


def cluster_alarms(alarms: Iterable[Alarm], running: Mapping[Trait, int]) -> list[list[Alarm]]:
    """The alarms that share something and came within the window, as groups of two or more
    versions; in whatever order they are given.

    `running` says how many models run on something now; what is not in it is shared by nobody
    else."""
    ordered = sorted(alarms, key=lambda alarm: (alarm.at, alarm.id))
    root = {alarm.id: alarm.id for alarm in ordered}

    def find(one: int) -> int:
        while root[one] != one:
            root[one] = root[root[one]]
            one = root[one]
        return one

    having: dict[Trait, list[Alarm]] = {}
    for number, alarm in enumerate(ordered):
        apart = [one for one in ordered[:number] if alarm.at - one.at <= MAX_ALARM_GAP]
        for trait in alarm.traits:
            if apart:
                before = having.get(trait, ())
                earlier = (
                    []
                    if trait[0] in DECISIVE_KINDS
                    else [one for one in before if alarm.at - one.at <= MAX_ALARM_GAP]
                )
                joined = list(
                    _match_alarms(
                        alarm,
                        trait,
                        [one for one in apart if trait in one.traits],
                        earlier,
                        running,
                    )
                )
                for other in joined:
                    root[find(other.id)] = find(alarm.id)
                if joined:
                    apart = [one for one in apart if find(one.id) != find(alarm.id)]
            having.setdefault(trait, []).append(alarm)
    found: dict[int, list[Alarm]] = {}
    for alarm in ordered:
        found.setdefault(find(alarm.id), []).append(alarm)
    return [
        members for members in found.values() if len({member.version for member in members}) > 1
    ]


def find_shared_traits(alarms: Sequence[Alarm], running: Mapping[Trait, int]) -> list[SharedTrait]:
    """What at least two versions of these have in common, what most share and what tells most
    first."""
    counts = Counter(trait for alarm in alarms for trait in alarm.traits)
    several = [trait for trait, count in counts.items() if count > 1]
    telling = [
        trait
        for trait in several
        if _is_significant(trait, [one for one in alarms if trait in one.traits], running)
    ]
    telling.sort(key=lambda trait: (-counts[trait], TRAIT_KINDS.index(trait[0]), trait[1]))
    return [SharedTrait(kind, name, counts[kind, name]) for kind, name in telling]


def format_group_title(alarms: int, shared: Sequence[SharedTrait]) -> str:
    """`Environment: 3 alerts share machine gpu-7, driver 570 to 580 (2 of 3)`."""
    return f"Environment: {alarms} alerts share {format_shared_traits(alarms, shared)}"


def format_shared_traits(alarms: int, shared: Sequence[SharedTrait]) -> str:
    """The first few of what is shared, each with how many share it where that is not all."""
    names = [_format_trait(one, alarms) for one in shared[:MAX_TRAITS_NAMED]]
    more = [f"{len(shared) - MAX_TRAITS_NAMED} more"] if len(shared) > MAX_TRAITS_NAMED else []
    return ", ".join([*names, *more]) or "what they run on"


def _match_alarms(
    alarm: Alarm,
    trait: Trait,
    apart: Sequence[Alarm],
    earlier: Sequence[Alarm],
    running: Mapping[Trait, int],
) -> Iterable[Alarm]:
    """Those of `apart` that this trait puts beside the alarm; several deployments of one version
    alone are no sign of the environment."""
    if trait[0] in DECISIVE_KINDS:
        return [
            one
            for one in apart
            if one.version != alarm.version and (trait[0] != "machine" or _overlap(alarm, one))
        ]
    return apart if _is_significant(trait, [*earlier, alarm], running) else ()


def _is_significant(trait: Trait, having: Sequence[Alarm], running: Mapping[Trait, int]) -> bool:
    if len({one.version for one in having}) < 2:
        return False
    return trait[0] in DECISIVE_KINDS or len(
        {one.model for one in having}
    ) >= MIN_ALARMED_RATIO * running.get(trait, 0)


def _overlap(one: Alarm, other: Alarm) -> bool:
    smaller = min(len(one.machines), len(other.machines))
    return len(one.machines & other.machines) >= MIN_OVERLAP_RATIO * smaller


def _format_trait(one: SharedTrait, alarms: int) -> str:
    name = visible_name(one.name)
    name = name if len(name) <= MAX_NAME_LENGTH else name[: MAX_NAME_LENGTH - 1] + "\u2026"
    words = name if one.kind == "changed" else f"{one.kind} {name}"
    return words if one.alarms == alarms else f"{words} ({one.alarms} of {alarms})"
