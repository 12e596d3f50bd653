"""Parts of a cache key: torch's hash of each component, by name.

No component's text leaves the process."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

DIGEST_LENGTH = 10
MAX_UNREAD = 16
"""Maximum number of unread keys; the lines of one key take about 70 kB."""
_SETTING, _SETTING_END = "] inductor_config", 80
_MAX_SETTINGS = 4


class Settings(NamedTuple):
    """The settings lines of a graph as torch wrote them, and the hashes parsed from them."""

    lines: list[str]
    id: str
    hashes: dict[str, str]


_known_settings: list[Settings] = []


class KeyParts(NamedTuple):
    """A hash per component; most graphs share their hundreds of settings, which are stored once."""

    settings_id: str
    settings: dict[str, str]
    own: dict[str, str]


class UnparsedKey:
    """Unparsed lines of one key: parsing hundreds of lines must not delay the compilation."""

    __slots__ = ("_lines", "_parts")

    def __init__(self, lines: list[str]) -> None:
        self._lines: list[str] | None = lines
        self._parts: KeyParts | None = None

    def read(self) -> KeyParts | None:
        """Parses and releases the lines; any thread may call this method."""
        lines = self._lines
        if lines is not None:
            self._parts, self._lines = parts_of(lines), None
        return self._parts


_unread: deque[UnparsedKey] = deque()


def queue_lines(lines: list[str]) -> UnparsedKey:
    """Queues the lines for `parse_queued`; reads the oldest ones if more than `MAX_UNREAD` wait."""
    late = UnparsedKey(lines)
    _unread.append(late)
    if len(_unread) > MAX_UNREAD:
        _read_one()
    return late


def parse_queued() -> None:
    """Parses the queued lines; runs on the agent's thread."""
    while _unread:
        _read_one()


def _read_one() -> None:
    with suppress(IndexError):  # another thread was faster
        _unread.popleft().read()


def parts_of(components: Iterable[str]) -> KeyParts | None:
    """Parses lines `[hash] name: text` or `[hash] name[item]: text`; None if there are none."""
    settings, others = _split_settings([line for line in components if isinstance(line, str)])
    own: dict[str, str] = {}
    lists: dict[str, list[str]] = {}
    for name, digest in _parse_lines(others):
        owner, _, item = name.partition("[")
        if item[:-1].isdigit():
            lists.setdefault(owner, []).append(digest)
        else:
            own[name] = digest
    own.update((name, _hash_of(digests)) for name, digests in lists.items())
    return KeyParts(settings.id, settings.hashes, own) if own else None


def _parse_lines(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        close = line.find("]")
        stop = line.find(": ", close)
        if line.startswith("[") and 0 < close < stop:
            yield line[close + 2 : stop], line[1 : 1 + min(DIGEST_LENGTH, close - 1)]


def _hash_of(digests: list[str]) -> str:
    return hashlib.sha256("".join(digests).encode()).hexdigest()[:DIGEST_LENGTH]


def _split_settings(lines: list[str]) -> tuple[Settings, list[str]]:
    """Splits the settings from the other lines.

    Settings are consecutive and mostly equal to known ones. A comparison takes a tenth of the time
    of parsing."""
    start = next((n for n, line in enumerate(lines) if _is_setting(line)), len(lines))
    for known in list(_known_settings):
        end = start + len(known.lines)
        others = lines[:start] + lines[end:]
        if lines[start:end] == known.lines and not any(map(_is_setting, others)):
            return known, others
    return _parse_settings([line for line in lines if _is_setting(line)]), [
        line for line in lines if not _is_setting(line)
    ]


def _is_setting(line: str) -> bool:
    return line.find(_SETTING, 0, _SETTING_END) >= 0


def _parse_settings(lines: list[str]) -> Settings:
    settings = Settings(
        lines, _hash_of([line[: DIGEST_LENGTH + 1] for line in lines]), dict(_parse_lines(lines))
    )
    _known_settings.append(settings)
    del _known_settings[:-_MAX_SETTINGS]
    return settings
