"""A file that unpacks to, nests or claims far more than it holds is refused in bounded memory, with
a sentence that names the file."""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from compilewatch.cache_cli.archive import MAGIC
from compilewatch.sources.inductor.loaded_keys import FILE_NAME, read_keys

from tests.agent.programs import environment

MOST_BYTES = 1 << 30
"""Limit of the address space: a Python process with the agent needs a third of this."""
HEAD = {"made_with": {}, "artifacts": {}, "size": 4, "sha256": "0" * 64, "unix_ms": 1, "model": ""}


def bounded(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs the command in a process whose address space is limited to `MOST_BYTES`."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))

    command = [sys.executable, "-m", "compilewatch", *words]
    settings = environment(
        SPOOL="off", ENDPOINT="http://127.0.0.1:9", API_KEY="cw_ing_x", MODEL="m"
    )
    return subprocess.run(
        command,
        env=settings,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=limit,
    )


def packed(path: Path, begins: bytes, unit: bytes, megabytes: int) -> Path:
    """A gzip file that unpacks to `megabytes` MiB of `unit`."""
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(begins)
        for _ in range(megabytes):
            file.write(unit * (1 << 20))
    return path


@pytest.mark.parametrize("unit", [b"x", b"["])
def test_a_recording_of_one_endless_line_is_refused(tmp_path: Path, unit: bytes) -> None:
    path = packed(tmp_path / "bomb.jsonl.gz", b'{"v":1,' if unit == b"[" else b"", unit, 1100)
    done = bounded("replay", str(path))
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr[-500:]
    assert "bomb.jsonl.gz" in done.stderr and "longer than" in done.stderr


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": 1 << 40},
        {"size": 1 << 62},
        {"size": 1 << 80},
        {"unix_ms": 1e999},
        {"artifacts": {"a": 1e999}},
    ],
)
def test_a_cache_file_that_claims_more_than_it_holds_is_refused(
    tmp_path: Path, wrong: dict[str, object]
) -> None:
    path = tmp_path / "bomb.cache"
    path.write_bytes(MAGIC + json.dumps(HEAD | wrong).encode() + b"\nabcd")
    done = bounded("cache", "load", str(path))
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr[-500:]
    assert "bomb.cache" in done.stderr


def test_a_list_of_keys_that_nests_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"[" * 200_000)
    assert read_keys(str(tmp_path)) == []


def test_a_trace_that_is_a_pipe_or_a_device_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "dedicated_log_torch_trace_rank_0_a.log")
    (tmp_path / "dedicated_log_torch_trace_rank_1_b.log").symlink_to("/dev/zero")
    done = bounded("import-trace", str(tmp_path), "--model", "m")
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr[-500:]
    assert "not a regular file" in done.stderr
