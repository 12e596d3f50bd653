"""Instance page: state and reason, environment, telemetry coverage, and comparison with other
instances of the version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dashboard.common import clock
from dashboard.fleet.fold.roles import is_helper
from dashboard.fleet.metrics.eager_causes import EagerBreakdown
from dashboard.fleet.metrics.first_bucket import QuantileBound
from dashboard.fleet.models import Instance, InstanceState
from dashboard.fleet.selectors.instances.instance_detail import (
    FrameHistory,
    InstanceFinding,
    RegionVsOthers,
)
from dashboard.fleet.selectors.instances.instance_states import (
    compute_hung_limit_s,
    describe_end,
    explain_missing_capabilities,
    instance_state,
)
from dashboard.fleet.selectors.instances.instances import Configuration, ReportingInstance
from dashboard.ui.pages.compare.configuration_diff import IDENTITY_KEYS
from dashboard.ui.pages.compiles.compilations import Compilation
from dashboard.ui.pages.findings.list import first_line, format_kind
from dashboard.ui.pages.instances.capabilities import Capability, explain_capabilities
from dashboard.ui.pages.instances.table import InstanceRow, instance_row, list_losses
from dashboard.vocabulary import numbers

SLOWER_RATIO = 1.1
HEADER_KEYS = ("id", "started", "model", "version", "environment", "simulated")
"""Keys that the header of the page already shows."""


@dataclass(frozen=True)
class InstanceAttribute:
    """One key of the identity or configuration. `usual` is the value of most other instances of the
    version, if it differs."""

    key: str
    value: str
    usual: str
    count: int
    others: int

    @property
    def same(self) -> bool:
        """Whether most other instances have the same value."""
        return not self.usual and self.count * 2 > self.others > 0


@dataclass(frozen=True)
class RegionLine:
    """One region and shape bucket, compared with the median of the other instances."""

    region: str
    place: str
    calls: int
    p50: str
    p50_beside: str
    p99: str
    p99_beside: str
    eager: str
    eager_beside: str
    why: EagerBreakdown
    rank: str
    slower: bool


@dataclass(frozen=True)
class FindingLine:
    """A finding of the instance."""

    id: int
    kind: str
    text: str
    count: int
    last_seen: datetime


@dataclass(frozen=True)
class InstancePage:
    """All data of the template."""

    instance: Instance
    told: InstanceRow
    state: InstanceState
    sentence: str
    more: list[str]
    latched: list[tuple[str, str, datetime | None]]
    losses: list[str]
    capabilities: list[Capability]
    known: list[InstanceAttribute]
    regions: list[RegionLine]
    findings: list[FindingLine]
    compilations: list[Compilation]

    @property
    def differing(self) -> list[InstanceAttribute]:
        """Keys whose value is not that of most other instances."""
        return [one for one in self.known if not one.same]

    @property
    def alike(self) -> list[InstanceAttribute]:
        """Keys whose value most other instances share."""
        return [one for one in self.known if one.same]


def instance_page(
    instance: Instance,
    *,
    missing: int,
    regions: Iterable[RegionVsOthers],
    findings: Iterable[InstanceFinding],
    history: FrameHistory | None,
    configurations: Iterable[Configuration],
    compilations: list[Compilation],
) -> InstancePage:
    """Builds the page."""
    now = clock.now()
    state = instance_state(instance, now)
    return InstancePage(
        instance=instance,
        told=instance_row(ReportingInstance(instance, missing), {}, now),
        state=state,
        sentence=_sentence(instance, state, (now - instance.last_seen_at).total_seconds()),
        more=list(_more(instance, history)),
        latched=_latched(instance),
        losses=list(list_losses(instance, missing)),
        capabilities=explain_capabilities(instance.capabilities),
        known=_known(instance, configurations),
        regions=[_region(one) for one in regions],
        findings=[
            FindingLine(
                one.finding_id,
                format_kind(one.kind),
                first_line(one.text),
                one.count,
                one.last_seen_at,
            )
            for one in findings
        ],
        compilations=compilations,
    )


def _sentence(instance: Instance, state: InstanceState, silent_for: float) -> str:
    compiling = (
        f"compiling `{instance.compiling_frame or 'a frame'}` for "
        f"{numbers.duration(instance.compiling_for)}"
    )
    if state == InstanceState.ENDED:
        return f"This process {describe_end(instance)}, according to its last report."
    if state == InstanceState.SILENT:
        doing = (
            f"Last seen {compiling}."
            if instance.compiling_for
            else "No compilation was in progress at the last report."
        )
        return (
            f"No report for {numbers.duration(silent_for)} and no end reported: the state of the "
            f"process is unknown. {doing}"
        )
    if state == InstanceState.STARTING:
        return (
            "This process reports, but has not called or compiled anything yet. It counts as an "
            "instance from its first call or compilation."
        )
    if state == InstanceState.HUNG:
        return (
            f"Stuck: {compiling}. The limit for this frame is "
            f"{numbers.duration(compute_hung_limit_s(instance))}."
        )
    if state == InstanceState.COMPILING:
        return f"This process is {compiling}."
    if state in (InstanceState.EAGER, InstanceState.DEGRADED):
        share = instance.eager_calls / instance.known_calls if instance.known_calls else 0.0
        calls = (
            f"{numbers.percent(share)} of calls in the last report ran eager"
            if share
            else "Some frames run eager until the process restarts"
        )
        return f"{calls}."
    if state == InstanceState.WARMING:
        return "This process started recently and has not reported that it is ready."
    if state == InstanceState.BLIND:
        why = explain_missing_capabilities(instance)
        return (
            "This process reports, but not whether calls run "
            f"compiled{f' ({why})' if why else ''}. The execution mode is unknown."
        )
    if is_helper(instance):
        return (
            f"This process reports and only helps its job as {instance.role}. It does not count "
            "as an instance."
        )
    return "This process reports without problems."


def _more(instance: Instance, history: FrameHistory | None) -> Iterator[str]:
    """Comparison of the current compile time with earlier compilations of the frame, here and on
    other instances."""
    if not instance.compiling_for:
        return
    if instance.compiling_usual:
        times = instance.compiling_for / instance.compiling_usual
        longest = numbers.duration(instance.compiling_usual)
        yield (
            f"The frame took {longest} at most before in this process; the current compilation "
            f"is {numbers.number(round(times, 1))} times as long."
        )
    else:
        yield "This process has not compiled the frame before."
    if history is None:
        yield "No finished compilation of the frame is known on any instance of the model."
    else:
        known = numbers.plural(history.count, "known compilation")
        yield (
            f"The {known} of the frame took {numbers.duration(history.typical)} at the median and "
            f"{numbers.duration(history.longest)} at most."
        )


def _latched(instance: Instance) -> list[tuple[str, str, datetime | None]]:
    found = []
    for frame in instance.latched_eager if isinstance(instance.latched_eager, list) else []:
        if isinstance(frame, Mapping):
            at = frame.get("at")
            cause = str(frame.get("reason") or frame.get("cause") or "")
            known = (
                clock.at(at)
                if isinstance(at, int | float) and not isinstance(at, bool) and 0 < at < 1e11
                else None
            )
            found.append((str(frame.get("frame") or "a frame"), cause, known))
    return found


def _known(instance: Instance, configurations: Iterable[Configuration]) -> list[InstanceAttribute]:
    """Identity and configuration by name; keys that differ from most other instances come first."""
    others = [
        dict(_flat(identity, components))
        for version, identity, components in configurations
        if version == instance.version_id
    ]
    others = others if len(others) > 1 else []
    found = []
    for key, value in {
        key: value
        for key, value in _flat(instance.identity, instance.components)
        if key not in HEADER_KEYS
    }.items():
        counts = Counter(other.get(key, "") for other in others)
        usual, count = counts.most_common(1)[0] if counts else (value, 0)
        differs = key not in IDENTITY_KEYS and usual != value and count * 2 > len(others)
        found.append(
            InstanceAttribute(
                key, value, (usual or "not set") if differs else "", count, len(others)
            )
        )
    return sorted(found, key=lambda one: (not one.usual, one.key))


def _flat(*sources: Any) -> Iterator[tuple[str, str]]:
    for source in sources:
        for key, value in source.items() if isinstance(source, Mapping) else ():
            if isinstance(value, str | int | float | bool) and value != "":
                yield str(key), str(value)


def _level(value: float | None, known: QuantileBound | None) -> str:
    return (
        numbers.duration(value)
        if value is not None
        else numbers.bound(known.bound)
        if known
        else ""
    )


def _mean(known: QuantileBound | None) -> str:
    return numbers.mean(known.mean) if known else ""


def _region(one: RegionVsOthers) -> RegionLine:
    own = one.own
    ratio = own.p50 / one.p50 if own.p50 is not None and one.p50 else None
    rank = (
        f"slower than {one.slower_than} of {numbers.plural(one.others, 'other')}"
        if one.others and own.p50 is not None
        else ""
    )
    if one.others and own.p50_below:
        rank = "not ranked: only a bound of p50 is known"
    return RegionLine(
        region=one.series.region,
        place=", ".join(
            part
            for part in (
                one.series.stratum,
                f"shapes {one.series.bucket}" if one.series.bucket else "",
            )
            if part
        ),
        calls=own.calls,
        p50=_level(own.p50, own.p50_below),
        p50_beside=f"{numbers.change(ratio - 1)} vs {numbers.duration(one.p50)}"
        if ratio is not None and one.p50
        else _mean(own.p50_below),
        p99=_level(own.p99, own.p99_below),
        p99_beside=f"vs {numbers.duration(one.p99)}"
        if one.p99 is not None
        else _mean(own.p99_below),
        eager=numbers.percent(own.eager) if own.eager is not None else "",
        eager_beside=f"vs {numbers.percent(one.eager)}" if one.eager is not None else "",
        why=own.why,
        rank=rank or "no other instance of this version in that hour",
        slower=ratio is not None and ratio >= SLOWER_RATIO,
    )
