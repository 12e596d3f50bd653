"""Golden batches after a warm-up: `python tests/gpu/programs/golden_models.py cuda --seconds 540
--jobs 8`, with the agent's folder and the repository's root on PYTHONPATH. Prints for each model
the number of compared healthy batches, of failed healthy batches, and of detected planted faults.
The exit status is 1 if a healthy batch failed or was not compared, a fault was missed, or a model
did not run."""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, NamedTuple

import torch

from tests.agent.golden_real.warm import FINDING, faulty, healthy, visible_faults
from tests.agent.golden_real.wrapped import WRAPPED, NotHere, required
from tests.agent.golden_real.zoo import TORCH, TRANSFORMERS, Make, of_vision

GRAPHS = {"mode": "reduce-overhead"}
WAYS: dict[str, tuple[tuple[torch.dtype, dict[str, Any]], ...]] = {
    "cpu": ((torch.float32, {}), (torch.bfloat16, {"backend": "aot_eager"})),
    "cuda": ((torch.float32, {}), (torch.bfloat16, GRAPHS)),
}
REQUIRED = "required, not comparable"
ALONE = ("AOTInductor package", REQUIRED)
"""Each in its own process: torch 2.11's loader of AOTInductor packages crashed the process on an
H100 and an H200, also without the agent."""
NO_GRAPHS = ("levit_128s",)
"""The model keeps a result between calls, which torch does not allow with CUDA graphs."""
NO_BACKWARD = ("LSTM",)
"""cuDNN has no backward pass for the module in evaluation mode."""


class Row(NamedTuple):
    """Result of one model."""

    name: str
    compared: int
    false: int
    planted: int
    missed: int
    notes: list[str]
    seconds: float

    @property
    def fine(self) -> bool:
        """True if there is no false failure and no missed fault, and every healthy batch was
        compared."""
        return not self.false and not self.missed and not self.notes


def models() -> dict[str, dict[str, Make]]:
    """Models by part and name."""
    library, vision = of_vision()
    return {library: vision, "transformers": TRANSFORMERS, "torch.nn": TORCH}


def tried(part: str, name: str, device: str, faults: int) -> Row:
    """Tries one model or one wrapped callable; the process may have tried others before."""
    begun = time.monotonic()
    try:
        row = (
            _wrapped(name, device)
            if part == "wrapped"
            else _model(models()[part][name], part, name, device, faults)
        )
    except NotHere as missing:
        row = Row(name, 0, 0, 0, 0, [f"not run: {missing}"], 0.0)
    except Exception as error:  # noqa: BLE001 - a failing model must not stop the others
        row = Row(
            name,
            0,
            0,
            0,
            0,
            [
                f"{type(error).__name__}: {error} "
                f"{traceback.format_exc().splitlines()[-3].strip()}"[:300]
            ],
            0.0,
        )
    return row._replace(seconds=time.monotonic() - begun)


def _model(make: Make, part: str, name: str, device: str, faults: int) -> Row:
    ways = [(dtype, {} if name in NO_GRAPHS else how, False) for dtype, how in WAYS[device]]
    if part == "torch.nn" and not (device == "cuda" and name in NO_BACKWARD):
        ways.append((torch.float32, {}, True))
    notes, compared, false = [], 0, 0
    for dtype, how, grads in ways:
        found = healthy(name, make, device, dtype, grads, how)
        compared += found.state != "not compared"
        false += found.state == "failed"
        if found.state != "passed":
            notes.append(
                f"{str(dtype).removeprefix('torch.')} "
                f"{how or 'inductor'}{' with gradients' if grads else ''}: {found.text}"
            )
    planted = {
        fault: faulty(name, make, device, fault) for fault in visible_faults(make, device)[:faults]
    }
    placed = {fault: found for fault, found in planted.items() if found is not None}
    missed = [
        f"missed {fault}: {found.text}"
        for fault, found in placed.items()
        if found.state not in ("failed", FINDING)
    ]
    if not placed:
        notes.append("no operator for a fault")
    return Row(name, compared, false, len(placed), len(missed), notes + missed, 0.0)


def _wrapped(name: str, device: str) -> Row:
    if name == REQUIRED:
        optional, gate = required(device)
        right = (optional.state, optional.failed, gate.state, gate.failed) == (
            "not compared",
            False,
            "not compared",
            True,
        )
        return Row(
            name,
            0,
            int(optional.failed),
            1,
            int(not gate.failed),
            [] if right else [optional.text, gate.text],
            0.0,
        )
    good, bad = WRAPPED[name](device)
    notes = [] if good.state == "passed" else [good.text]
    notes += [] if bad.state == "failed" else [f"missed: {bad.text}"]
    return Row(
        name,
        int(good.state != "not compared"),
        int(good.state == "failed"),
        1,
        int(bad.state != "failed"),
        notes,
        0.0,
    )


def main() -> int:
    """Runs the models, several at a time, and prints the table."""
    parts = {part: list(inside) for part, inside in models().items()} | {
        "wrapped": [*WRAPPED, REQUIRED]
    }
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("device", choices=sorted(WAYS))
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="models or parts (vision, transformers, torch.nn, wrapped)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=540.0,
        help="stop waiting for models after this number of seconds",
    )
    parser.add_argument("--jobs", type=int, default=1, help="number of parallel models")
    parser.add_argument(
        "--faults",
        type=int,
        default=7,
        help="maximum number of planted faults per model, the first with inductor",
    )
    options = parser.parse_args()
    asked = [
        (part, name)
        for part, inside in parts.items()
        for name in inside
        if _is_asked(options.names, part, name)
    ]
    where = torch.cuda.get_device_name() if options.device == "cuda" else "a CPU"
    _print_line(
        f"torch {torch.__version__} on {where}; vision models of {next(iter(parts))}; "
        f"{len(asked)} models, {options.jobs} at a time"
    )
    rows = _run(asked, options)
    late = [name for _, name in asked if name not in rows]
    _print_line(
        f"{'all':32} {_cells(list(rows.values()))}; not finished in time: "
        f"{', '.join(late) or 'none'}; load {os.getloadavg()[0]:.0f}"
    )
    return (
        0
        if not late
        and all(row.fine or row.notes[0].startswith("not run: ") for row in rows.values())
        else 1
    )


def _is_asked(names: list[str], part: str, name: str) -> bool:
    return (
        not names
        or name in names
        or part in names
        or ("vision" in names and part in ("timm", "torchvision"))
    )


def _run(asked: list[tuple[str, str]], options: argparse.Namespace) -> dict[str, Row]:
    """Results of the models that finish in time; the others are stopped with their processes."""
    rows: dict[str, Row] = {}
    _print_line(f"{'model':32} {'compared':>8} {'false':>6} {'found':>7} {'seconds':>8}")
    pool = ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn"))
    alone = {
        name: ProcessPoolExecutor(1, mp_context=get_context("spawn"))
        for _, name in asked
        if name in ALONE
    }
    runs: dict[Future[Row], str] = {
        alone.get(name, pool).submit(_tried, part, name, options.device, options.faults): name
        for part, name in asked
    }
    try:
        for done in as_completed(runs, timeout=options.seconds):
            try:
                row = done.result()
            except (
                BrokenProcessPool
            ):  # one of the running models crashed its process: run them one by one to find it
                row = Row(runs[done], 0, 0, 0, 0, ["a process of the pool died"], 0.0)
            rows[row.name] = row
            _print_line(
                f"{row.name:32} {_cells([row])} "
                f"{row.seconds:8.0f}{''.join(f'{chr(10)}    {note}' for note in row.notes)}"
            )
    except TimeoutError:
        for process in [
            process for one in (pool, *alone.values()) for process in one._processes.values()
        ]:
            process.kill()
    for one in (pool, *alone.values()):
        one.shutdown(wait=False, cancel_futures=True)
    return rows


def _tried(part: str, name: str, device: str, faults: int) -> Row:
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // 8))
    return tried(part, name, device, faults)


def _cells(rows: list[Row]) -> str:
    planted, missed = sum(row.planted for row in rows), sum(row.missed for row in rows)
    return (
        f"{sum(row.compared for row in rows):8} {sum(row.false for row in rows):6} "
        f"{f'{planted - missed}/{planted}':>7}"
    )


def _print_line(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
