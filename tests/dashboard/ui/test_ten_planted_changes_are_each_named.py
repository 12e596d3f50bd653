"""Ten changes, planted one at a time against a warm start of a real process: the Version page names
each change and its origin."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from compilewatch.wire.cache_miss_causes import (
    EMPTY_FOLDER,
    NO_EARLIER_RUN,
    OTHER_FOLDER,
    OTHER_GRAPH,
    OTHER_INPUTS,
)
from compilewatch.wire.codec import decode
from compilewatch.wire.messages import Request
from django.test import Client

from dashboard.common import clock
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import ModelVersion
from dashboard.fleet.selectors.compilations.cache_miss_causes import SAME_CONFIGURATION
from dashboard.projects.models import Project, Role
from dashboard.projects.services import member_add

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(600), pytest.mark.sqlite_only]
JOB = """
import sys
import compilewatch
assert compilewatch.init(model="ranker", version=sys.argv[2], endpoint="file:" + sys.argv[1], interval=30)
import torch, torch._dynamo.config, torch._inductor.codecache, torch._inductor.config
{before}
def step(x):
    return {line}
torch.compile(step)(torch.ones({size}, {size}))
compilewatch.shutdown()
"""
ANOTHER_TORCH = (
    'torch.__version__ = "2.99.0"; torch._inductor.codecache.torch_key = lambda: b"other sources"'
)
"""Simulates an upgrade. This is the only simulated change of the ten, because a second torch needs
a gigabyte."""
PASS = """
from torch._inductor.custom_graph_pass import CustomGraphPass
class Pass(CustomGraphPass):
    def __call__(self, graph): pass
    def uuid(self): return b"of the job"
torch._inductor.config.post_grad_custom_post_pass = Pass()
"""


class Planted(NamedTuple):
    """A change, the cause expected from an agent that kept its last run, and the cause that the
    server finds for an agent without an earlier run."""

    what: str
    job: dict[str, Any]
    variables: dict[str, str]
    cause: str
    compared: str = ""
    empties: bool = False


def torch_upgrade() -> str:
    import torch

    return f"torch {torch.__version__} -> 2.99.0"


def ten(folder: Path) -> list[Planted]:
    backends, threads = "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM_BACKENDS", "OMP_NUM_THREADS"
    return [
        Planted(
            "a variable that inductor reads", {}, {backends: "ATEN,CPP,ATEN"}, f"env {backends}"
        ),
        Planted(
            "an option of inductor",
            {"before": "torch._inductor.config.epilogue_fusion = False"},
            {},
            "inductor_config: epilogue_fusion",
        ),
        Planted(
            "an option of Dynamo",
            {"before": "torch._dynamo.config.assume_static_by_default = False"},
            {},
            "dynamo_config: assume_static_by_default",
        ),
        Planted("another torch", {"before": ANOTHER_TORCH}, {}, torch_upgrade()),
        Planted("a line of the model", {"line": "x @ x @ x"}, {}, OTHER_GRAPH, SAME_CONFIGURATION),
        Planted("other sizes", {"size": 8}, {}, OTHER_INPUTS, SAME_CONFIGURATION),
        Planted(
            "a custom pass", {"before": PASS}, {}, "inductor_config: post_grad_custom_post_pass"
        ),
        Planted("the number of threads", {}, {threads: "1"}, f"env {threads}"),
        Planted(
            "a moved cache folder",
            {},
            {"TORCHINDUCTOR_CACHE_DIR": str(folder / "moved")},
            OTHER_FOLDER,
        ),
        Planted("an emptied cache folder", {}, {}, EMPTY_FOLDER, empties=True),
    ]


class Machine:
    """Runs one process after another with one cache folder; each change starts from the agent
    folder that the warm start left."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.caches, self.kept = folder, folder / "caches", folder / "spool"

    def start(
        self, version: str, host: str, job: dict[str, Any], variables: dict[str, str], spool: Path
    ) -> list[Request]:
        """Run a process; returns the requests it sent."""
        place = self.folder / version.replace(" ", "-")
        place.mkdir(exist_ok=True)
        (place / "job.py").write_text(
            JOB.format(**{"before": "", "line": "x @ x", "size": 4, **job})
        )
        recording = place / f"{host}.jsonl"
        strange = ("TORCH", "TRITON", "OMP_", "MKL_", "COMPILEWATCH_")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(strange)}
        own = {
            "TORCHINDUCTOR_CACHE_DIR": str(self.caches),
            "COMPILEWATCH_SPOOL": str(spool),
            **variables,
        }
        command = [sys.executable, str(place / "job.py"), str(recording), version]
        subprocess.run(command, env={**clean, **own}, check=True, timeout=240, capture_output=True)
        requests = [
            decode(Request, json.loads(line)) for line in recording.read_text().splitlines()
        ]
        return [replace(one, instance=replace(one.instance, host=host)) for one in requests]

    def changed(self, planted: Planted) -> list[Request]:
        spool = self.folder / f"spool {planted.what}"
        shutil.copytree(self.kept, spool)
        if planted.empties:
            shutil.rmtree(self.caches)
        return self.start(planted.what, "gpu-02", planted.job, planted.variables, spool)


def unknowing(request: Request) -> Request:
    """The same request from a new container, whose agent has no earlier run to compare with."""
    reports = [
        replace(
            report,
            compiles=[
                replace(one, miss=NO_EARLIER_RUN if one.miss else "") for one in report.compiles
            ],
            findings=[],
        )
        for report in request.reports
    ]
    return replace(request, reports=reports)


def read_cause(client: Client, project: Project, version: str) -> tuple[dict[str, Any], str]:
    """The only cause on the page of a version, and the page."""
    row = ModelVersion.objects.get(project=project, name=version)
    address = f"/p/{project.slug}/models/{row.model_id}/versions/{row.pk}"
    (cause,) = client.get(f"{address}.json").json()["misses"]
    return cause, unescape(client.get(f"{address}/").content.decode())


def test_ten_of_ten_changes_are_named_with_their_origin(
    tmp_path: Path,
    store_reports: Callable[..., object],
    signed_in: Client,
    project: Project,
    other_project: Project,
    user: Any,
) -> None:
    member_add(project=other_project, user=user, role=Role.VIEWER)
    machine, planted = Machine(tmp_path), ten(tmp_path)
    cold = machine.start("1", "gpu-00", {}, {}, machine.kept)
    warm = machine.start("1", "gpu-01", {}, {}, machine.kept)
    with ThreadPoolExecutor(2) as both:
        changes = list(both.map(machine.changed, planted[:-1]))
    changes.append(machine.changed(planted[-1]))
    for request in [*cold, *warm, *(one for change in changes for one in change)]:
        # Sent at the time of storage: an older request looks like a sender whose clock is behind.
        store_reports(replace(request, sent=clock.unix()))
        store_reports(replace(unknowing(request), sent=clock.unix()), project=other_project)
    fold_all()

    table, wrong = [], []
    for one in planted:
        (by_agent, page), (by_server, _) = (
            read_cause(signed_in, project, one.what),
            read_cause(signed_in, other_project, one.what),
        )
        table.append(
            f"| {one.what} | {by_agent['cause']} | {by_agent['brought_by']} | "
            f"{by_server['cause']} | {by_server['brought_by']} |"
        )
        who = "a folder without it on gpu-02" if one.empties else f"{one.what} on gpu-02"
        who = f"{one.what}, after 1" if one.compared else who
        right = (by_agent["cause"], by_server["cause"]) == (one.cause, one.compared or one.cause)
        right = (
            right
            and by_agent["brought_by"] == by_server["brought_by"] == who
            and one.cause in page
            and who in page
        )
        right = (
            right
            and by_agent["seconds"] > 0
            and by_server["against"].startswith("gpu-01 / rank 0 / pid ")
        )
        wrong += [] if right else [one.what]
    print(
        "\n| planted | named by the agent | origin | named by the server alone | "
        "origin |\n|---|---|---|---|---|",
        *table,
        sep="\n",
    )
    assert wrong == []
