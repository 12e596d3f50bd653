"""A real job with shadow calls, recorded and stored: the Version page shows its speed-up, error and
NaN, and Payback uses them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from compilewatch.wire.codec import decode
from compilewatch.wire.messages import Request
from django.test import Client

from dashboard.common import clock
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import ModelVersion
from dashboard.projects.models import Project
from tests.agent.programs import run
from tests.dashboard.ui.version_story import part, shown

pytestmark = pytest.mark.django_db
JOB = """
import time, torch, compilewatch
from compilewatch.numerics import live_results, nan_check as finite
live_results.REPORT_INTERVAL_S, finite.SAMPLE_INTERVAL = 0.3, 1
compilewatch.init(model="ranker", version="2", interval=0.5)

class Slow(torch.nn.Module):
    def forward(self, x):
        if not torch.compiler.is_compiling():
            time.sleep(0.03)
        return x / x

watched = compilewatch.watch(torch.compile(Slow(), backend="aot_eager"), name="forward", finite=True)
model = compilewatch.shadow(watched, rate=1.0)
with torch.no_grad():
    for _ in range(41):
        model(torch.ones(64))
        watched(torch.ones(64))
    time.sleep(0.4)
    model(torch.zeros(64))
"""


def test_the_page_shows_the_results_of_the_shadow_calls(
    tmp_path: Path, store_reports: Callable[..., object], signed_in: Client, project: Project
) -> None:
    (tmp_path / "job.py").write_text(JOB)
    done = run(tmp_path / "job.py", ENDPOINT=f"file:{tmp_path / 'reports'}", SPOOL="off")
    assert (done.returncode, done.stderr) == (0, "")
    for line in (tmp_path / "reports").read_text().splitlines():
        # Sent at the time of storage: an older request looks like a sender whose clock is behind.
        store_reports(replace(decode(Request, json.loads(line)), sent=clock.unix()))
    fold_all()
    version = ModelVersion.objects.get(name="2")
    page = f"/p/{project.slug}/models/{version.model_id}/versions/{version.pk}"
    told = {one["kind"]: one for one in signed_in.get(f"{page}.json").json()["live_calls"]}
    shadow, finite = told["shadow"], told["finite"]
    assert (
        40 <= shadow["samples"] <= 42 and shadow["beyond"] == 0 and shadow["relative_error"] == 0.0
    )
    assert shadow["speed_up"] > 2 and shadow["eager_seconds"] >= 0.03 > shadow["compiled_seconds"]
    assert finite["beyond"] == 1 and finite["nonfinite"] == 64
    text = shown(signed_in, project, "2")
    assert "times as fast" in text and "1 of 83 results contain NaN or infinite values" in text
    assert "shadow calls of 2" in part(text, "pay")
    payback = signed_in.get(f"{page}.json").json()["payback"]
    assert payback["saved"] > 0.5 and payback["estimate"] is True
