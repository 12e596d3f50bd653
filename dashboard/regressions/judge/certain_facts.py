"""Confirmed facts: findings that need no statistics. A fact is new if the baseline does not show
it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

from dashboard.regressions.judge.inputs import Arm
from dashboard.vocabulary.numbers import SPACE, count_share, percent

FactKind = Literal[
    "latched_eager",
    "stuck_compiling",
    "out_of_memory",
    "budget_burning",
    "stalled_calls",
    "parity",
    "shadow_parity",
    "non_finite",
    "ranks_diverged",
    "compiled_nothing",
]
Severity = Literal["roll_back", "watch", "known"]
Key = tuple[FactKind, str]

SEVERITIES: tuple[Severity, ...] = ("roll_back", "watch", "known")

KINDS_WITHOUT_CALLS: tuple[FactKind, ...] = ("stuck_compiling", "ranks_diverged", "parity")
"""Facts that prevent calls or are known before the first call. A version without calls reports
them, too."""
KINDS_WITHOUT_BASELINE: tuple[FactKind, ...] = (
    *("stuck_compiling", "ranks_diverged", "parity", "shadow_parity"),
    *("out_of_memory", "stalled_calls", "compiled_nothing"),
)
"""Facts that need no baseline: a process is compared with its own past, or ranks with each
other."""
ROLL_BACK_KINDS: tuple[FactKind, ...] = ("parity", "compiled_nothing")
"""Facts that ask for ROLL BACK if the baseline was observed to do it correctly."""
PLACES_NAMED = 3
FRESH_MINUTES = 60
"""Minutes for which an ended fact counts after it was last seen."""


@dataclass(frozen=True, slots=True)
class StallCounts:
    """Calls of the last half hour, stalled calls and their seconds. `budget` is the allowed share
    of stalled calls."""

    calls: int
    stalled: int
    seconds: float
    budget: float

    def words(self) -> str:
        """The share of stalled calls and the allowed share, as text."""
        share = (
            f"{count_share(self.stalled, self.calls, self.stalled / self.calls, 'calls')} waited "
            "for a compilation in the last half hour"
        )
        return (
            f"{share}, above the budget of {percent(self.budget)} ({self.seconds:,.0f}{SPACE}s in "
            "total)"
        )


@dataclass(frozen=True, slots=True)
class ObservedFact:
    """One confirmed fact of one instance. `about` separates facts of a kind, such as frames.

    `until` is the last time it was seen, None while it lasts. `why` is the agent's own text.
    `passed` marks the opposite of a fact: a golden batch with the right result, or a region that
    was served compiled.
    """

    kind: FactKind
    arm: Arm
    instance: str
    since: int
    about: str = ""
    why: str = ""
    until: int | None = None
    count: int = 1
    place: str = ""
    """Display name of the instance; empty where it does not matter."""
    passed: bool = False
    grave: bool = False
    """True if the budget is exceeded by enough to ask for ROLL BACK."""
    baseline_silent: bool = False
    """True if the agents of the baseline do not report the fact."""
    stalled: StallCounts | None = None
    """The counts of stalled calls behind `why`, to be summed over instances."""


@dataclass(frozen=True, slots=True)
class CertainFact:
    """The same fact on some of the candidate's instances. A fact that the baseline does not show
    asks for WATCH at most.

    ROLL BACK is possible for the kinds in ROLL_BACK_KINDS if the baseline passed, and for stalled
    calls far beyond their budget.
    """

    kind: FactKind
    severity: Severity
    about: str
    why: str
    since: int
    instances: tuple[str, ...]
    count: int
    on_baseline: int
    places: tuple[str, ...] = ()
    passed: int = 0
    """Further instances of the candidate on which the same golden batch passed."""
    passed_on_baseline: int = 0
    baseline_silent: bool = False


def group_certain_facts(
    facts: Iterable[ObservedFact], *, now_minute: int
) -> tuple[CertainFact, ...]:
    """The candidate's facts, new ones first. Facts that ended before the last hour are excluded."""
    groups: dict[Key, list[ObservedFact]] = {}
    baseline: dict[Key, set[str]] = {}
    passed: dict[tuple[Arm, Key], set[str]] = {}
    for fact in facts:
        key = (fact.kind, fact.about)
        if fact.passed:
            passed.setdefault((fact.arm, key), set()).add(fact.instance)
        elif fact.arm == "baseline":
            baseline.setdefault(key, set()).add(fact.instance)
        elif fact.until is None or now_minute - fact.until <= FRESH_MINUTES:
            groups.setdefault(key, []).append(fact)
    found = [
        _make_certain_fact(
            key,
            group,
            len(baseline.get(key, ())),
            len(passed.get(("candidate", key), ())),
            len(passed.get(("baseline", key), ())),
        )
        for key, group in groups.items()
        # Infinities may be intended, as in masked scores. They are new only if the baseline was
        # checked and has none.
        if key[0] != "non_finite" or ("baseline", key) in passed
    ]
    return tuple(
        sorted(
            found, key=lambda one: (SEVERITIES.index(one.severity), one.since, one.kind, one.about)
        )
    )


def _make_certain_fact(
    key: Key, group: list[ObservedFact], on_baseline: int, passed: int, passed_on_baseline: int
) -> CertainFact:
    return CertainFact(
        kind=key[0],
        severity=_severity(key, group, on_baseline, passed_on_baseline),
        about=key[1],
        why=_why(group),
        since=min(fact.since for fact in group),
        instances=tuple(sorted({fact.instance for fact in group})),
        count=sum(fact.count for fact in group),
        on_baseline=on_baseline,
        places=tuple(sorted({fact.place for fact in group if fact.place}))[:PLACES_NAMED],
        passed=passed,
        passed_on_baseline=passed_on_baseline,
        baseline_silent=any(fact.baseline_silent for fact in group),
    )


def _why(group: list[ObservedFact]) -> str:
    """The stalled calls of all instances together; for other facts, the text of one instance."""
    shares = [fact.stalled for fact in group if fact.stalled is not None]
    if not shares:
        return max(fact.why for fact in group)
    calls, stalled, seconds = (
        sum(getattr(share, name) for share in shares) for name in ("calls", "stalled", "seconds")
    )
    return StallCounts(calls, stalled, seconds, shares[0].budget).words()


def _severity(
    key: Key, group: list[ObservedFact], on_baseline: int, passed_on_baseline: int
) -> Severity:
    if key[0] == "stalled_calls":
        # A budget also counts if the baseline exceeds it, but then the version is not a regression.
        return (
            "roll_back"
            if any(fact.grave and not fact.baseline_silent for fact in group) and not on_baseline
            else "watch"
        )
    return (
        "known"
        if on_baseline
        else "roll_back"
        if passed_on_baseline and key[0] in ROLL_BACK_KINDS
        else "watch"
    )


class FactLike(Protocol):
    """A fact of the judge, or a stored fact."""

    @property
    def kind(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def why(self) -> str: ...
    @property
    def count(self) -> int: ...


def describe_fact(fact: FactLike) -> str:
    """The fact as text, without the number of instances."""
    kind, about, why, count = fact.kind, fact.about, fact.why, fact.count
    named = f"`{about}`" if about else "a frame"
    if kind == "latched_eager":
        return f"{named} runs eager until its process restarts" + (f": {why}" if why else "")
    if kind == "compiled_nothing":
        return f"{named} compiled nothing" + (f": {why}" if why else "")
    if kind == "stuck_compiling":
        return f"{named} is stuck compiling" + (f": {why}" if why else "")
    if kind == "budget_burning":
        return "the budget of compiled calls is burning" + (f": {why}" if why else "")
    if kind == "stalled_calls":
        return why or "more calls wait for a compilation than the budget allows"
    if kind == "parity":
        return f"compiled output of `{about}` differs from eager" + (f": {why}" if why else "")
    if kind == "shadow_parity":
        return f"compiled output of {named} differs from eager on live calls" + (
            f": {why}" if why else ""
        )
    if kind == "non_finite":
        return f"{named} returns NaN or infinite values" + (f": {why}" if why else "")
    if kind == "ranks_diverged":
        return f"ranks of one job diverged: {why[:1].lower()}{why[1:]}"
    times = "once" if count == 1 else f"{count} times"
    return (
        f"the GPU ran out of memory {times}" if kind == "out_of_memory" else kind.replace("_", " ")
    )
