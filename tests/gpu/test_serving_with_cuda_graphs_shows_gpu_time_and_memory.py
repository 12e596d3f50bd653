"""The serving example with reduce-overhead on a GPU: GPU time of sampled calls, memory of the
device, and Triton's share of a compilation."""

from __future__ import annotations

from collections.abc import Callable

import torch
from conftest import EXAMPLES, Recording

Record = Callable[..., Recording]
SERVE = [
    str(EXAMPLES / "serve.py"),
    "--device",
    "cuda",
    "--mode",
    "reduce-overhead",
    "--rate",
    "200",
]


def test_calls_have_gpu_time_and_the_device_has_memory(record: Record) -> None:
    recording = record(*SERVE, "--seconds", "12", "--version", "7")
    assert recording.instance["version"] == "7"
    assert recording.instance["gpu"] == torch.cuda.get_device_name(0)
    assert recording.capability("gpu_time")[0] == "yes"
    timed = [region for region in recording.all("regions") if region.get("gpu")]
    assert {region["name"] for region in timed} >= {"Ranker"}
    assert all(0 < region["gpu"]["sum"] / region["gpu"]["count"] < 1 for region in timed)
    devices = [
        device for report in recording.reports for device in report["gauges"].get("devices", [])
    ]
    assert devices
    assert all(
        0 < device["allocated"] <= device["peak"] <= device["reserved"] for device in devices[-3:]
    )


def test_almost_all_calls_are_compiled_in_the_requested_mode(record: Record) -> None:
    recording = record(*SERVE, "--seconds", "8")
    regions = [region for region in recording.all("regions") if region["name"] == "Ranker"]
    assert {region["mode"] for region in regions} == {"reduce-overhead"}
    sampled = sum(region.get("sampled", 0) for region in regions)
    assert sampled > 100
    assert sum(region.get("compiled", 0) for region in regions) >= 0.99 * sampled


def test_a_cold_compilation_shows_triton_time_and_its_memory(record: Record) -> None:
    recording = record(*SERVE, "--seconds", "2", fresh_cache=True)
    first = recording.all("compiles")[0]
    assert first["cache"]["fx"] == "miss"
    assert first["seconds"]["triton"] > 0
    phases = {name: seconds for name, seconds in first["seconds"].items() if name != "total"}
    assert sum(phases.values()) <= first["seconds"]["total"]
    warm = record(*SERVE, "--seconds", "2", fresh_cache=True)
    assert warm.all("compiles")[0]["cache"]["fx"] == "hit"
    assert warm.all("compiles")[0]["saved"] > 0


def test_unpadded_sequences_run_eager_after_the_recompile_limit(record: Record) -> None:
    recording = record(*SERVE, "--seconds", "75", "--fault", "shapes")
    latched = [fact for fact in recording.all("facts") if fact["kind"] == "latched_eager"]
    assert [fact["data"]["limit_name"] for fact in latched] == ["recompile_limit"]
    regions = [region for region in recording.all("regions") if region["name"] == "Ranker"]
    assert sum(region.get("eager_by", {}).get("limit", 0) for region in regions) > 0
    assert sum(region.get("compiled", 0) for region in regions) > 0
