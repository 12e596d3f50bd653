"""From a file that was cut off anywhere, has flipped bits, has rubbish inside or is not ours, all
intact windows are sent, and nothing raises."""

from __future__ import annotations

import io
import os
import random
from pathlib import Path

import pytest
from compilewatch.export.spool.format import (
    MAGIC,
    encode_frame,
    read_contents,
    read_frames,
    read_windows,
)
from compilewatch.export.spool.recovery import SpoolRecovery
from hypothesis import given
from hypothesis import strategies as st

from tests.agent.export.spool.collector import Collector
from tests.agent.export.spool.files import Kept, config, identity

WINDOWS = 5


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file with five windows of a dead instance."""
    kept = Kept(tmp_path_factory.mktemp("spool"))
    for seq in range(1, WINDOWS + 1):
        kept.close(seq)
    data = kept.path.read_bytes()
    kept.spool.close(kept.outbox.pending())
    return data


def read(data: bytes) -> tuple[list[int], int, bool]:
    """Windows, damaged ranges, and whether the identity of their instance is known."""
    file = io.BytesIO(data)
    contents = read_contents(file)
    return (
        [entry.seq[0] for entry in read_windows(file, contents.watermark)],
        contents.damaged_ranges,
        contents.identity == identity(),
    )


def frame_ends(data: bytes) -> list[int]:
    """The offset at which each frame ends."""
    starts = [at for at in range(len(data)) if data.startswith(MAGIC, at)]
    return [*starts[1:], len(data)]


def test_a_file_cut_off_at_any_byte_gives_every_window_before_it(whole: bytes) -> None:
    ends = frame_ends(whole)
    for length in range(len(whole) + 1):
        frames = sum(end <= length for end in ends)
        found, damaged, known = read(whole[:length])
        assert found == list(range(1, max(0, frames - 2) + 1))
        assert damaged == (length not in (0, *ends))
        assert known == (frames > 0)


def test_any_flipped_bit_costs_at_most_one_window(whole: bytes) -> None:
    ends = frame_ends(whole)
    for at in range(len(whole)):
        spoiled = bytearray(whole)
        spoiled[at] ^= 1 << random.Random(at).randrange(8)
        found, damaged, known = read(bytes(spoiled))
        hit = sum(end <= at for end in ends) - 1
        assert found == [seq for seq in range(1, WINDOWS + 1) if seq != hit]
        assert (damaged, known) == (1, True)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 10_000),
            st.binary(max_size=40) | st.just(MAGIC) | st.just(MAGIC + b"W\0\0\1\0"),
        ),
        max_size=5,
    )
)
def test_rubbish_in_between_costs_only_the_windows_it_hits(
    whole: bytes, rubbish: list[tuple[int, bytes]]
) -> None:
    ends = frame_ends(whole)
    pieces = [whole[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    for at, data in rubbish:
        pieces.insert(at % (len(pieces) + 1), data)
    assert read(b"".join(pieces))[0] == list(range(1, WINDOWS + 1))


def test_a_false_length_is_not_trusted() -> None:
    lying = MAGIC + b"W" + (200 << 20).to_bytes(4, "big") + bytes(4)
    far = MAGIC + b"W" + (3 << 20).to_bytes(4, "big") + bytes(4)
    good = encode_frame(b"X", b"abc")
    assert [one and one.payload for one in read_frames(io.BytesIO(lying + good + far + good))] == [
        None,
        b"abc",
        None,
        b"abc",
    ]


def test_damage_is_counted_and_the_rest_is_sent_and_removed(tmp_path: Path, whole: bytes) -> None:
    kept = Kept(tmp_path)
    kept.close(1)
    path = kept.path
    kept.spool.close(kept.outbox.pending())
    path.write_bytes(whole[: len(whole) // 2] + b"?" + whole[len(whole) // 2 :])
    nameless = path.with_name(path.name.replace("aaa", "bbb"))
    nameless.write_bytes(b"nothing of ours")
    dashboard = Collector()
    leftovers = SpoolRecovery(config(tmp_path), dashboard)
    for _ in range(10):
        leftovers.step()
    assert len(dashboard.windows) == WINDOWS - 1
    assert leftovers.errors == 3  # the window, the nameless file, and its unreadable content
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    "kind", ["a link", "a pipe", "a folder", "another user's", "writable by others"]
)
def test_a_foreign_file_is_not_touched_and_others_are_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    good, bad = Kept(tmp_path, "b"), Kept(tmp_path, "a")
    for kept in (good, bad):
        kept.close(1)
        kept.spool.close(kept.outbox.pending())
    path, victim = bad.path, tmp_path / "victim"
    victim.write_bytes(path.read_bytes())
    if kind != "writable by others" and kind != "another user's":
        path.unlink()
    if kind == "a link":
        path.symlink_to(victim)
    elif kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a folder":
        path.mkdir()
    elif kind == "writable by others":
        path.chmod(0o666)
    elif kind == "another user's":
        foreign(monkeypatch, path)
    dashboard = Collector()
    leftovers = SpoolRecovery(config(tmp_path), dashboard)
    for _ in range(10):
        leftovers.step()
    assert {who for who, _ in dashboard.windows} == {"b" * 26}
    assert victim.exists()
    assert not any("bbb" in path.name for path in tmp_path.rglob("*.spool"))


def foreign(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Gives the file to another user: with chown if run as root, otherwise only as `fstat` reports
    it."""
    if os.getuid() == 0:
        os.chown(path, 12345, 12345)
        return
    place, real = path.stat().st_ino, os.fstat

    def fstat(descriptor: int) -> os.stat_result:
        found = real(descriptor)
        return os.stat_result([*found[:4], 12345, *found[5:]]) if found.st_ino == place else found

    monkeypatch.setattr(os, "fstat", fstat)


def test_one_file_has_one_owner(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.close(1)
    assert taken(tmp_path) == 0
    # A child inherits the descriptor from its parent, but not the lock.
    assert taken_by_a_child(tmp_path) == 0
    kept.close(2)
    assert taken_by_a_child(tmp_path) == 0
    path = kept.path
    kept.spool.close(kept.outbox.pending())
    assert taken_by_a_child(tmp_path) == 2
    assert not path.exists()


def taken(folder: Path) -> int:
    """The number of windows that one scan of the folder finds and sends."""
    dashboard = Collector()
    leftovers = SpoolRecovery(config(folder), dashboard)
    for _ in range(3):
        leftovers.step()
    return len(dashboard.windows)


def taken_by_a_child(folder: Path) -> int:
    """The same in another process."""
    child = os.fork()
    if not child:
        os._exit(taken(folder))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
