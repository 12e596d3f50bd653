"""vLLM's cache key: hashes of the factors that vLLM writes next to its compiled code, and the key
in its folder names.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compilewatch.wire.cache_miss_causes import (
    ENGINE,
    ENGINE_ENVIRONMENT,
    ENGINE_KEY,
    ENGINE_VERSION,
)

FACTORS_FILE = "cache_key_factors.json"
MAX_FILE_BYTES, MAX_FACTORS, MAX_PARTS, MAX_TRIES = 1 << 20, 1000, 16, 600
HASH_LENGTH = 8
_COMPILE_FOLDER = re.compile(r"/([^/]+)/(?:rank_\d+_\d+/)(?:[^/]+/)?(?:inductor|triton)_cache/?$")
_AOT_FOLDER = re.compile(
    r"/torch_aot_compile/([^/]+)/(?:rank_\d+_\d+/)?(?:inductor|triton)_cache/?$"
)
_RANK = re.compile(r"/(rank_\d+_\d+(?:/[^/]+)?)/?$")


def vllm_key_of(folder: str) -> str:
    """Returns vLLM's key from the path of a cache folder that vLLM set; empty for a folder that the
    user chose.
    """
    path = folder.replace(os.sep, "/")
    match = _AOT_FOLDER.search(path) or _COMPILE_FOLDER.search(path)
    return match[1] if match else ""


def hash_factors(factors_file: Any) -> dict[str, str]:
    """Hashes each factor, and each environment variable separately, because values may be secrets.

    The names are those that the vLLM release writes.
    """
    hashes: dict[str, str] = {}
    for name, value in factors_file.items() if isinstance(factors_file, Mapping) else ():
        if isinstance(value, Mapping):
            hashes[f"{ENGINE}{name}"] = _hash(name, json.dumps(value, sort_keys=True, default=str))
            hashes.update(
                (f"{ENGINE}{name} {part}", _hash(part, inner)) for part, inner in value.items()
            )
        else:
            hashes[f"{ENGINE}{name}"] = _hash(name, value)
    return dict(list(hashes.items())[:MAX_FACTORS])


class VllmKey:
    """The factors of the code that this process compiled, by rank and part of the model
    (`rank_0_0/backbone`).
    """

    def __init__(self) -> None:
        self._unread: deque[tuple[str, int]] = deque(maxlen=MAX_PARTS)
        """Folders, each with its number of read attempts."""
        self.parts: dict[str, dict[str, str]] = {}
        self.load_failed = False
        """Whether vLLM failed to load a stored compilation, so that the following code is compiled
        again.
        """

    def note(self, folder: str) -> None:
        """Remembers a folder of vLLM's compiled code; `read` reads its file later."""
        self._unread.append((folder, 0))

    def read(self) -> dict[str, dict[str, str]]:
        """Returns the factors known now. Call it on the agent's thread."""
        for _ in range(len(self._unread)):
            folder, tries = self._unread.popleft()
            try:
                file = Path(folder) / FACTORS_FILE
                if file.stat().st_size <= MAX_FILE_BYTES:
                    self.parts[_part(folder)] = {
                        **_version(),
                        **hash_factors(json.loads(file.read_bytes())),
                    }
            except (
                OSError,
                ValueError,
                RecursionError,
            ):  # missing, incomplete, or of another release
                if tries < MAX_TRIES:
                    self._unread.append((folder, tries + 1))
        return self.parts

    def components(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Returns the components for comparing processes: the version, the factors without single
        variables, and the key in the folder's name.
        """
        factors = next(iter(self.read().values()), {})
        result = {
            **_version(),
            **{
                name: value
                for name, value in factors.items()
                if not name.startswith(ENGINE_ENVIRONMENT)
            },
        }
        key = vllm_key_of(environ.get("TORCHINDUCTOR_CACHE_DIR", ""))
        return {**result, ENGINE_KEY: _hash("key", key)} if key else result


VLLM_KEY = VllmKey()
"""The key of this process."""


def _part(folder: str) -> str:
    match = _RANK.search(folder.replace(os.sep, "/"))
    return match[1] if match else ""


def _version() -> dict[str, str]:
    version = getattr(sys.modules.get("vllm"), "__version__", None)
    return {ENGINE_VERSION: version} if isinstance(version, str) else {}


def _hash(name: str, value: object) -> str:
    return hashlib.sha256(f"{name}\0{value!r}".encode("utf-8", "replace")).hexdigest()[:HASH_LENGTH]
