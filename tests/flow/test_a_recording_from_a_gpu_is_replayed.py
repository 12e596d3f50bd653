"""Two versions recorded on an H200 are replayed: GPU time, memory, compilations, recompile reasons
and the eager fallback arrive."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.flow.stack import REPOSITORY, Stack, wait_for

pytestmark = pytest.mark.timeout(300)
RECORDINGS = sorted((REPOSITORY / "tests/data/recordings").glob("h200-serve-*.jsonl.gz"))


def reports(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt") as lines:
        return [report for line in lines for report in json.loads(line)["reports"]]


def replay(stack: Stack, path: Path, *, status: int = 0) -> str:
    command = [sys.executable, "-m", "compilewatch", "replay", str(path), "--shift-to-now"]
    arguments = ["--endpoint", f"http://127.0.0.1:{stack.port}", "--key", stack.key]
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def test_a_recording_from_a_gpu_is_replayed(stack: Stack) -> None:
    assert len(RECORDINGS) == 4
    recorded = [report for path in RECORDINGS for report in reports(path)]
    for path in RECORDINGS:
        assert (
            f"{len(reports(path))} windows of 1 instances acknowledged, 0 rejected, 0 not sent"
            in replay(stack, path)
        )
    wait_for("everything is folded", stack.folded, seconds=60)

    regions = [region for report in recorded for region in report.get("regions", [])]
    assert stack.rows("SELECT sum(calls) FROM version_hour")[0][0] == sum(
        region["calls"] for region in regions
    )
    samples = sum(region["gpu"]["count"] for region in regions if "gpu" in region)
    assert samples > 1000
    assert stack.rows("SELECT sum(gpu_count) FROM version_hour")[0][0] == samples
    assert stack.rows("SELECT count(*) FROM compile_event")[0][0] == sum(
        len(report.get("compiles", [])) for report in recorded
    )
    assert (
        stack.rows("SELECT count(*) FROM compile_event WHERE reason LIKE '%size mismatch%'")[0][0]
        >= 14
    )
    peaks = stack.rows(
        "SELECT min(gpu_peak), max(gpu_peak) FROM process_minute WHERE gpu_peak IS NOT NULL"
    )[0]
    assert 1 << 20 < peaks[0] <= peaks[1] < 144 << 30
    latched = stack.rows(
        "SELECT model_version.name, count(*) FROM finding_instance JOIN finding ON "
        "finding.id = finding_id"
        " JOIN instance ON instance.id = finding_instance.instance_id JOIN model_version "
        "ON model_version.id = instance.version_id"
        " WHERE finding.kind = 'latched_eager' GROUP BY 1"
    )
    assert latched == [("2", 2)]

    before = stack.rows("SELECT sum(calls) FROM version_hour")
    again = replay(stack, RECORDINGS[0], status=1)  # other windows, because they were moved in time
    assert "16 rejected, 0 not sent" in again  # the dashboard has no digests of older ones
    assert "--new-ids" in again
    wait_for("everything is folded", stack.folded, seconds=60)
    assert stack.rows("SELECT sum(calls) FROM version_hour") == before
