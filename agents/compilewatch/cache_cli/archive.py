"""A file with torch's compile caches of one process (its mega-cache), behind a line that says what it was made with."""

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
MADE_WITH = (*VERSIONS, PYTHON, MACHINE)
"""What must be the same for anything in the file to be found; the most fundamental first."""


class CacheFileError(AgentError):
    """The file cannot be used; the text is one sentence."""


@dataclass(frozen=True, slots=True)
class Made:
    """What a cache file says of itself."""

    made_with: dict[str, str]
    """Versions, the GPU's type, Python and the processor's kind, by the names of MADE_WITH; what was not there is left out."""
    artifacts: dict[str, int]
    """How many entries of each of torch's caches are in it."""
    size: int
    """Bytes of the caches."""
    sha256: str
    unix_ms: int
    model: str = ""

    def differences(self, now: Mapping[str, str]) -> Iterator[str]:
        """What is not as it was when the file was made, in words; what one side does not know is no difference."""
        for name in MADE_WITH:
            before, here = self.made_with.get(name), now.get(name)
            if before is not None and here is not None and before != here:
                yield f"{name} {before or 'none'} -> {here or 'none'}"


def file_write(path: Path, made: Made, caches: bytes) -> None:
    """Writes the file in one step, readable by its user alone, as code is run from it. Raises a CacheFileError."""
    line = MAGIC + json.dumps(asdict(made)).encode() + b"\n"
    try:
        file_replace(path, line + caches)
    except OSError as error:
        raise CacheFileError(f"{path} cannot be written: {error.strerror or error}") from None


def file_read(path: Path) -> tuple[Made, bytes]:
    """What the file says of itself, and the caches. Raises a CacheFileError where it is cut, damaged, or another file."""
    try:
        with path.open("rb") as file:
            made = _made(path, file.readline(MAX_LINE_BYTES))
            held = os.fstat(file.fileno()).st_size - file.tell()
            # Never so much as a line claims: a read takes its memory before it reads.
            caches = file.read(made.size + 1) if held == made.size else b""
    except OSError as error:
        raise CacheFileError(f"{path} cannot be read: {error.strerror or error}") from None
    if len(caches) != made.size or held != made.size:
        relation = "shorter" if held < made.size else "longer"
        raise CacheFileError(f"{path} is {relation} than it says, {made.size} bytes: copy it again")
    if hashlib.sha256(caches).hexdigest() != made.sha256:
        raise CacheFileError(
            f"{path} is damaged: its bytes are not those that were saved; copy it again"
        )
    return made, caches


def _made(path: Path, line: bytes) -> Made:
    if not line.startswith(MAGIC):
        raise CacheFileError(f"{path} is no file of `compilewatch cache save`")
    try:
        told: Any = json.loads(line[len(MAGIC) :])
        return Made(
            made_with={str(name): str(value) for name, value in told["made_with"].items()},
            artifacts={str(kind): int(count) for kind, count in told["artifacts"].items()},
            size=_size(told["size"]),
            sha256=str(told["sha256"]),
            unix_ms=int(told["unix_ms"]),
            model=str(told["model"]),
        )
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError):
        raise CacheFileError(
            f"{path} is damaged: its first line cannot be read; copy it again"
        ) from None


def _size(told: Any) -> int:
    if not isinstance(told, int) or told < 0:
        raise ValueError(told)
    return told
