"""The kernel that inductor's autotuning chose is a component of the process: equal in two processes
that chose the same kernel, otherwise different."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from compilewatch.identity import autotuned_kernels
from compilewatch.identity.autotuned_kernels import KERNEL_CHOICES, MAX_OPERATORS, note_choice
from compilewatch.identity.redaction import identity_redact
from compilewatch.runtime import torch_internals
from compilewatch.sources.inductor.kernel_choices import KernelChoices
from compilewatch.wire.messages import KERNEL, Identity

from tests.agent.programs import run

JOB = """
import sys, torch, compilewatch
import torch._inductor.config
import torch._inductor.codecache as codecache
torch._inductor.config.freezing = True
compilewatch.init(model="m", interval=0.2)
loses = "cpp_" if sys.argv[1:] == ["slow"] else "_mkl"  # the kernel that is slower on this machine
measured = codecache.PersistentCache.lookup
def lookup(self, choices, op, inputs, benchmark, *rest, **more):
    def other(choices):
        return {one: 1e6 if one.name.startswith(loses) else seconds for one, seconds in benchmark(choices).items()}
    return measured(self, choices, op, inputs, benchmark and other, *rest, **more)
codecache.PersistentCache.lookup = lookup
model = torch.nn.Sequential(torch.nn.Linear(64, 64)).eval()
options = {"max_autotune": True, "max_autotune_gemm_backends": "CPP,ATEN", "freezing": True}
with torch.no_grad():
    torch.compile(model, options=options)(torch.ones(64, 64))
"""


def reported(
    folder: Path, name: str, cache: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[str, str], Any]:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder / cache))
    (folder / "job.py").write_text(JOB)
    done = run(folder / "job.py", how, ENDPOINT=f"file:{folder / name}", SPOOL="off")
    assert done.returncode == 0, done.stderr
    identity = json.loads((folder / name).read_text().splitlines()[-1])["instance"]
    chosen = {key: value for key, value in identity["components"].items() if key.startswith(KERNEL)}
    return chosen, identity["capabilities"]["kernel_choices"]


@pytest.mark.needs("a C++ compiler")
@pytest.mark.timeout(175)
@pytest.mark.engines_only
def test_processes_that_chose_another_kernel_differ_only_in_that_component(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, capability = reported(tmp_path, "1", "a", "fast", monkeypatch)
    warm, _ = reported(tmp_path, "2", "a", "fast", monkeypatch)
    other, _ = reported(tmp_path, "3", "b", "slow", monkeypatch)
    [(place, value)] = first.items()
    assert place.startswith("kernel packed_linear ") and value.startswith("cpp_CppMicroGemm")
    assert warm in (first, {}), "a start out of the graph cache asks for no choice"
    assert other.keys() == first.keys() and other[place].startswith("_mkl_linear ")
    assert capability[0] == "partly"


class Measured:
    def __init__(self, name: str, key: str = "k") -> None:
        self.name, self._key = name, key

    def hash_key(self) -> str:
        return self._key


@pytest.fixture(autouse=True)
def _none_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autotuned_kernels, "KERNEL_CHOICES", KERNEL_CHOICES)
    KERNEL_CHOICES.clear()


def chosen(name: str, key: str) -> str:
    KERNEL_CHOICES.clear()
    note_choice("mm", "(8, 8)", {Measured(name, key): 1.0, Measured("mm", "z"): 2.0})
    (value,) = KERNEL_CHOICES.values()
    return value


def test_the_number_of_a_template_is_ignored_and_its_key_is_not() -> None:
    assert chosen("triton_mm_3", "x") == chosen("triton_mm_17", "x") != chosen("triton_mm_3", "y")
    assert chosen("triton_mm_3", "x").startswith("triton_mm ")


def test_a_single_candidate_and_candidates_that_failed_are_no_choice() -> None:
    note_choice("mm", "a", {Measured("mm"): 1.0})
    note_choice("mm", "b", {Measured("mm"): 1.0, Measured("triton_mm_1"): float("inf")})
    assert KERNEL_CHOICES == {}


def test_the_number_of_reported_choices_is_limited() -> None:
    for number in range(MAX_OPERATORS + 9):
        note_choice("mm", str(number), {Measured("mm"): 1.0, Measured("triton_mm_1"): 2.0})
    assert len(KERNEL_CHOICES) == MAX_OPERATORS


def test_a_torch_without_the_lookup_reports_no_and_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        type(torch_internals.GEMM_CHOICES),
        "problem",
        lambda self: "PersistentCache.lookup is not there",
    )
    assert KernelChoices().install(None) == (
        "no",
        "no kernel choices: PersistentCache.lookup is not there",
    )  # type: ignore[arg-type]


def test_strict_redaction_leaves_fingerprints_that_can_be_compared() -> None:
    def redacted(kernel: str) -> dict[str, str]:
        one = Identity(
            "i", 0.0, "m", "1", components={"kernel their_own_op a1b2c3": kernel, "torch": "2.13"}
        )
        identity_redact(one)
        return one.components

    first, same, other = (
        redacted("their_kernel x"),
        redacted("their_kernel x"),
        redacted("another y"),
    )
    assert first == same != other and first.keys() == other.keys() and "their" not in str(first)
    assert all(name == "torch" or name.startswith(KERNEL) for name in first)
