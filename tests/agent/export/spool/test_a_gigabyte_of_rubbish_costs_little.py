"""A spool file with a gigabyte of rubbish: the bytes read and checked are bounded, the file is
removed, and its windows are sent."""

from __future__ import annotations

import random
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from compilewatch.export.spool import format
from compilewatch.export.spool.format import (
    MAGIC,
    MAX_PAYLOAD_BYTES,
    MAX_READ_BYTES,
    MAX_SUSPECT_BYTES,
)
from compilewatch.export.spool.locked_file import _PositionedReader
from compilewatch.export.spool.recovery import SpoolRecovery

from tests.agent.export.spool.collector import Collector
from tests.agent.export.spool.files import Kept, config

SIZE = 1 << 30
ROOM = 8 * MAX_PAYLOAD_BYTES
LIE = MAGIC + b"W" + MAX_PAYLOAD_BYTES.to_bytes(4, "big") + b"\0\0\0\1" + b"x" * 51
RUBBISH = {
    "zeros": bytes(1 << 20),
    "noise": random.Random(1).randbytes(1 << 20),
    "heads of frames that promise 4 MiB each": LIE * ((1 << 20) // len(LIE)),
}
WINDOWS = 3


class Work:
    """Bytes that were read, and bytes that were checked."""

    read = checked = 0


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Iterator[Work]:
    found, readinto = Work(), _PositionedReader.readinto

    class Checking:
        @staticmethod
        def crc32(payload: bytes, start: int = 0) -> int:
            found.checked += len(payload)
            assert found.checked < SIZE, "it goes on checking"
            return zlib.crc32(payload, start)

    def reading(self: _PositionedReader, buffer: bytearray) -> int:
        count = readinto(self, buffer)
        found.read += count
        return count

    monkeypatch.setattr(format, "zlib", Checking)
    monkeypatch.setattr(_PositionedReader, "readinto", reading)
    yield found


@pytest.mark.parametrize("rubbish", RUBBISH)
@pytest.mark.parametrize("windows", [0, WINDOWS])
def test_the_work_on_rubbish_is_bounded(
    windows: int, rubbish: str, work: Work, tmp_path: Path
) -> None:
    kept = Kept(tmp_path)
    for seq in range(1, windows + 2):
        kept.close(seq)
    path = kept.path
    kept.spool.close(kept.outbox.pending())
    with path.open("r+b") as file:
        file.seek(0, 2 if windows else 0)
        for _ in range(2 * MAX_READ_BYTES >> 20):
            file.write(RUBBISH[rubbish])
        file.truncate(SIZE)  # the rest takes no space on the disk, and reads as zeros
    dashboard = Collector()
    leftovers = SpoolRecovery(config(tmp_path), dashboard)
    used = peak_of(lambda: [leftovers.step() for _ in range(3)])
    assert len(dashboard.windows) == (windows + 1 if windows else 0)
    assert leftovers.errors == (1 if windows else 2)  # the rubbish, and its unknown owner
    assert not path.exists()
    passes = 2 if windows else 1
    assert work.read <= passes * (MAX_READ_BYTES + ROOM)
    assert work.checked <= passes * (MAX_SUSPECT_BYTES + ROOM)
    assert used < ROOM


def peak_of(act: Callable[[], object]) -> int:
    """The peak of the bytes that Python held."""
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
