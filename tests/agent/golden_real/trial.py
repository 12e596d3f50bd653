"""One golden batch as a deployment runs it: compiled compared with eager and a higher precision,
then compared with the previous version."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import compilewatch
import torch
from compilewatch import agent
from compilewatch.numerics.golden import Golden

from tests.agent.golden_real.faults import Planted
from tests.agent.golden_real.models import Made, made


def deployed(
    name: str,
    version: str,
    folder: Path,
    module: torch.nn.Module,
    batch: dict[str, Any],
    **how: Any,
) -> Golden:
    """The result of the golden batch of this version, compiled with `how`; a batch that passed is
    kept in the folder for the next version."""
    torch._dynamo.reset()
    reports = f"file:{folder / 'reports.jsonl'}"
    assert agent.init(model=name, version=version, endpoint=reports, spool=str(folder))
    try:
        with torch.no_grad():
            return compilewatch.golden("batch", torch.compile(module, **how), batch)
    finally:
        agent.shutdown()


def healthy(
    name: str,
    make: Callable[[], Made],
    folder: Path,
    dtype: torch.dtype,
    device: str = "cpu",
    **how: Any,
) -> tuple[Golden, Golden]:
    """A version, and the next one with the same weights."""
    module, batch = made(make, dtype, device)
    first, second = (
        deployed(name, version, folder, module, batch, **how) for version in ("1", "2")
    )
    return first, second


def faulty(
    name: str, make: Callable[[], Made], folder: Path, fault: str, device: str = "cpu"
) -> tuple[Golden, Golden] | None:
    """A good version and one whose compiler plants a fault; None if the model has no place for the
    fault."""
    module, batch = made(make, device=device)
    planted = Planted(fault)
    first = deployed(name, "1", folder, module, batch, backend="aot_eager")
    second = deployed(name, "2", folder, module, batch, backend=planted.backend())
    return (first, second) if planted.done else None
