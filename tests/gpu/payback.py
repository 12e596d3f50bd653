"""Payback of compilation, as reported by the agent and the ledger and as measured directly; shadow
calls, NaN and cold starts on a GPU.

`python tests/gpu/payback.py [cuda|cpu]` prints readable lines and, last, all results as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "agents")]

from compilewatch.wire.codec import decode  # noqa: E402
from compilewatch.wire.messages import Request  # noqa: E402

from dashboard.fleet.metrics.break_even import compute_break_even, estimate_savings  # noqa: E402

MODELS = ("gpt2", "resnet50")
VARIABLE = "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM_BACKENDS"
STARTS = (
    ("warm", {}, ""),
    ("environment", {VARIABLE: "ATEN,TRITON,ATEN"}, f"env {VARIABLE}"),
    ("config", {}, "inductor_config: epilogue_fusion"),
)
"""Changes of each later process, and the cause that the agent must name."""
PLANTED = "<lambda>"
"""The frame of the program's other compilation."""


@dataclass
class Calls:
    """The calls of one series, summed over the windows of a recording like the dashboard sums
    minutes."""

    version: str
    place: tuple[str, str, str, int]
    last_minute: int = 0
    calls: int = 0
    latency_sum: float = 0.0
    latency_count: int = 0
    gpu_sum: float = 0.0
    gpu_count: int = 0


class Process:
    """One run of the program, with its output and the reports of its agent."""

    def __init__(
        self, folder: Path, model: str, device: str, role: str, **environment: str
    ) -> None:
        report = folder / f"{role}.jsonl"
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TORCH", "TRITON", "COMPILEWATCH_"))
        }
        own = {
            "PYTHONPATH": f"{ROOT / 'agents'}:{ROOT}",
            "COMPILEWATCH_ENDPOINT": f"file:{report}",
            "COMPILEWATCH_INTERVAL": "2",
            "COMPILEWATCH_SPOOL": str(folder),
            "TORCHINDUCTOR_CACHE_DIR": str(folder / "caches"),
        }
        program = [
            sys.executable,
            "-W",
            "ignore",
            str(Path(__file__).parent / "programs" / "payback.py"),
            model,
            device,
            role,
        ]
        began = time.monotonic()
        done = subprocess.run(
            program,
            env={**clean, **own, **environment},
            capture_output=True,
            text=True,
            timeout=140,
            check=False,
        )
        if done.returncode or not report.exists():
            raise RuntimeError(
                f"{model} {role} ended with status "
                f"{done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-5000:]}"
            )
        self.wall, self.stderr = time.monotonic() - began, done.stderr[-1500:]
        self.output: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        self.requests = [
            decode(Request, json.loads(line)) for line in report.read_text().splitlines()
        ]
        self.reports = [one for request in self.requests for one in request.reports]
        self.compiles = [one for report in self.reports for one in report.compiles]
        self.errors = sum(
            report.losses.internal_errors for report in self.reports if report.losses is not None
        )

    def parities(self, kind: str, region: str) -> list[dict[str, Any]]:
        facts = [
            fact.data for report in self.reports for fact in report.facts if fact.kind == "parity"
        ]
        return [one for one in facts if one.get("kind") == kind and one.get("region") == region]

    def series(self, name: str) -> list[Calls]:
        """By shape bucket, runtime and nesting; eager calls next to traffic are not outermost
        calls."""
        found: dict[tuple[str, str, bool], Calls] = {}
        for report in self.reports:
            for one in report.regions:
                if one.name != name:
                    continue
                key = one.bucket, one.runtime, one.outermost
                row = found.setdefault(
                    key, Calls(one.runtime, (name, one.bucket, self.output["gpu"], 1))
                )
                row.calls += one.calls
                row.last_minute = int(report.window[1] // 60)
                if one.latency is not None:
                    row.latency_sum, row.latency_count = (
                        row.latency_sum + one.latency.sum,
                        row.latency_count + one.latency.count,
                    )
                if one.gpu is not None:
                    row.gpu_sum += (one.gpu.quantile(0.5) or 0.0) * one.gpu.count
                    row.gpu_count += one.gpu.count
        return [
            row for (_, runtime, outermost), row in found.items() if outermost or runtime == "eager"
        ]


def paid(process: Process, name: str) -> dict[str, Any]:
    """Saved seconds per call and the break-even call, by direct measurement and by the ledger."""
    direct, series = process.output["direct"], process.series(name)
    saved = estimate_savings(
        [one for one in series if one.version != "eager"],
        [one for one in series if one.version == "eager"],
    )
    gain = direct["eager"] - direct["compiled"]
    spent = process.output["first_call"] - direct["compiled"]
    compile_seconds = sum(
        one.seconds.get("total", 0.0) for one in process.compiles if one.frame != PLANTED
    )
    found: dict[str, Any] = {
        "direct": {
            "eager": direct["eager"],
            "compiled": direct["compiled"],
            "saved_per_call": gain,
            "spent": spent,
        },
        "rounds": direct["rounds"],
        "baseline": process.output["baseline"],
        "series": [vars(one) for one in series],
        "compiles": [(one.frame, one.seconds.get("total")) for one in process.compiles],
    }
    found["direct"]["break_even"] = spent / gain if gain > 0 else None
    if saved is None:
        return {**found, "agent": None}
    each = saved.seconds / saved.calls
    calls = compute_break_even(compile_seconds, saved.seconds, saved.calls)
    found["agent"] = {
        "saved_per_call": each,
        "spent": compile_seconds,
        "break_even": calls,
        "calls": saved.calls,
        "on_gpu": saved.on_gpu,
        "reference": saved.reference_calls,
    }
    found["percent"] = 100 * (each / gain - 1)
    if calls and gain > 0:
        found["break_even_percent"] = 100 * (calls / found["direct"]["break_even"] - 1)
    return found


def started(process: Process, expected: str) -> dict[str, Any]:
    """The cache results of a start, and the cause of a miss that the agent reports."""
    first = process.compiles[0]
    findings = [
        one for report in process.reports for one in report.findings if one.kind == "cache_miss"
    ]
    found = {
        "cache": first.cache,
        "named": first.miss,
        "expected": expected,
        "findings": [(one.text, one.seconds) for one in findings],
        "compiling": first.seconds.get("total"),
        "first_call": process.output["first_call"],
        "saved": first.saved,
        "internal_errors": process.errors,
    }
    hit = first.cache.get("fx") == "hit"
    return {
        **found,
        "right": first.miss == expected
        and hit == (not expected)
        and bool(findings) == bool(expected),
    }


def measured(folder: Path, model: str, device: str) -> dict[str, Any]:
    process = Process(folder, model, device, "measure")
    shadow, nan = process.parities("shadow", model), process.parities("finite", "divide")
    most = max(shadow, key=lambda one: one.get("samples", 0), default=None)
    captured = process.parities("finite", "captured")[-1:]
    return {
        "payback": paid(process, model),
        "shadow": {
            **process.output["shadow"],
            "reported": most,
            "reported_times": len(shadow),
        },
        "finite": {
            **process.output["finite"],
            "reported": nan[-1] if nan else None,
            "captured_reported": captured,
        },
        "cold": started(process, "no earlier run is known"),
        "internal_errors": process.errors,
        "capabilities": {
            key: process.requests[-1].instance.capabilities.get(key)
            for key in ("gpu_time", "compilations", "caches")
        },
        "wall": process.wall,
        "stderr": process.stderr,
    }


def again(folder: Path, model: str, device: str) -> dict[str, Any]:
    """The later starts, one after the other, each with the caches of the earlier starts."""
    found = {}
    for role, environment, expected in STARTS:
        process = Process(folder, model, device, role, **environment)
        found[role] = {**started(process, expected), "wall": process.wall}
    return found


def print_results(model: str, found: dict[str, Any]) -> None:
    """Prints readable lines for one model."""
    if "error" in found:
        print(f"{model}: FAILED\n{found['error']}", flush=True)
        return
    pay, shadow, nan = found["payback"], found["shadow"], found["finite"]
    print(
        f"{model}: wall {found['wall']:.1f} s, internal errors {found['internal_errors']}, "
        f"{found['capabilities']}"
    )
    print(f"  direct  {pay['direct']}\n  agent   {pay['agent']}")
    print(
        f"  saved per call error {pay.get('percent')}%, break-even "
        f"error {pay.get('break_even_percent')}%; {pay['baseline']}"
    )
    print(f"  shadow  {shadow}\n  finite  {nan}\n  stderr  {found['stderr']}", flush=True)


def print_starts(model: str, found: dict[str, Any]) -> None:
    for role in ("cold", *(one[0] for one in STARTS)):
        if role in found:
            print(
                f"{model} {role}: {'right' if found[role]['right'] else 'WRONG'} {found[role]}",
                flush=True,
            )


def main(device: str) -> dict[str, Any]:
    """Measures one model at a time; the later starts of both models run in parallel."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folders = {model: Path(name) / model for model in MODELS}
        for model, folder in folders.items():
            folder.mkdir()
            try:
                found[model] = measured(folder, model, device)
            except Exception as error:  # noqa: BLE001 - the other model is still measured, and this failure is printed
                found[model] = {"error": f"{type(error).__name__}: {error}"}
            print_results(model, found[model])
        with ThreadPoolExecutor() as pool:
            later = {
                model: pool.submit(again, folder, model, device)
                for model, folder in folders.items()
                if "error" not in found[model]
            }
        for model, starts in later.items():
            found[model] |= starts.result()
            print_starts(model, found[model])
    return found


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1] if len(sys.argv) > 1 else "cuda"), default=str))
