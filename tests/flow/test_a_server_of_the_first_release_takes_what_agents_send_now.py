"""A real job of today with shadow calls, sampled values, an eager baseline and kernel choices
reports to the first release's own code: every report is accepted and folded, none is refused or
quarantined."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from compilewatch.wire.codec import decode, encode
from compilewatch.wire.messages import KERNEL, Request

from tests.agent.programs import run
from tests.faults.rolling import release_unpack

pytestmark = pytest.mark.timeout(600)
JOB = """
import time, torch, compilewatch
from compilewatch.numerics import live_results as results, nan_check as finite
results.REPORT_INTERVAL_S, finite.SAMPLE_INTERVAL = 0.0, 1
compilewatch.init(model="ranker", version="2", interval=0.3)
model = torch.compile(torch.nn.Linear(8, 8), backend="aot_eager")
watched = compilewatch.watch(model, name="forward", finite=True)
live = compilewatch.shadow(watched, rate=1.0)
with torch.no_grad():
    compilewatch.golden("batch", model, (torch.ones(2, 8),))
    compilewatch.eager_baseline(watched, (torch.ones(2, 8),), calls=3)
    for _ in range(5):
        live(torch.ones(2, 8))
        watched(torch.full((2, 8), float("nan")))
"""
SERVER = """
import json, sys, django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from django.test import Client
from dashboard.fleet.services import fold_all
from dashboard.ingest.models import InboxRow
from dashboard.projects.services import key_create, project_create
from dashboard.fleet import models
_, key = key_create(project=project_create(name="p", slug="p"), kind="ing", name="k")
answers = []
for line in open(sys.argv[1], "rb").read().splitlines():
    headers = {"host": "127.0.0.1", "authorization": "Bearer " + key}
    answer = Client(headers=headers).post("/api/v1/reports", line, content_type="application/json")
    answers.append([answer.status_code, answer.json()])
fold_all()
instance = models.Instance.objects.get()
found = {"components": instance.components, "version": instance.version.name}
print(json.dumps({"answers": answers, "left": InboxRow.objects.count(), **found}))
"""


def test_every_report_is_accepted_and_folded(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)
    done = run(tmp_path / "job.py", ENDPOINT=f"file:{tmp_path / 'reports'}", SPOOL="off")
    assert (done.returncode, done.stderr) == (0, "")
    requests = [
        decode(Request, json.loads(line))
        for line in (tmp_path / "reports").read_text().splitlines()
    ]
    facts = [fact for one in requests for report in one.reports for fact in report.facts]
    told = {
        fact.data.get("kind", "golden") if fact.kind == "parity" else fact.kind for fact in facts
    }
    assert told >= {"golden", "shadow", "finite", "mark"}
    for one in requests:
        one.instance.components[f"{KERNEL}mm 1a2b3c"] = "cpp_gemm 9f8e7d"
    (tmp_path / "sent").write_bytes(
        b"\n".join(json.dumps(encode(one)).encode() for one in requests)
    )
    earlier = release_unpack(tmp_path / "earlier")
    plain = {
        name: value for name, value in os.environ.items() if not name.startswith("COMPILEWATCH_")
    }
    settings = {
        "COMPILEWATCH_DATA": str(tmp_path / "data"),
        "DJANGO_SETTINGS_MODULE": "dashboard.settings",
    }
    paths = {"PYTHONPATH": f"{earlier}:{earlier / 'agents'}"}
    (tmp_path / "data").mkdir()
    server = [sys.executable, "-c", SERVER, str(tmp_path / "sent")]
    answered = subprocess.run(
        server,
        cwd=earlier,
        env=plain | settings | paths,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert answered.returncode == 0, answered.stderr
    found = json.loads(answered.stdout.splitlines()[-1])
    assert all(
        status == 200 and not answer.get("rejected") for status, answer in found["answers"]
    ), found["answers"]
    taken = {
        seq
        for _, answer in found["answers"]
        for first, last in answer["acked"]
        for seq in range(first, last + 1)
    }
    assert taken == {report.seq[0] for one in requests for report in one.reports}
    assert (found["left"], found["version"], found["components"][f"{KERNEL}mm 1a2b3c"]) == (
        0,
        "2",
        "cpp_gemm 9f8e7d",
    )
