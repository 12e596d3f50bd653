"""The kernels that win autotuning on a GPU are a component of the process: equal for replicas with
equal choices, otherwise different."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Recording

Record = Callable[..., Recording]
KERNEL = "kernel "

JOB = """
import compilewatch
compilewatch.init(version="1", interval=0.5)
import sys
import torch
import torch._inductor.codecache as codecache
measured, loses = codecache.PersistentCache.lookup, sys.argv[1]  # whose kernels are slow on this machine; of none if it is "-"
def lookup(self, choices, op, inputs, benchmark, *rest, **more):
    def other(choices):
        return {one: 1e6 if one.name.startswith(loses) else seconds for one, seconds in benchmark(choices).items()}
    return measured(self, choices, op, inputs, benchmark and other, *rest, **more)
codecache.PersistentCache.lookup = lookup
options = {"max_autotune_gemm": True, "max_autotune_gemm_backends": "TRITON,ATEN"}
x, y = (torch.randn(1024, 1024, device="cuda", dtype=torch.bfloat16, generator=torch.Generator("cuda").manual_seed(7)) for _ in range(2))
found = torch.compile(lambda x, y: torch.relu(x @ y), options=options)(x, y)
torch.testing.assert_close(found, torch.relu(x @ y), rtol=2e-2, atol=1.0)
compilewatch.shutdown()
"""


def chosen(
    record: Record, folder: Path, monkeypatch: pytest.MonkeyPatch, loses: str, cache: str
) -> dict[str, str]:
    """The choices that a replica with this cache folder reports."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder / cache))
    (folder / "job.py").write_text(JOB)
    recording = record(str(folder / "job.py"), loses)
    assert recording.capability("kernel_choices")[0] == "partly"
    choices_of = {
        name: value
        for name, value in recording.instance["components"].items()
        if name.startswith(KERNEL)
    }
    print(loses, choices_of)
    return choices_of


def test_replicas_with_other_winners_differ_in_that_component_alone(
    record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = [chosen(record, tmp_path, monkeypatch, "-", f"free{number}") for number in range(3)]
    warm = chosen(record, tmp_path, monkeypatch, "-", "free0")
    triton = chosen(record, tmp_path, monkeypatch, "mm", "triton")
    extern = chosen(record, tmp_path, monkeypatch, "triton_", "extern")
    [place] = triton
    assert place.startswith("kernel mm ") and all(one.keys() == {place} for one in (*free, extern))
    assert triton[place].startswith("triton_") and not extern[place].startswith("triton_")
    assert warm in (free[0], {}), "a start from the graph cache does no autotuning"
