"""Trace files are read as a stream: ranks, windows and years come from the content of the files,
and nothing huge is held in memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from compilewatch.cli.import_trace import read
from compilewatch.cli.trace_process import should_import
from compilewatch.cli.trace_reader import TraceReader
from compilewatch.wire.codec import loads
from compilewatch.wire.messages import Request

from tests.agent.programs import command, environment
from tests.agent.server import Dashboard

NAME = "dedicated_log_torch_trace_abcdefgh.log"
IMPORT = ("--model", "m", "--model-version", "7")


def head(moment: float, data: dict[str, Any]) -> str:
    stamp = time.strftime("%m%d %H:%M:%S", time.localtime(moment))
    return (
        f"V{stamp}.{int(moment % 1 * 1e6):06d} 4711 torch/_dynamo/utils.py:2009] "
        f"{json.dumps(data)}\n"
    )


def record(moment: float, number: int = 0, **more: Any) -> str:
    told = {
        "compile_id": f"{number}/0",
        "co_name": "f",
        "co_filename": "/a/b.py",
        "co_firstlineno": 3,
        "graph_op_count": 1,
    }
    told |= {
        "has_guarded_code": True,
        "end_time_us": int(moment * 1e6),
        "duration_us": 1000,
        "recompile_reason": None,
    }
    return head(
        moment, {"compilation_metrics": {**told, **more}, "frame_id": number, "frame_compile_id": 0}
    )


def test_each_rank_is_an_instance(tmp_path: Path) -> None:
    now = time.time() - 100
    for rank in (0, 1, 2):
        (tmp_path / f"dedicated_log_torch_trace_rank_{rank}_x.log").write_text(
            f"[rank{rank}]:" + record(now)
        )
    told = tmp_path / "told.jsonl"
    assert (
        command(
            "import-trace", str(tmp_path), *IMPORT, "--to", f"file:{told}", "--kind", "training"
        ).returncode
        == 0
    )
    identities = [loads(Request, line).instance for line in told.read_bytes().splitlines()]
    assert [(one.rank, one.world_size, one.kind) for one in identities] == [
        (rank, 3, "training") for rank in (0, 1, 2)
    ]


def test_a_full_window_ends_early_and_loses_nothing(tmp_path: Path) -> None:
    start = time.time() // 10 * 10 - 100
    (tmp_path / NAME).write_text(
        "".join(record(start + number / 100, number) for number in range(700))
    )
    [process], damages, _ = read(tmp_path)
    assert damages == []
    assert [len(report.compiles) for report in process.reports] == [200, 200, 200, 100]
    assert process.reports[-1].losses.truncated_events == 0


def test_an_old_trace_is_refused_unless_it_is_shifted(tmp_path: Path, dashboard: Dashboard) -> None:
    old = time.time() - 9 * 86400
    (tmp_path / NAME).write_text(record(old) + record(old + 60, 1))
    os.utime(tmp_path / NAME, (old, old + 100))
    words = ("import-trace", str(tmp_path), *IMPORT, "--to", dashboard.endpoint, "--key", "k")
    done = command(*words)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "2 of 2 windows are older than 7 days" in done.stderr and not dashboard.requests
    assert command(*words, "--shift-to-now").returncode == 0
    first, last = dashboard.reports()
    assert abs(last.window[1] - time.time()) < 300
    assert last.compiles[0].at - first.compiles[0].at == pytest.approx(60, abs=0.01)


def test_a_december_trace_written_in_january_belongs_to_the_year_before(tmp_path: Path) -> None:
    december = time.mktime((2025, 12, 31, 23, 0, 0, 0, 0, -1))
    path = tmp_path / NAME
    path.write_text(head(december, {"str": ["a", 0]}))
    os.utime(path, (december + 7200, december + 7200))
    [entry] = TraceReader(path, should_import)
    assert entry.at == december


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "is not a folder"),
        ({}, "there is no trace in"),
        ({NAME: "?\n"}, "line 1: not a line of a trace"),
        ({NAME: ""}, "is empty"),
    ],
)
def test_a_folder_without_a_trace_is_reported_in_one_sentence(
    tmp_path: Path, content: dict[str, str] | None, said: str
) -> None:
    for name, text in (content or {}).items():
        (tmp_path / name).write_text(text)
    folder = tmp_path / "none" if content is None else tmp_path
    done = command("import-trace", str(folder), *IMPORT, "--to", f"file:{tmp_path}/out")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert said in done.stderr


def test_a_huge_payload_is_never_held_in_memory(tmp_path: Path) -> None:
    path, now = tmp_path / NAME, time.time() - 100
    with path.open("w") as file:
        file.write(head(now, {"chromium_event": {}}) + '\t{\n\t  "name": "x",\n')
        file.write("\t" + "x" * (50 << 20) + "\n")
        file.write(head(now, {"describe": "y" * (50 << 20)}))
        file.write(record(now))
    program = f"""
import resource, sys
from pathlib import Path
from compilewatch.cli.import_trace import read
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
[process], damages, damaged = read(Path({str(tmp_path)!r}))
print(len(process.reports[0].compiles), damaged, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024, *damages, sep="|")
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
        check=True,
    )
    compiles, damaged, mebibytes, *damages = done.stdout.strip().split("|")
    assert (compiles, damaged) == ("1", "2")
    assert int(mebibytes) < 20
    assert any("longer than" in damage for damage in damages)


@pytest.mark.parametrize(
    "field",
    [
        {"compile_id": ["x"]},
        {"end_time_us": 1e300},
        {"co_name": 7},
        {"duration_us": "long"},
        {"recompile_reason": {}},
        {"stack_trace": [1]},
    ],
)
def test_a_record_with_a_field_of_another_type_is_still_reported(
    tmp_path: Path, field: dict[str, Any]
) -> None:
    (tmp_path / NAME).write_text(record(time.time() - 100, **field))
    [process], damages, _ = read(tmp_path)
    assert sum(len(report.compiles) for report in process.reports) + len(damages) == 1


def test_a_library_function_is_attributed_to_the_users_line_that_calls_it(tmp_path: Path) -> None:
    stack = [
        "Line: 9, Name: main, Filename: /home/me/serve.py",
        "Line: 5, Name: run, Filename: /x/site-packages/library/layers.py",
    ]
    (tmp_path / NAME).write_text(
        record(
            time.time() - 100, co_filename="/x/site-packages/library/layers.py", stack_trace=stack
        )
    )
    [process], _, _ = read(tmp_path)
    [compile] = process.reports[0].compiles
    assert (compile.frame, compile.file, compile.line) == ("f", "serve.py", 9)
