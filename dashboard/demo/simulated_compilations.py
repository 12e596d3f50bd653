"""Simulated compilations: the compile events of one simulated instance.

The order in which the functions draw from `rng` is part of the story: another order yields another
fleet.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from compilewatch.wire.cache_miss_causes import NO_EARLIER_RUN, OTHER_GRAPH, OTHER_INPUTS
from compilewatch.wire.messages import Compile, Region

from dashboard.demo.rollouts import Fault, Rollout, SimulatedModel

MAX_STALLS = 4
"""Maximum compilations in a report; a real agent truncates them too."""


def list_start_compiles(
    model: SimulatedModel, rollout: Rollout, *, seconds: float, rng: random.Random, start: float
) -> list[Compile]:
    """The compilations of a start that takes `seconds` and ends at `start`: one per frame, then
    autotuning."""
    cold = rollout.cold
    at, found = start - seconds, []
    per_frame = (seconds - (cold.autotune if cold else 0.0)) / len(model.frames)
    for n in range(len(model.frames)):
        total = per_frame * rng.uniform(0.9, 1.1)
        at += total
        found.append(_build_first_compile(model, rollout, n, total, at, rng))
    if cold and cold.autotune:
        found.append(_build_autotune(model, cold.autotune, start))
    return found


def _build_first_compile(
    model: SimulatedModel, rollout: Rollout, n: int, total: float, at: float, rng: random.Random
) -> Compile:
    frame, cold, fault = model.frames[n], rollout.cold, rollout.fault
    hit = rng.random() < rollout.cached
    return Compile(
        at=at,
        id=f"{n}/0",
        frame=frame,
        file=fault.file if frame == fault.frame else f"{model.name}/model.py",
        line=fault.line if frame == fault.frame else 40 + 60 * n,
        kind="first",
        outcome="ok",
        seconds={
            "total": total,
            "dynamo": total * 0.2,
            "aot": total * 0.1,
            "inductor": total * 0.55,
            "triton": total * 0.12,
        },
        cache={"fx": "hit" if hit else "miss", "aot": "hit" if hit else "miss"},
        saved=total if hit else None,
        key=f"{cold.value if cold else model.name}-{frame}"[:16],
        miss="" if hit else NO_EARLIER_RUN if cold else OTHER_GRAPH,
    )


def _build_autotune(model: SimulatedModel, seconds: float, at: float) -> Compile:
    return Compile(
        at,
        "0/0",
        "autotune",
        "ok",
        frame=model.frames[0],
        file=f"{model.name}/model.py",
        line=40,
        seconds={"total": seconds, "autotune": seconds},
    )


def list_recompiles(
    model: SimulatedModel, rollout: Rollout, *, rank: int, rng: random.Random, start: float
) -> list[Compile]:
    """The recompiles after a start: of the rank with a shape of its own, or of the frame that falls
    back to eager."""
    fault = rollout.fault
    if rollout.job and rank == rollout.apart:
        return [
            Compile(
                at=start + 40.0,
                id="0/1",
                frame=model.frames[0],
                file=f"{model.name}/model.py",
                line=40,
                kind="recompile",
                outcome="ok",
                reason="tokens.size(1) == 4096 (actual 3584)",
                seconds={"total": 31.0, "dynamo": 6.0, "inductor": 19.0},
                cache={"fx": "miss", "aot": "miss"},
                miss=OTHER_INPUTS,
            )
        ]
    if not fault.causes_eager_fallback:
        return []
    return [
        Compile(
            at=start + k,
            id=f"0/{k}",
            frame=fault.frame,
            file=fault.file,
            line=fault.line,
            kind="recompile",
            outcome="ok",
            reason=f"{fault.guard} (actual {96 + 8 * k})",
            seconds={"total": rng.uniform(2.0, 4.0), "dynamo": 0.8, "inductor": 1.1},
            cache={"fx": "miss", "aot": "miss"},
            in_request=True,
            miss=OTHER_INPUTS,
        )
        for k in range(1, 8)
    ]


def list_stalls(fault: Fault, regions: Sequence[Region], start: float, end: float) -> list[Compile]:
    """The compilations that stalled calls of the window waited for, up to `MAX_STALLS`."""
    stalled = min(
        sum(region.stalled.count for region in regions if region.stalled is not None),
        MAX_STALLS,
    )
    return [
        Compile(
            at=start + (end - start) * (k + 1) / (stalled + 1),
            id=f"0/{k}",
            frame=fault.frame,
            file=fault.file,
            line=fault.line,
            kind="recompile",
            outcome=fault.outcome,
            reason=fault.guard,
            reason_kind="guard",
            seconds={"total": fault.stall_seconds},
            cache={"fx": "miss", "aot": "miss"} if fault.outcome == "ok" else {},
            in_request=True,
            miss=OTHER_INPUTS,
        )
        for k in range(stalled)
    ]
