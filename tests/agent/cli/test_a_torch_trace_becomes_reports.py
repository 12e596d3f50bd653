"""A folder that torch wrote under TORCH_TRACE becomes the reports of compilations that the agent
would have sent."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from compilewatch.cli.import_trace import read
from compilewatch.wire.codec import loads
from compilewatch.wire.messages import Compile, Report, Request

from tests.agent.programs import command, environment
from tests.agent.server import Dashboard
from tests.machine import need

JOB = """
import torch

@torch.compile(dynamic=False)
def scaled(x):
    return (x * 2).sin().sum()

@torch.compile(backend="eager")
def talkative(x):
    y = x + 1
    print("half way")
    return y.cos()

@torch.compile
def trained(x, w):
    return (x @ w).relu().sum()

@torch.compile(backend="eager", fullgraph=True)
def strict(x):
    print("never")
    return x

torch._dynamo.config.recompile_limit = 2
for length in (3, 4, 5, 6):
    scaled(torch.ones(length))
for _ in range(2):
    talkative(torch.ones(4))
trained(torch.ones(2, 4), torch.ones(4, 4, requires_grad=True)).backward()
try:
    strict(torch.ones(2))
except Exception:
    pass
"""
FULLGRAPH = "a trace lacks fullgraph: a failure that was raised reads as a frame left eager"
NOT_IN_A_TRACE = {"backend", "mode", "fullgraph", "miss", "in_request"}
NAME = "dedicated_log_torch_trace_abcdefgh.log"
IMPORT = ("--model", "m", "--model-version", "7")


@dataclass
class Ran:
    """A job recorded twice: by torch's trace and by the agent."""

    folder: Path
    traces: Path
    agent: list[Report]

    @property
    def trace(self) -> Path:
        [found] = self.traces.iterdir()
        return found


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    need("a C++ compiler")
    folder = tmp_path_factory.mktemp("job")
    (folder / "job.py").write_text(JOB)
    settings = environment(ENDPOINT=f"file:{folder}/agent.jsonl", MODEL="m", VERSION="7")
    own = {
        "TORCH_TRACE": f"{folder}/traces",
        "TORCHINDUCTOR_CACHE_DIR": f"{folder}/cache",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }
    words = [sys.executable, "-m", "compilewatch", "run", "--", "python", "job.py"]
    subprocess.run(
        words, cwd=folder, env={**settings, **own}, check=True, capture_output=True, timeout=200
    )
    return Ran(folder, folder / "traces", recorded(folder / "agent.jsonl")[1])


def recorded(path: Path) -> tuple[list[Any], list[Report]]:
    requests = [loads(Request, line) for line in path.read_bytes().splitlines()]
    return [request.instance for request in requests], [
        report for request in requests for report in request.reports
    ]


def imported(ran: Ran, name: str) -> tuple[list[Any], list[Report]]:
    done = command(
        "import-trace",
        str(ran.traces),
        *IMPORT,
        "--to",
        f"file:{ran.folder / name}",
        folder=ran.folder,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "a trace holds no calls and no memory" in done.stdout
    return recorded(ran.folder / name)


@pytest.fixture(scope="module")
def both(ran: Ran) -> tuple[list[Compile], list[Compile], list[Report]]:
    """The agent's compilations, the imported compilations, and the imported reports."""
    reports = imported(ran, "both.jsonl")[1]
    return compiles_of(ran.agent), compiles_of(reports), reports


def compiles_of(reports: list[Report]) -> list[Compile]:
    return [compile for report in reports for compile in report.compiles]


def findings(reports: list[Report], kind: str) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for finding in (one for report in reports for one in report.findings if one.kind == kind):
        found[finding.text, finding.where] += finding.count
    return found


def test_compilations_are_those_that_the_agent_reported(
    both: tuple[list[Compile], list[Compile], list[Report]],
) -> None:
    agent, trace, _ = both
    assert len(agent) >= 8
    assert {one.kind for one in agent} >= {"first", "recompile", "backward"}
    for name in ("id", "kind", "frame", "file", "line", "key"):
        assert [getattr(one, name) for one in trace] == [getattr(one, name) for one in agent], name
    assert [one.saved for one in trace] == [one.saved for one in agent]
    differ = {
        (mine.frame, mine.outcome, its.outcome)
        for mine, its in zip(agent, trace, strict=True)
        if mine.outcome != its.outcome
    }
    assert differ == {("strict", "raised", "skipped")}, FULLGRAPH
    assert [(one.reason_kind, one.reason) for one in trace] == [
        (one.reason_kind, one.reason) for one in agent
    ]
    assert any(one.reason_kind == "guard" for one in trace) and any(
        one.reason_kind == "limit" for one in trace
    )
    asked = ("fx", "aot")
    assert [{cache: one.cache.get(cache) for cache in asked} for one in trace] == [
        {cache: one.cache.get(cache) for cache in asked} for one in agent
    ]
    assert all(
        one.at == pytest.approx(other.at, abs=0.1) for one, other in zip(trace, agent, strict=True)
    )


def test_fields_that_a_trace_lacks_are_empty(
    both: tuple[list[Compile], list[Compile], list[Report]],
) -> None:
    empty = Compile(0.0, "", "first", "ok")
    for one in both[1]:
        assert all(getattr(one, name) == getattr(empty, name) for name in NOT_IN_A_TRACE)
    for report in both[2]:
        assert (
            report.regions,
            report.gauges.devices,
            report.gauges.host_rss,
            report.gauges.compiling_for,
        ) == ([], [], None, None)
    assert all(finding.kind != "cache_miss" for report in both[2] for finding in report.findings)


def test_phases_are_those_that_the_agent_reported(
    both: tuple[list[Compile], list[Compile], list[Report]],
) -> None:
    for mine, its in zip(both[0], both[1], strict=True):
        told = dict(mine.seconds)
        # The agent's own hook times the reading of headers; without that hook this time belongs to
        # the C++ compiler and the code generator.
        headers = told.pop("headers", 0.0)
        assert set(its.seconds) == set(told)
        assert its.seconds == pytest.approx(told, abs=0.002 + headers)
        assert sum(its.seconds.values()) - its.seconds["total"] == pytest.approx(
            its.seconds["total"], abs=0.001
        )


def test_breaks_guards_and_fallback_frames_are_those_that_the_agent_reported(
    ran: Ran, both: tuple[list[Compile], list[Compile], list[Report]]
) -> None:
    trace = both[2]
    assert findings(trace, "guard") == findings(ran.agent, "guard")
    assert findings(ran.agent, "guard").total() >= 2
    mine, its = findings(ran.agent, "graph_break"), findings(trace, "graph_break")
    assert mine.total() == 1
    assert its - mine == findings(ran.agent, "compile_error") and not mine - its, FULLGRAPH
    latched = [
        [
            (fact.data["frame"], fact.data["cause"])
            for one in side
            for fact in one.facts
            if fact.kind == "latched_eager"
        ]
        for side in (ran.agent, trace)
    ]
    assert latched == [[("scaled", "limit")], [("scaled", "limit"), ("strict", "skip")]], FULLGRAPH


def test_windows_are_consecutive_and_carry_the_identity_of_the_process(ran: Ran) -> None:
    [identity], reports = imported(ran, "identity.jsonl")
    agent = recorded(ran.folder / "agent.jsonl")[0][-1]
    assert [report.seq for report in reports] == [
        (number, number) for number in range(1, len(reports) + 1)
    ]
    assert all(
        report.window[0] <= one.at < report.window[1] <= report.window[0] + 10.0
        for report in reports
        for one in report.compiles
    )
    assert all(before.window[1] <= after.window[0] for before, after in itertools.pairwise(reports))
    for name in ("model", "version", "environment", "kind", "pid", "rank", "torch", "python"):
        assert getattr(identity, name) == getattr(agent, name), name
    assert (identity.host, identity.capabilities["import_trace"][1]) == (
        "unknown",
        "from a TORCH_TRACE folder: no calls, no memory",
    )


def test_a_second_import_sends_the_same_reports(ran: Ran) -> None:
    first, second = ([] for _ in range(2))
    for lines, name in ((first, "first.jsonl"), (second, "second.jsonl")):
        imported(ran, name)
        # Only the time of sending differs.
        lines += [
            {**json.loads(line), "sent": 0} for line in (ran.folder / name).read_text().splitlines()
        ]
    assert json.dumps(first) == json.dumps(second)


def test_a_dashboard_acknowledges_every_window_once(ran: Ran, dashboard: Dashboard) -> None:
    for _ in range(2):
        done = command(
            "import-trace",
            str(ran.traces),
            *IMPORT,
            "--job",
            "j",
            "--host",
            "h",
            ENDPOINT=dashboard.endpoint,
            API_KEY="k",
        )
        assert (done.returncode, done.stderr) == (0, "")
    assert len(compiles_of(dashboard.reports())) == len(compiles_of(ran.agent))
    assert {(one["instance"]["host"], one["instance"]["job"]) for one in dashboard.requests} == {
        ("h", "j")
    }


def damaged(whole: bytes, chance: random.Random) -> Iterator[bytes]:
    middle = len(whole) // 2
    yield whole[:middle]
    yield whole[middle:]
    yield chance.randbytes(100_000)
    yield whole[: middle // 2] + b"\t\n\t\t\n\n\t" + chance.randbytes(5000) + whole[middle:]
    yield whole.replace(b"\t", b"")
    yield whole.replace(b"\n", b"\n\t", 50)
    for _ in range(8):
        torn = bytearray(whole)
        for _ in range(400):
            torn[chance.randrange(len(torn))] = chance.randrange(256)
        yield bytes(torn)
    for _ in range(4):
        lines = whole.splitlines(keepends=True)
        chance.shuffle(lines)
        yield b"".join(lines)


def test_a_damaged_trace_is_read_up_to_the_damage(ran: Ran, tmp_path: Path) -> None:
    whole, path = ran.trace.read_bytes(), tmp_path / NAME
    wrong = 0
    for number, content in enumerate(damaged(whole, random.Random(7))):
        path.write_bytes(content)
        try:
            _, damages, count = read(tmp_path)
        except Exception as error:  # noqa: BLE001 - a person must get one sentence and nothing else
            assert type(error).__name__ == "AgentError", (number, error)
            continue
        wrong += bool(count)
        assert bool(count) == bool(damages)
    assert wrong >= 8
    path.write_bytes(whole[: len(whole) // 2])
    done = command("import-trace", str(tmp_path), *IMPORT, "--to", f"file:{tmp_path}/out.jsonl")
    assert done.returncode in (0, 1) and done.stderr == ""
    assert 0 < len(compiles_of(recorded(tmp_path / "out.jsonl")[1])) < len(compiles_of(ran.agent))
