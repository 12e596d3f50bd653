"""Loaded keys: the compile cache entries of this machine that `compilewatch cache load` wrote.

A file in torch's cache folder lists them."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from compilewatch.identity.compile_config import cache_folder

FILE_NAME = "compilewatch-brought.json"
MAX_KEYS, MAX_BYTES = 10_000, 4 << 20


def write_keys(folder: str, keys: Iterable[str]) -> None:
    """Adds the keys to the file and drops the oldest beyond `MAX_KEYS`. Raises OSError."""
    known = dict.fromkeys([*read_keys(folder), *keys])
    path = Path(folder) / FILE_NAME
    unfinished = path.with_name(f".{FILE_NAME}.{os.getpid()}")
    unfinished.write_text(
        json.dumps(list(itertools.islice(known, max(0, len(known) - MAX_KEYS), None)))
    )
    unfinished.replace(path)


def read_keys(folder: str) -> list[str]:
    """Reads the keys; empty if the file is missing or has another format."""
    with suppress(OSError, ValueError, RecursionError):
        with (Path(folder) / FILE_NAME).open("rb") as file:
            found = json.loads(file.read(MAX_BYTES))
        if isinstance(found, list):
            return [key for key in found if isinstance(key, str)]
    return []


def read_local_keys(environ: Mapping[str, str]) -> list[str]:
    """Reads the keys of the cache folder that this process uses."""
    folder = cache_folder(environ)
    return read_keys(folder) if folder else []
