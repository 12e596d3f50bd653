"""Instance states: derived from the newest reports of an instance.

This module alone holds the rules. The first rule that holds determines the state.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import NamedTuple

from dashboard.fleet.fold.roles import is_helper
from dashboard.fleet.models import Instance, InstanceState
from dashboard.fleet.selectors.instances.recent_instances import RecentInstance

SILENT_AFTER_S = 180.0
HUNG_AFTER_S = 900.0
UNUSUAL_MULTIPLE, UNUSUAL_AFTER_S = 10.0, 120.0
"""A compilation is also hung if it exceeds the frame's longest duration in the process by this
factor, and this many seconds."""
WARM_UP_S = 900.0
EAGER_SHARE, DEGRADED_SHARE, MIN_CALLS = 0.5, 0.02, 20
"""Limits of the eager share in the newest window, and the minimum number of sampled calls."""
CLOCK_SKEW_SHOWN_S = 5.0
"""Clock difference in seconds that pages show; windows are corrected in any case."""
# Without these capabilities, an instance cannot report whether its calls run compiled.
ESSENTIAL = ("compiled_calls", "compilations")

SEVERITY = [
    InstanceState.HUNG,
    InstanceState.SILENT,
    InstanceState.EAGER,
    InstanceState.DEGRADED,
    InstanceState.COMPILING,
    InstanceState.WARMING,
    InstanceState.STARTING,
    InstanceState.BLIND,
    InstanceState.HEALTHY,
    InstanceState.ENDED,
]
ORDERLY_SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP")
"""Signals that request an orderly end; other signals kill."""


class Rule(NamedTuple):
    """A state, its condition, and the condition in words."""

    state: InstanceState
    holds: Callable[[Instance | RecentInstance, datetime], bool]
    words: str


def compute_hung_limit_s(instance: Instance | RecentInstance) -> float:
    """Return the seconds after which a compilation of this instance counts as hung."""
    if instance.compiling_usual is None:
        return HUNG_AFTER_S
    return min(HUNG_AFTER_S, max(UNUSUAL_AFTER_S, UNUSUAL_MULTIPLE * instance.compiling_usual))


def eager_share(instance: Instance | RecentInstance) -> float:
    """Return the share of eager calls in the newest window with calls; 0 with too few sampled
    calls."""
    return instance.eager_calls / instance.known_calls if instance.known_calls >= MIN_CALLS else 0.0


def list_missing_capabilities(instance: Instance | RecentInstance) -> list[str]:
    """Return the essential facts that this instance cannot report."""
    said = instance.capabilities
    return [name for name in ESSENTIAL if name in said and not can_report(said, name)]


def explain_missing_capabilities(instance: Instance | RecentInstance) -> str:
    """Return the agent's reasons for missing capabilities; empty without reasons."""
    said = (instance.capabilities.get(name) for name in list_missing_capabilities(instance))
    return "; ".join(
        dict.fromkeys(
            str(one[1]) for one in said if isinstance(one, list | tuple) and len(one) > 1 and one[1]
        )
    )


def can_report(capabilities: Mapping[str, object], name: str) -> bool:
    """Return whether a process can report this fact; True if the process does not state it."""
    return _answer(capabilities.get(name)) != "no"


def has_ended(instance: Instance | RecentInstance) -> bool:
    """Return whether the last report announced the end, without a later report."""
    return instance.ended_at is not None and instance.ended_at >= instance.last_seen_at


def has_failed(instance: Instance | RecentInstance) -> bool:
    """Return whether the process ended with an error, or by a signal that kills."""
    if not has_ended(instance):
        return False
    return (
        instance.exit_signal not in ORDERLY_SIGNALS
        if instance.exit_signal
        else bool(instance.exit_code)
    )


def describe_end(instance: Instance | RecentInstance) -> str:
    """Return the end of the process in words that include the state."""
    if instance.exit_signal:
        return (
            f"ended by {instance.exit_signal}"
            if instance.exit_signal in ORDERLY_SIGNALS
            else f"ended, killed by {instance.exit_signal}"
        )
    if instance.exit_code is None:
        return "ended"
    return (
        f"ended with an error, exit code {instance.exit_code}"
        if instance.exit_code
        else "ended, exit code 0"
    )


def is_silent(instance: Instance | RecentInstance, now: datetime) -> bool:
    """Return whether the instance stopped reporting without an end."""
    return (
        not has_ended(instance) and (now - instance.last_seen_at).total_seconds() > SILENT_AFTER_S
    )


def _is_starting(instance: Instance | RecentInstance, _: datetime) -> bool:
    return instance.active_minute is None and not is_helper(instance) and not instance.compiling_for


def _is_warming_up(instance: Instance | RecentInstance, now: datetime) -> bool:
    if is_helper(instance):
        return False
    return instance.ready_at is None and (now - instance.started_at).total_seconds() < WARM_UP_S


RULES = (
    Rule(
        InstanceState.ENDED,
        lambda one, _: has_ended(one),
        "the last report announced the end, with exit code or signal",
    ),
    Rule(
        InstanceState.SILENT,
        is_silent,
        "no report for 3 min and no end reported: the process's state is unknown",
    ),
    Rule(
        InstanceState.HUNG,
        lambda one, _: one.compiling_for > compute_hung_limit_s(one),
        "has compiled the same frame for 15 min, or for 10 times its longest compilation so far",
    ),
    Rule(
        InstanceState.EAGER,
        lambda one, _: eager_share(one) > EAGER_SHARE,
        "more than half of the calls in the newest report interval ran eager",
    ),
    Rule(
        InstanceState.DEGRADED,
        lambda one, _: bool(one.latched_eager) or eager_share(one) > DEGRADED_SHARE,
        "a frame runs eager until the process restarts, or over 2% of the calls ran eager",
    ),
    Rule(
        InstanceState.STARTING,
        _is_starting,
        "reports, but has not called or compiled anything yet; not counted as an instance",
    ),
    Rule(
        InstanceState.WARMING, _is_warming_up, "started less than 15 min ago and is not ready yet"
    ),
    Rule(InstanceState.COMPILING, lambda one, _: one.compiling_for > 0, "is compiling"),
    Rule(
        InstanceState.BLIND,
        lambda one, _: bool(list_missing_capabilities(one)) and not is_helper(one),
        "the agent cannot report compilations or compiled calls",
    ),
    Rule(InstanceState.HEALTHY, lambda one, now: True, "none of the above"),
)


def instance_state(instance: Instance | RecentInstance, now: datetime) -> InstanceState:
    """Return the state as of `now`."""
    for rule in RULES:  # A page does this for thousands of instances; a generator costs more.
        if rule.holds(instance, now):
            break
    return rule.state


def _answer(capability: object) -> str:
    if isinstance(capability, list | tuple) and capability:
        return str(capability[0])
    return str(capability) if capability is not None else ""
