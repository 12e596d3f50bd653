"""Cache archive: torch's compile caches of one process (a mega-cache) after a header line with the
build environment.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from compilewatch.errors import AgentError
from compilewatch.runtime.private_files import file_replace
from compilewatch.wire.cache_miss_causes import VERSIONS

MAGIC = b"compilewatch cache 1 "
MAX_LINE_BYTES = 64 << 10
PYTHON, MACHINE = "python", "machine"
BUILD_KEYS = (*VERSIONS, PYTHON, MACHINE)
"""Facts that must be equal for any entry to be found; the most fundamental first."""


class CacheFileError(AgentError):
    """The file cannot be used; the text is one sentence."""


@dataclass(frozen=True, slots=True)
class BuildInfo:
    """The header of a cache file."""

    made_with: dict[str, str]
    """Versions, GPU type, Python version and processor type, by the names of MADE_WITH; unavailable
    facts are left out.
    """
    artifacts: dict[str, int]
    """Number of entries per cache of torch."""
    size: int
    """Size of the caches in bytes."""
    sha256: str
    unix_ms: int
    model: str = ""

    def differences(self, now: Mapping[str, str]) -> Iterator[str]:
        """Yields the differences from the environment of the file, in words.

        A fact that one side does not know is no difference.
        """
        for name in BUILD_KEYS:
            then_value, now_value = self.made_with.get(name), now.get(name)
            if then_value is not None and now_value is not None and then_value != now_value:
                yield f"{name} {then_value or 'none'} -> {now_value or 'none'}"


def file_write(path: Path, build: BuildInfo, caches: bytes) -> None:
    """Writes the file atomically, readable only by its user because its content is executed.

    Raises a CacheFileError.
    """
    line = MAGIC + json.dumps(asdict(build)).encode() + b"\n"
    try:
        file_replace(path, line + caches)
    except OSError as error:
        raise CacheFileError(f"{path} cannot be written: {error.strerror or error}") from None


def file_read(path: Path) -> tuple[BuildInfo, bytes]:
    """Reads the header and the caches.

    Raises a CacheFileError if the file is truncated, damaged, or another file.
    """
    try:
        with path.open("rb") as file:
            build = _made(path, file.readline(MAX_LINE_BYTES))
            content_size = os.fstat(file.fileno()).st_size - file.tell()
            # Compare sizes first: `read` allocates the announced size before it reads.
            caches = file.read(build.size + 1) if content_size == build.size else b""
    except OSError as error:
        raise CacheFileError(f"{path} cannot be read: {error.strerror or error}") from None
    if len(caches) != build.size or content_size != build.size:
        relation = "shorter" if content_size < build.size else "longer"
        raise CacheFileError(
            f"{path} is {relation} than its header announces ({build.size} bytes); copy it again"
        )
    if hashlib.sha256(caches).hexdigest() != build.sha256:
        raise CacheFileError(
            f"{path} is damaged: its content differs from the saved content; copy it again"
        )
    return build, caches


def _made(path: Path, line: bytes) -> BuildInfo:
    if not line.startswith(MAGIC):
        raise CacheFileError(f"{path} is not a file of `compilewatch cache save`")
    try:
        header: Any = json.loads(line[len(MAGIC) :])
        return BuildInfo(
            made_with={str(name): str(value) for name, value in header["made_with"].items()},
            artifacts={str(kind): int(count) for kind, count in header["artifacts"].items()},
            size=_size(header["size"]),
            sha256=str(header["sha256"]),
            unix_ms=int(header["unix_ms"]),
            model=str(header["model"]),
        )
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError):
        raise CacheFileError(
            f"{path} is damaged: its header cannot be read; copy it again"
        ) from None


def _size(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(value)
    return value
