"""The folder and file of the spool change while the job runs: removed, moved, given away or
replaced by links. The agent never writes to foreign files, logs the problem once, counts the
windows that the disk did not take, and writes all pending windows once the place is right again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from compilewatch.export.spool.spool import ADVICE, SUFFIX, Spool

from tests.agent.export.spool.files import Kept, seqs
from tests.agent.export.spool.test_closed_windows_wait_on_disk import Answers

VICTIM = b"of another program"
LOST = "are lost if this job is killed"
Change = Callable[[Path, Path], None]


class Logging(Kept):
    """With its log lines."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.logged: list[str] = []
        self.spool = Spool(self.settings, self.identity, lambda: self.now, self.logged.append)


@pytest.fixture
def kept(tmp_path: Path) -> Logging:
    found = Logging(tmp_path / "spool")
    found.close(1)
    return found


def folder_removed(path: Path, victim: Path) -> None:
    shutil.rmtree(path.parent.parent)


def folder_moved(path: Path, victim: Path) -> None:
    path.parent.rename(path.parent.with_name("moved"))


def folder_behind_a_link(path: Path, victim: Path) -> None:
    folder_moved(path, victim)
    path.parent.symlink_to(victim.parent)


def file_moved(path: Path, victim: Path) -> None:
    path.rename(path.with_name("moved"))


def file_behind_a_link(path: Path, victim: Path) -> None:
    file_moved(path, victim)
    path.symlink_to(victim)


def file_replaced_by_a_link(path: Path, victim: Path) -> None:
    path.unlink()
    path.symlink_to(victim)


def file_replaced_by_a_hard_link(path: Path, victim: Path) -> None:
    path.unlink()
    path.hardlink_to(victim)


def links_in_both_places(path: Path, victim: Path) -> None:
    file_replaced_by_a_link(path, victim)
    path.with_name(path.name + ".unfinished").symlink_to(victim)


CHANGES: list[Change] = [
    folder_removed, folder_moved, folder_behind_a_link, file_moved, file_behind_a_link, file_replaced_by_a_link,
    file_replaced_by_a_hard_link, links_in_both_places,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_change_is_handled_once(change: Change, kept: Logging, tmp_path: Path) -> None:
    victim = tmp_path / "victims" / f"x{SUFFIX}"
    victim.parent.mkdir()
    victim.write_bytes(VICTIM)
    path = kept.path
    change(path, victim)
    kept.close(2)
    assert kept.spool.errors == 1
    assert not kept.spool.is_complete
    kept.now += 61
    kept.close(3)
    if path.parent.is_symlink():
        assert (kept.spool.errors, kept.spool.problem) == (
            2,
            "the path is not a folder, or is a symbolic link",
        )
        path.parent.unlink()
        kept.now += 61
        kept.close(4)
    assert seqs(path) == [entry.seq for entry in kept.outbox.pending()]
    assert not path.is_symlink()
    assert kept.spool.is_complete
    kept.acknowledge(1, len(kept.outbox))
    kept.spool.close([])
    assert not path.exists()
    assert victim.read_bytes() == VICTIM
    assert [other.name for other in victim.parent.iterdir()] == [victim.name]
    assert kept.logged == [
        f"closed windows are in memory only (another program closed, removed or moved the file) and {LOST}; {ADVICE}"
    ]


def test_a_link_in_place_of_a_file_at_the_end_is_not_removed(kept: Logging, tmp_path: Path) -> None:
    path, victim = kept.path, tmp_path / "victim"
    victim.write_bytes(VICTIM)
    file_behind_a_link(path, victim)
    kept.spool.close([])
    assert path.is_symlink()
    assert victim.read_bytes() == VICTIM


def test_nothing_is_written_to_a_folder_given_to_another_user(
    kept: Logging, monkeypatch: pytest.MonkeyPatch
) -> None:
    me, path = Answers(os.getuid()), kept.path
    path.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getuid", lambda: me)
        kept.close(2)
        kept.now += 61
        kept.close(3)
        assert (kept.spool.errors, kept.spool.problem) == (2, "the folder belongs to another user")
        assert list(path.parent.iterdir()) == []
    kept.now += 61
    kept.close(4)
    assert seqs(path) == [(number, number) for number in range(1, 5)]
    assert len(kept.logged) == 1
