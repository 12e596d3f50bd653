"""A compile cache folder that a real process cannot write is reported as not writable, not as
emptied; once the folder is writable, the earlier fault is reported."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from compilewatch.wire.cache_miss_causes import EMPTY_FOLDER

from tests.environment import QUICK_INDUCTOR

JOB = """
import sys
import compilewatch
assert compilewatch.init(model="ranker", version="1", endpoint="file:" + sys.argv[1], interval=30)
import torch, torch._inductor.codecache
{before}
try:
    torch.compile(lambda x: x @ x, dynamic=False)(torch.ones(4, 4))
except Exception:  # the whole folder is read-only: torch cannot compile for a CPU
    pass
compilewatch.shutdown()
"""
FULL_DISK = """
import errno
def full(*arguments, **options):
    raise OSError(errno.ENOSPC, "No space left on device")
torch._inductor.codecache.FxGraphCache._write_to_local_cache = full
"""
REMOTE_AWAY = """
kept = torch._inductor.codecache.FxGraphCache._write_to_local_cache
def away(*arguments, **options):
    kept(*arguments, **options)
    raise ConnectionError("the remote cache, which comes after the folder, does not answer")
torch._inductor.codecache.FxGraphCache._write_to_local_cache = away
"""
UNWRITABLE = "cache folder cannot be written: nothing that is compiled stays in it"
WAS_UNWRITABLE = (
    "cache folder could not be written by the run before: nothing that it compiled is in it"
)
_DROP_FROM_BOUNDS, _READ_ONLY_IS_NOTHING_TO_IT = 24, (1, 2)


def mind_modes() -> None:
    """Root can write everywhere, unless the program dropped this right before it began."""
    if os.geteuid() == 0:
        for capability in _READ_ONLY_IS_NOTHING_TO_IT:
            ctypes.CDLL(None).prctl(_DROP_FROM_BOUNDS, capability, 0, 0, 0)


class Host:
    """A machine on which processes compile the same code one after another."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.caches = folder, folder / "caches"
        self.caches.mkdir()

    def allow(self, mode: int, *names: str) -> None:
        for name in names:
            (self.caches / name).mkdir(exist_ok=True)
            for path in [*(self.caches / name).rglob("*/"), self.caches / name]:
                path.chmod(mode)

    def cause(self, before: str = "") -> tuple[str, str]:
        """The cause of the miss of the compilation, empty for a hit, and the access that the
        process reported."""
        report, program = self.folder / "report.jsonl", self.folder / "job.py"
        report.unlink(missing_ok=True)
        program.write_text(JOB.format(before=before))
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TORCH", "TRITON", "OMP_", "COMPILEWATCH_"))
        }
        own = {
            **QUICK_INDUCTOR,
            "TORCHINDUCTOR_CACHE_DIR": str(self.caches),
            "COMPILEWATCH_SPOOL": str(self.folder),
        }
        command = [sys.executable, str(program), str(report)]
        subprocess.run(
            command,
            env={**clean, **own},
            check=True,
            timeout=150,
            capture_output=True,
            preexec_fn=mind_modes,
        )
        requests = [json.loads(line) for line in report.read_bytes().splitlines()]
        reports: list[dict[str, Any]] = [one for request in requests for one in request["reports"]]
        assert not any(one.get("losses", {}).get("internal_errors") for one in reports)
        (compiled,) = [compile for one in reports for compile in one.get("compiles", [])]
        findings = [
            found["text"]
            for one in reports
            for found in one.get("findings", [])
            if found["kind"] == "cache_miss"
        ]
        assert findings == ([compiled["miss"]] if "miss" in compiled else [])
        return compiled.get("miss", ""), requests[-1]["instance"]["components"][
            "cache folder access"
        ]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    machine = Host(tmp_path)
    yield machine
    machine.allow(0o755, "")


def test_a_folder_of_another_user_is_named_until_it_can_be_written(host: Host) -> None:
    host.allow(0o555, "fxgraph", "aotautograd")
    assert host.cause() == ("no earlier run is known", "read-only")
    assert host.cause() == (UNWRITABLE, "read-only")
    host.allow(0o755, "fxgraph", "aotautograd")
    assert host.cause() == (WAS_UNWRITABLE, "read and write")
    assert host.cause() == ("", "read and write")


@pytest.mark.engines_only
def test_a_read_only_folder_is_no_miss_while_it_holds_the_requested_entry(host: Host) -> None:
    assert host.cause() == ("no earlier run is known", "read and write")
    host.allow(0o555, "")
    assert host.cause() == ("", "read-only")
    host.allow(0o755, "")
    for path in sorted(host.caches.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    host.allow(0o555, "")
    assert host.cause() == ("", "read-only"), (
        "the compilation fails, and a compilation that fails misses nothing"
    )
    host.allow(0o755, "")


def test_entries_lost_on_a_full_disk_are_reported_although_the_folder_is_writable(
    host: Host,
) -> None:
    assert host.cause(FULL_DISK)[0] == "no earlier run is known"
    for path in (host.caches / "aotautograd").rglob("*"):
        path.unlink() if path.is_file() else None
    assert host.cause(FULL_DISK) == (UNWRITABLE, "read and write")
    assert host.cause() == (WAS_UNWRITABLE, "read and write")


@pytest.mark.engines_only
def test_a_remote_cache_that_accepts_nothing_is_not_blamed_on_the_folder(host: Host) -> None:
    assert host.cause(REMOTE_AWAY)[0] == "no earlier run is known"
    assert host.cause(REMOTE_AWAY) == ("", "read and write")
    for path in [*(host.caches / "aotautograd").rglob("*"), *(host.caches / "fxgraph").rglob("*")]:
        path.unlink() if path.is_file() else None
    assert host.cause(REMOTE_AWAY) == (EMPTY_FOLDER, "read and write")
