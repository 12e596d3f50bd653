"""Callables whose compiled code is elsewhere than in a plain module: quantised, DDP-wrapped,
decorated, loaded from AOTInductor, exported; and a required batch that cannot be compared. Each
function returns a healthy result and a wrong one."""

from __future__ import annotations

import importlib
import importlib.util
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import compilewatch
import torch
from compilewatch.numerics.golden import Golden
from torch import Tensor, nn
from torch._inductor import config

from tests.agent.golden_real.warm import WrongMask, warmed

Tried = tuple[Golden, Golden]
"""The results of a healthy callable and of a wrong one."""


class NotHere(Exception):
    """Names the missing requirement of this machine."""


class Plain(nn.Module):
    """A class of its own: in DDP torch compiles no frame of `nn.Sequential`."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = _layers()

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.layers(x)
        return answer


class Decorated(Plain):
    """A decorated forward, as in many serving modules."""

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.layers(x)
        return answer


def _layers() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64)).eval()


def _batch(device: str, dtype: torch.dtype = torch.float32) -> tuple[Tensor]:
    return (torch.randn(32, 64, generator=torch.Generator().manual_seed(5)).to(device, dtype),)


def _both(name: str, make: Callable[[], Any], batch: Any) -> Tried:
    """Compiled unchanged, and with the wrong kernel in inductor's graph."""
    torch._dynamo.reset()
    with torch.no_grad():
        good = warmed(name, make(), batch)
        torch._dynamo.reset()
        wrong = WrongMask()
        with config.patch(post_grad_custom_pre_pass=wrong):
            bad = warmed(name, make(), batch)
    assert wrong.done, "there was no place for the fault"
    return good, bad


def decorated(device: str) -> Tried:
    """`@torch.no_grad()` on forward."""
    return _both(
        "decorated", lambda: compilewatch.compile(Decorated().eval().to(device)), _batch(device)
    )


def decorated_in_place(device: str) -> Tried:
    """The decorated module, compiled by `Module.compile()`."""

    def make() -> Any:
        module = Decorated().eval().to(device)
        module.compile()
        return module

    return _both("decorated, in place", make, _batch(device))


def ddp(device: str, inside: bool) -> Tried:
    """DistributedDataParallel with one process, around the compiled module or inside it."""
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    backend = "nccl" if device == "cuda" else "gloo"
    torch.distributed.init_process_group(
        backend, store=torch.distributed.HashStore(), rank=0, world_size=1
    )
    parallel = nn.parallel.DistributedDataParallel

    def make() -> Any:
        module = Plain().eval().to(device)
        return torch.compile(parallel(module)) if inside else parallel(torch.compile(module))

    try:
        return _both("DDP", make, _batch(device))
    finally:
        torch.distributed.destroy_process_group()


def quantised(device: str, kind: str, arguments: dict[str, Any] | None = None) -> Tried:
    """Quantised by torchao."""
    if importlib.util.find_spec("torchao") is None:
        raise NotHere("torchao is not installed")
    library = importlib.import_module("torchao.quantization")

    def make() -> Any:
        module = _layers().to(device, torch.bfloat16)
        library.quantize_(module, getattr(library, kind)(**(arguments or {})))
        return compilewatch.compile(module)

    return _both(kind, make, _batch(device, torch.bfloat16))


def aot_loaded(device: str) -> Tried:
    """A package of AOTInductor and its source module; the wrong package holds a wrong kernel."""
    module, batch = _layers().to(device), _batch(device)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        exported = torch.export.export(module, batch)
        good = _packed(exported, Path(folder) / "good.pt2")
        with config.patch(post_grad_custom_pre_pass=WrongMask()):
            bad = _packed(exported, Path(folder) / "bad.pt2")
        return tuple(warmed("AOTInductor", one, batch, reference=module) for one in (good, bad))  # type: ignore[return-value]


def exported(device: str) -> Tried:
    """A program of torch.export, compiled."""
    module, batch = _layers().to(device), _batch(device)
    program = torch.export.export(module, batch)
    return _both("exported", lambda: compilewatch.compile(program.module()), batch)


def _packed(program: Any, path: Path) -> Any:
    inductor = importlib.import_module("torch._inductor")
    return inductor.aoti_load_package(
        inductor.aoti_compile_and_package(program, package_path=str(path))
    )


def required(device: str) -> Tried:
    """A package without a reference: not compared, and failed if the batch is required."""
    module, batch = _layers().to(device), _batch(device)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        package = _packed(torch.export.export(module, batch), Path(folder) / "one.pt2")
        return warmed("optional", package, batch), warmed("required", package, batch, required=True)


WRAPPED: dict[str, Callable[[str], Tried]] = {
    "decorated forward": decorated,
    "decorated, compiled in place": decorated_in_place,
    "DDP around compiled": lambda device: ddp(device, inside=False),
    "compiled around DDP": lambda device: ddp(device, inside=True),
    "torchao Int8WeightOnly": lambda device: quantised(device, "Int8WeightOnlyConfig"),
    "torchao Int8DynamicActivation": lambda device: quantised(
        device, "Int8DynamicActivationInt8WeightConfig"
    ),
    "AOTInductor package": aot_loaded,
    "exported program": exported,
}
