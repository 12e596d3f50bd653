"""Prints the table: `python -m tests.agent.golden_real [--device cuda] [NAME ...]`, half an hour on
two cores; needs timm in addition to the packages of the tests. On a GPU the healthy models run with
CUDA graphs."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from compilewatch.numerics.golden import Golden

from tests.agent.golden_real.faults import FAULTS
from tests.agent.golden_real.models import Made, of_timm, of_transformers
from tests.agent.golden_real.trial import faulty, healthy

FAULTY = (
    "resnet18",
    "convnext_atto",
    "vit_tiny_patch16_224",
    "BertModel",
    "GPT2LMHeadModel",
    "LlamaForCausalLM",
)
"""The models in which faults are planted; each fault goes into the models that have a place for
it."""
GRAPHS = {"mode": "reduce-overhead"}
WAYS: dict[str, tuple[tuple[torch.dtype, dict[str, Any]], ...]] = {
    "cpu": ((torch.float32, {"backend": "inductor"}), (torch.bfloat16, {"backend": "aot_eager"})),
    "cuda": ((torch.float32, GRAPHS), (torch.bfloat16, GRAPHS)),
}


def main() -> int:
    """0 if every healthy model passes and every fault is found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--device", choices=sorted(WAYS), default="cpu")
    options = parser.parse_args()
    names, device = options.names, options.device
    models = {
        name: make
        for name, make in {**of_timm(), **of_transformers()}.items()
        if not names or name in names
    }
    _say(
        f"torch {torch.__version__} on "
        f"{torch.cuda.get_device_name() if device == 'cuda' else 'a CPU'}, load "
        f"{os.getloadavg()[0]:.0f}"
    )
    false = [line for name, make in models.items() for line in _healthy(name, make, device)]
    chosen = {name: make for name, make in models.items() if name in (names or FAULTY)}
    missed = [line for fault in FAULTS for line in _faults(fault, chosen, device)]
    _say(
        f"\n{len(models)} healthy models in {len(WAYS[device])} ways: {len(false)} false; "
        f"load {os.getloadavg()[0]:.0f}"
    )
    _say(f"{len(FAULTS)} faults: {len(missed)} missed {', '.join(missed)}")
    return 1 if false or missed else 0


def _healthy(name: str, make: Callable[[], Made], device: str) -> list[str]:
    false = []
    for dtype, how in WAYS[device]:
        with tempfile.TemporaryDirectory() as folder:
            first, second = healthy(name, make, Path(folder), dtype, device, **how)
        fine = (first.state, second.state, second.parity.last) == ("passed", "passed", "same")
        kind, told = str(dtype).removeprefix("torch."), first.parity
        said = (
            f"{name:24} {kind:9} {' '.join(how.values()):15} {first.state}, {_times(first)} of "
            f"the tolerance, against {told.reference}"
        )
        _say(
            f"{'=' if fine else '!'} {said}; the next version: {second.state}, {second.parity.last}"
        )
        false += [] if fine else [said]
    return false


def _faults(fault: str, models: dict[str, Callable[[], Made]], device: str) -> list[str]:
    missed, tried = [], 0
    for name, make in models.items():
        with tempfile.TemporaryDirectory() as folder:
            found = faulty(name, make, Path(folder), fault, device)
        if found is None:
            continue
        tried += 1
        good, bad = found
        fine = (good.state, bad.state) == ("passed", "failed")
        said = f"{bad.state}, {_times(bad)} times the tolerance; compared with version 1: {bad.parity.last}"
        _say(f"{'=' if fine else '!'} {fault:24} in {name:24} {said}")
        missed += [] if fine else [f"{fault} in {name}"]
    _say(f"  {fault}: found in {tried - len(missed)} of {tried}")
    return missed


def _times(found: Golden) -> str:
    return f"{found.parity.times:.3g}" if found.parity.times is not None else "-"


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
