"""Alert correlation: finds alerts that share machines, hardware or software changes, and names the
shared traits; uses no database and no clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from dashboard.common.unicode_safety import visible_name

MAX_ALARM_GAP = timedelta(minutes=10)
"""Maximum time between two alarms with a common cause."""
MIN_OVERLAP_RATIO = 0.5
"""Minimum share of the smaller alarm's machines that both alarms must have in common."""
MIN_ALARMED_RATIO = 0.5
"""Minimum share of the models with a common trait (a GPU type, for example) that must alarm before
the trait counts."""
TRAIT_KINDS = ("machine", "changed", "GPU", "driver", "torch")
"""Kinds of traits that alarms may share, the most significant first."""
DECISIVE_KINDS = ("machine", "changed")
"""Kinds that are significant on their own; the other kinds often apply to the whole fleet."""
MAX_TRAITS_NAMED, MAX_NAME_LENGTH = 3, 60
"""Maximum number of traits in a title, and maximum length of each name."""

Trait = tuple[str, str]
"""A kind from TRAIT_KINDS and a name: `("machine", "gpu-7")`, `("changed", "driver 570 to
580")`."""


@dataclass(frozen=True)
class Alarm:
    """An alert, its version and model, and the traits of its environment when it opened."""

    id: int
    version: int
    model: int
    at: datetime
    traits: frozenset[Trait]

    @cached_property
    def machines(self) -> frozenset[Trait]:
        """The machines that the version runs on."""
        return frozenset(trait for trait in self.traits if trait[0] == "machine")


@dataclass(frozen=True)
class SharedTrait:
    """A trait that several alarms have in common, and the number of those alarms."""

    kind: str
    name: str
    alarms: int


def cluster_alarms(alarms: Iterable[Alarm], running: Mapping[Trait, int]) -> list[list[Alarm]]:
    """Groups of alarms from two or more versions that share a trait and opened within
    MAX_ALARM_GAP. The result does not depend on the input order.

    `running` maps a trait to the number of models that have it now; a trait that is missing there
    belongs to no other model."""
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
    """Traits that at least two of these versions have in common, sorted by number of alarms, then
    by significance."""
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
    """`Possible common cause: 3 alerts share machine gpu-7, driver 570 to 580 (2 of 3)`."""
    return f"Possible common cause: {alarms} alerts share {format_shared_traits(alarms, shared)}"


def format_shared_traits(alarms: int, shared: Sequence[SharedTrait]) -> str:
    """The first shared traits, each with its number of alarms unless all alarms share it."""
    names = [_format_trait(one, alarms) for one in shared[:MAX_TRAITS_NAMED]]
    more = [f"{len(shared) - MAX_TRAITS_NAMED} more"] if len(shared) > MAX_TRAITS_NAMED else []
    return ", ".join([*names, *more]) or "the same environment"


def _match_alarms(
    alarm: Alarm,
    trait: Trait,
    apart: Sequence[Alarm],
    earlier: Sequence[Alarm],
    running: Mapping[Trait, int],
) -> Iterable[Alarm]:
    """The alarms of `apart` that this trait connects with the alarm. Several deployments of one
    version alone are no evidence of a common cause."""
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
