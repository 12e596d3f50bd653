"""A real job recompiles until the limit. The next versions apply the finding's suggestion, and the
page marks the finding as gone."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from compilewatch.wire.codec import decode
from compilewatch.wire.messages import Report, Request

from dashboard.demo.sender import Endpoint, batch_reports
from tests.agent.programs import run
from tests.flow.stack import Stack, wait_for

pytestmark = pytest.mark.timeout(500)
SIZES, HOUR = range(2, 13), 65
JOB = """
import os, sys
os.environ.update({variables})
import compilewatch
compilewatch.init(model="ranker", version=sys.argv[1], interval=1.0)
import torch
torch._dynamo.config.automatic_dynamic_shapes = False

def score(x):
    return x.relu() * 2

step = compilewatch.watch(torch.compile(score, backend="eager"), name="score")
for size in {sizes}:
    x = torch.ones(size, 4)
    {fix}
    step(x)
compilewatch.shutdown()
"""


def started(
    stack: Stack,
    version: str,
    *,
    minutes_ago: int,
    fix: str = "pass",
    variables: dict[str, str] | None = None,
) -> None:
    """Runs the job and sends its reports as of then; the last window is sent again for the hour in
    which the job serves."""
    program, recording = Path(stack.folder) / "job.py", Path(stack.folder) / f"reports-{version}"
    program.write_text(JOB.format(sizes=list(SIZES), fix=fix, variables=variables or {}))
    done = run(program, version, ENDPOINT=f"file:{recording}", SPOOL="off")
    assert done.returncode == 0, done.stderr
    requests = [decode(Request, json.loads(line)) for line in recording.read_text().splitlines()]
    reports = [report for request in requests for report in request.reports]
    back = (time.time() // 60 - minutes_ago) * 60 + 5 - reports[0].window[0]
    told = [moved(report, back) for report in reports]
    quiet = replace(reports[-1], compiles=[], findings=[], facts=[])
    told += [
        replace(moved(quiet, back + 60 * n), seq=(quiet.seq[1] + n, quiet.seq[1] + n))
        for n in range(1, HOUR)
    ]
    identity = replace(requests[-1].instance, started=requests[-1].instance.started + back)
    endpoint = Endpoint(port=stack.port, key=stack.key)
    for batch in batch_reports(iter(told)):
        endpoint.send(SimpleNamespace(identity=identity), batch)  # type: ignore[arg-type]


def moved(report: Report, seconds: float) -> Report:
    """The same report at another time."""
    begin, end = report.window
    compiles = [replace(one, at=one.at + seconds) for one in report.compiles]
    return replace(report, window=(begin + seconds, end + seconds), compiles=compiles, facts=[])


def finding(stack: Stack) -> tuple[dict[str, Any], str]:
    """The guard's finding: as JSON, and its page."""
    ((number,),) = stack.rows("SELECT id FROM finding WHERE kind = 'guard'")
    address = f"/p/flow/findings/{number}"
    data, page = (unescape(stack.page(f"{address}{ending}")) for ending in (".json", "/"))
    return json.loads(data.replace("\\u00a0", " ")), page.replace("\xa0", " ")


def test_the_suggestion_of_the_finding_removes_it(stack: Stack) -> None:
    started(stack, "1", minutes_ago=210)
    wait_for(
        "the guard is reported",
        lambda: stack.rows("SELECT count(*) FROM finding WHERE kind = 'guard'")[0][0],
        seconds=120,
    )
    told, page = finding(stack)
    way = told["way_out"]
    assert (way["varies"]["what"], way["varies"]["source"], way["varies"]["dim"]) == (
        "size",
        "x",
        0,
    )
    assert [(one["label"], one["count"]) for one in way["values"]["buckets"]] == [
        (str(size), 1) for size in SIZES[1:9]
    ]
    assert way["headroom"]["entries"] == {"count": 8, "limit": 8}
    assert told["without"] == [] and "No version has been deployed since" in page
    codes = {one["title"]: one["code"] for one in way["ways"]}
    name, _, value = codes["Name the source"].partition("=")

    started(stack, "2", minutes_ago=140, fix=codes["Mark it dynamic"])
    started(stack, "3", minutes_ago=70, variables={name: value.strip('"')})
    wait_for("all is folded", stack.folded, seconds=120)
    of_guard = (
        "SELECT finding_life.state FROM finding_life JOIN finding ON finding.id = finding_id "
        "WHERE kind = 'guard'"
    )
    wait_for("the finding is gone", lambda: stack.rows(of_guard) == [("gone",)], seconds=120)
    told, page = finding(stack)
    assert [state["state"] for state in told["states"]] == ["gone"]
    assert {
        one["version"]: (one["minutes"] >= 60, one["compilations"]) for one in told["without"]
    } == {"2": (True, 1), "3": (True, 1)}
    assert all(
        one["proof"].startswith("gone: ") and "1 compilation of the same place" in one["proof"]
        for one in told["without"]
    )
    assert page.count("1 compilation of the same place on 1 instance without it") == 2
