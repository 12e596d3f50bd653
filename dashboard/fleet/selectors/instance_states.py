"""How an instance is, read off its newest reports; the most serious word wins."""

from datetime import datetime

from dashboard.fleet.models import Instance, InstanceState

SILENT_AFTER = 180.0
HUNG_AFTER = 900.0
WARMING_FOR = 900.0
# Without these an instance cannot say whether its calls run compiled.
ESSENTIAL = ("compiled_calls", "compilations")

SEVERITY = [
    InstanceState.HUNG,
    InstanceState.SILENT,
    InstanceState.EAGER,
    InstanceState.DEGRADED,
    InstanceState.COMPILING,
    InstanceState.WARMING,
    InstanceState.BLIND,
    InstanceState.HEALTHY,
]


def instance_state(instance: Instance, now: datetime) -> InstanceState:
    """The state as of `now`."""
    if (now - instance.last_seen_at).total_seconds() > SILENT_AFTER:
        return InstanceState.SILENT
    if instance.compiling_for > HUNG_AFTER:
        return InstanceState.HUNG
    if instance.latched_eager:
        return InstanceState.EAGER
    if instance.ready_at is None and (now - instance.started_at).total_seconds() < WARMING_FOR:
        return InstanceState.WARMING
    if instance.compiling_for > 0:
        return InstanceState.COMPILING
    return InstanceState.BLIND if blind_to(instance) else InstanceState.HEALTHY


def blind_to(instance: Instance) -> list[str]:
    """Which essential facts this instance cannot report."""
    return [name for name in ESSENTIAL if _answer(instance.capabilities.get(name)) == "no"]


def _answer(capability: object) -> str:
    if isinstance(capability, list | tuple) and capability:
        return str(capability[0])
    return str(capability) if capability is not None else ""
