"""A compilation counts as hung after a fixed time, or earlier if the same frame usually takes far
less."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dashboard.fleet.models import Instance, InstanceState
from dashboard.fleet.selectors.instances.instance_states import instance_state

NOW = datetime(2026, 11, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "usual", "state"),
    [
        (899.0, None, InstanceState.COMPILING),
        (901.0, None, InstanceState.HUNG),
        (119.0, 1.0, InstanceState.COMPILING),
        (121.0, 1.0, InstanceState.HUNG),
        (350.0, 40.0, InstanceState.COMPILING),
        (450.0, 40.0, InstanceState.HUNG),
        (901.0, 4000.0, InstanceState.HUNG),
    ],
)
def test_the_limit_grows_with_the_usual_compile_time(
    seconds: float, usual: float | None, state: InstanceState
) -> None:
    instance = Instance(
        active_minute=0,
        last_seen_at=NOW,
        started_at=NOW,
        ready_at=NOW,
        compiling_for=seconds,
        compiling_usual=usual,
    )
    assert instance_state(instance, NOW) == state
