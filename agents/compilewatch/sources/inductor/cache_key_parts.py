"""What went into a cache key: torch's own hash of each component, under its name; no text of one leaves the process."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from compilewatch.identity.sha256 import sha256_hex

DIGEST_LENGTH = 10
MOST_UNREAD = 16
"""Keys whose lines are kept: some 70 kB each."""
_SETTING, _WHERE_IT_STANDS = "] inductor_config", 80
_MAX_SETTINGS = 4


class Settings(NamedTuple):
    """The lines of settings as torch wrote them for a graph, and what was read in them."""

    lines: list[str]
    id: str
    hashes: dict[str, str]


_known_settings: list[Settings] = []


class KeyParts(NamedTuple):
    """A hash per component. Settings are hundreds and the same for most graphs of a process, so they are read and kept once."""

    settings_id: str
    settings: dict[str, str]
    own: dict[str, str]


class LateParts:
    """Torch's lines of one key, not read yet: they are hundreds, and the compilation does not have to wait for that."""

    __slots__ = ("_lines", "_parts")

    def __init__(self, lines: list[str]) -> None:
        self._lines: list[str] | None = lines
        self._parts: KeyParts | None = None

    def read(self) -> KeyParts | None:
        """The parts, and the lines are let go; on any thread."""
        lines = self._lines
        if lines is not None:
            self._parts, self._lines = parts_of(lines), None
        return self._parts


_unread: deque[LateParts] = deque()


def later(lines: list[str]) -> LateParts:
    """The lines, to be read by `read_late`, or when somebody asks; only so many are kept unread."""
    late = LateParts(lines)
    _unread.append(late)
    if len(_unread) > MOST_UNREAD:
        _read_one()
    return late


def read_late() -> None:
    """Reads what waits; on the agent's thread."""
    while _unread:
        _read_one()


def _read_one() -> None:
    with suppress(IndexError):  # another thread was faster
        _unread.popleft().read()


def parts_of(components: Iterable[str]) -> KeyParts | None:
    """The parts in torch's lines, `[hash] name: text` or `[hash] name[item]: text`; None where there are none."""
    settings, others = _parted([line for line in components if isinstance(line, str)])
    own: dict[str, str] = {}
    lists: dict[str, list[str]] = {}
    for name, digest in _named(others):
        owner, _, item = name.partition("[")
        if item[:-1].isdigit():
            lists.setdefault(owner, []).append(digest)
        else:
            own[name] = digest
    own.update((name, _joined(digests)) for name, digests in lists.items())
    return KeyParts(settings.id, settings.hashes, own) if own else None


def _named(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        close = line.find("]")
        stop = line.find(": ", close)
        if line.startswith("[") and 0 < close < stop:
            yield line[close + 2 : stop], line[1 : 1 + min(DIGEST_LENGTH, close - 1)]


def _joined(digests: list[str]) -> str:
    return sha256_hex("".join(digests).encode())[:DIGEST_LENGTH]


def _parted(lines: list[str]) -> tuple[Settings, list[str]]:
    """The settings and the other lines. Settings stand in a row and mostly as they stood before: comparing them with what is known
    takes a tenth of the time of reading them."""
    start = next((n for n, line in enumerate(lines) if _is_setting(line)), len(lines))
    for known in list(_known_settings):
        end = start + len(known.lines)
        others = lines[:start] + lines[end:]
        if lines[start:end] == known.lines and not any(map(_is_setting, others)):
            return known, others
    return _read([line for line in lines if _is_setting(line)]), [
        line for line in lines if not _is_setting(line)
    ]


def _is_setting(line: str) -> bool:
    return line.find(_SETTING, 0, _WHERE_IT_STANDS) >= 0


def _read(lines: list[str]) -> Settings:
    settings = Settings(
        lines, _joined([line[: DIGEST_LENGTH + 1] for line in lines]), dict(_named(lines))
    )
    _known_settings.append(settings)
    del _known_settings[:-_MAX_SETTINGS]
    return settings
