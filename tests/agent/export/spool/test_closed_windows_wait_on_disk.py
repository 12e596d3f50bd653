"""A closed window is on disk until it is acknowledged: privately, within bounds, and for every
change of the file."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from compilewatch.export.spool import spool as spool_module
from compilewatch.export.spool.format import read_contents
from compilewatch.export.spool.spool import MAX_HOST_BYTES, spool_capability
from compilewatch.wire.codec import loads
from compilewatch.wire.messages import Report

from tests.agent.export.spool.files import Kept, config, on_disk, seqs


def test_a_closed_window_is_on_disk_with_its_bytes_at_once(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    for seq in (1, 2, 3):
        kept.close(seq)
        assert seqs(kept.path) == [(number, number) for number in range(1, seq + 1)]
    assert [(entry.seq, entry.body) for entry in on_disk(kept.path)] == [
        (entry.seq, entry.body) for entry in kept.outbox.pending()
    ]
    assert (kept.spool.errors, kept.spool.capability()) == (0, ("yes", ""))


def test_file_and_folder_are_private_to_the_user(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        kept = Kept(tmp_path)
        kept.close(1)
    finally:
        os.umask(old)
    assert stat.S_IMODE(kept.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.path.parent.stat().st_mode) == 0o700
    assert kept.path.parent.name == f"compilewatch-{os.getuid()}"


def test_without_a_setting_it_is_in_the_users_cache_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    Kept("").close(1)
    assert len(list((tmp_path / "compilewatch" / "spool").glob("*.spool"))) == 1


def test_acknowledged_windows_are_removed_from_the_file(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    for seq in range(1, 6):
        kept.close(seq)
    kept.acknowledge(1, 2)
    assert seqs(kept.path) == [(3, 3), (4, 4), (5, 5)]
    kept.acknowledge(3, 5)
    assert seqs(kept.path) == []
    empty = kept.path.stat().st_size
    for seq in range(6, 50):
        kept.close(seq)
        kept.acknowledge(seq, seq)
    assert kept.path.stat().st_size == empty


def test_a_clean_end_leaves_no_file_and_an_unclean_end_leaves_pending_windows(
    tmp_path: Path,
) -> None:
    kept, other = Kept(tmp_path), Kept(tmp_path, "b")
    kept.close(1)
    other.close(1)
    kept.acknowledge(1, 1)
    clean, unclean = kept.path, other.path
    kept.spool.close(kept.outbox.pending())
    other.spool.close(other.outbox.pending())
    assert not clean.exists()
    assert seqs(unclean) == [(1, 1)]


def test_later_facts_about_the_process_are_in_the_file_too(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.close(1)
    kept.identity.gpu = "NVIDIA H200"
    kept.close(2)
    with kept.path.open("rb") as file:
        assert read_contents(file).identity == kept.identity
    kept.acknowledge(1, 2)
    with kept.path.open("rb") as file:
        assert read_contents(file).identity == kept.identity


def test_a_file_that_grew_to_its_limit_is_rewritten_from_the_windows_merged_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_module, "MAX_INSTANCE_BYTES", 100_000)
    kept = Kept(tmp_path)
    kept.outbox._max_bytes = 30_000
    for seq in range(1, 1001):
        kept.close(seq, calls=seq)
        assert kept.path.stat().st_size <= 100_000
        if seq % 50 == 0:
            covered = [
                number for first, last in seqs(kept.path) for number in range(first, last + 1)
            ]
            assert covered == list(range(1, seq + 1))
    reports = [loads(Report, entry.body) for entry in on_disk(kept.path)]
    assert sum(region.calls for report in reports for region in report.regions) == 1000 * 1001 // 2
    assert kept.spool.errors == 0


def test_windows_that_are_pending_again_are_on_disk_again(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    for seq in (1, 2, 3):
        kept.close(seq)
    again = kept.outbox.pending()[:2]
    kept.acknowledge(1, 3)
    kept.close(4)
    kept.outbox.restore(again)
    kept.spool.update_pending(kept.outbox.pending())
    assert seqs(kept.path) == [(1, 1), (2, 2), (4, 4)]


def test_a_full_folder_is_logged_counted_and_retried(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.close(1)
    other = kept.path.with_name("0" * 16 + "-" + "z" * 26 + ".spool")
    with other.open("wb") as file:
        file.truncate(MAX_HOST_BYTES)
    kept.close(2, text="x" * 70_000)
    kept.identity.gpu = "looked up again"
    kept.close(3)
    assert kept.spool.errors == 1
    assert kept.spool.capability() == (
        "no",
        "closed windows are in memory only: the spool folder has reached its limit of 64 MiB",
    )
    kept.close(4)
    assert kept.spool.errors == 2
    assert seqs(kept.path) == [(1, 1), (2, 2)]
    other.unlink()
    kept.now += 61
    kept.close(5)
    assert seqs(kept.path) == [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]
    assert (kept.spool.errors, kept.spool.capability()) == (2, ("yes", ""))


LIMITED = """
import resource, sys
from pathlib import Path
from tests.agent.export.spool.files import Kept, seqs
kept = Kept(sys.argv[1])
kept.close(1)
resource.setrlimit(resource.RLIMIT_FSIZE, (kept.path.stat().st_size + 700, resource.RLIM_INFINITY))
for seq in range(2, 20):
    kept.close(seq)
held = seqs(kept.path)
assert held == [(seq, seq) for seq in range(1, len(held) + 1)] and 2 <= len(held) < 10, held
assert kept.spool.errors == 19 - len(held), kept.spool.errors
assert "large" in kept.spool.problem, kept.spool.problem
before = kept.path.read_bytes()
kept.now += 61
kept.close(20)
assert kept.path.read_bytes() == before and not list(kept.path.parent.glob("*.unfinished"))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
kept.now += 61
kept.close(21)
assert seqs(kept.path) == [(seq, seq) for seq in range(1, 22)]
print("well")
"""


def test_a_write_without_space_leaves_no_partial_window(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("well\n", "")


@pytest.mark.parametrize("kind", ["a file", "a link", "another user's", "writable by others"])
def test_an_untrusted_folder_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    folder = tmp_path / f"compilewatch-{os.getuid()}"
    if kind == "a file":
        folder.write_text("mine")
    elif kind == "a link":
        (tmp_path / "elsewhere").mkdir()
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.mkdir(mode=0o700)
        if kind == "writable by others":
            folder.chmod(0o777)
    if kind == "another user's":
        me = Answers(os.getuid())
        monkeypatch.setattr(os, "getuid", lambda: me)
    kept = Kept(tmp_path)
    kept.close(1)
    assert kept.spool.errors == 1
    assert kept.spool.capability()[0] == "no"
    assert spool_capability(kept.settings)[0] == "no"
    assert len(kept.outbox) == 1
    assert not list(tmp_path.rglob("*.spool*"))


class Answers(int):
    """A user id that prints like ours and equals no id."""

    def __eq__(self, other: object) -> bool:
        return False

    def __ne__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


def test_a_spool_that_is_off_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for settings in ({"spool": "off"}, {"endpoint": f"file:{tmp_path}/reports.jsonl"}):
        kept = Kept("", **settings)
        kept.close(1)
        kept.acknowledge(1, 1)
        kept.spool.close([])
        assert (kept.spool.errors, kept.spool.capability()[0]) == (0, "no")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_a_cleaner_removed_is_created_again(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.close(1)
    kept.path.unlink()
    kept.close(2)
    assert kept.spool.errors == 1
    kept.now += 61
    kept.close(3)
    assert seqs(kept.path) == [(1, 1), (2, 2), (3, 3)]


def test_a_descriptor_that_the_job_closed_and_reused_is_not_touched(
    tmp_path: Path,
) -> None:
    kept = Kept(tmp_path)
    kept.close(1)
    assert kept.spool._file is not None
    number = kept.spool._file._descriptor
    mine = (tmp_path / "mine").open("w+")
    os.dup2(mine.fileno(), number)
    kept.close(2)
    kept.acknowledge(1, 2)
    kept.now += 61
    kept.close(3)
    kept.spool.close(kept.outbox.pending())
    assert os.fstat(number).st_ino == os.fstat(mine.fileno()).st_ino
    assert os.fstat(number).st_size == 0
    assert seqs(kept.path) == [(3, 3)]
    mine.close()
    os.close(number)


def test_doctor_checks_the_spool(tmp_path: Path) -> None:
    assert spool_capability(config(tmp_path)) == ("yes", "")
    assert list((tmp_path / f"compilewatch-{os.getuid()}").iterdir()) == []
    assert spool_capability(config("/proc/nowhere"))[0] == "no"
