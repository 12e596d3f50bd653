"""What a compilation depends on besides its code: versions as they are, everything else as one hash per name, never a value."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from typing import Any

from compilewatch.identity.sha256 import sha256_hex
from compilewatch.identity.vllm_cache_key import VLLM_KEY, derived_from
from compilewatch.runtime.import_hook import fully_imported
from compilewatch.runtime.torch_internals import CACHE_FOLDER, UNSET
from compilewatch.wire.cache_miss_causes import (
    ACCESS,
    ENVIRONMENT,
    FOLDER,
    KERNELS_FOLDER,
    READ_ONLY,
    WRITTEN,
)

HASH_LENGTH = 8
MOST_NAMES = 48
"""Names of one sort that are told by themselves; the others share one hash."""
MOST_TEXTS = 4 * MOST_NAMES
MOST_UNREAD = 16

_CONFIGURING = (
    "TORCH",
    "INDUCTOR",
    "DYNAMO",
    "TRITON",
    "CUDA_",
    "NCCL_",
    "OMP_",
    "MKL_",
    "PYTORCH_",
)
# torch, its launcher and CUDA set these themselves, or they name a folder, which has a component of its own.
_NOT_CONFIGURING = (
    "TORCHELASTIC_",
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "CUDA_MODULE_LOADING",
)
_CACHES_WITHIN = ("fxgraph", "aotautograd")
_AS_EFFECTIVE = os.access in os.supports_effective_ids
_FIXED = frozenset({bool, int, float, str, type(None)})
"""Of these types one object is one value."""
_MODULES = {
    "inductor_config": "torch._inductor.config",
    "functorch_config": "torch._functorch.config",
    "dynamo_config": "torch._dynamo.config",
}


NOTED: dict[str, str] = {}
"""Components that are found out while code is compiled, and that no cache depends on. A forked child runs what its parent compiled."""


def short_hash(name: str, value: object) -> str:
    """A hash of a value under its name, so that equal values of two names do not look alike."""
    return sha256_hex(f"{name}\0{value!r}".encode("utf-8", "replace"))[:HASH_LENGTH]


def variables_hashed(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that configure a compilation, each under its name."""
    found = {
        f"{ENVIRONMENT}{name}": short_hash(name, value)
        for name, value in sorted(environ.items())
        if name.startswith(_CONFIGURING) and not name.startswith(_NOT_CONFIGURING)
    }
    return _bounded(found, f"{ENVIRONMENT}(others)")


def versions() -> dict[str, str]:
    """Of torch, CUDA and triton, as far as the job has imported them."""
    torch, triton = sys.modules.get("torch"), sys.modules.get("triton")
    found = {}
    if torch is not None and hasattr(torch, "__version__"):
        found["torch"] = str(torch.__version__)
        found["cuda"] = str(getattr(getattr(torch, "version", None), "cuda", None) or "")
    if triton is not None:
        found["triton"] = str(getattr(triton, "__version__", ""))
    return found


def gpu_name() -> str:
    """The type of the current GPU once the job has started CUDA itself; empty before."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not hasattr(cuda, "is_initialized") or not cuda.is_initialized():
        return ""
    return str(cuda.get_device_name(cuda.current_device()))


def folders_hashed(environ: Mapping[str, str]) -> dict[str, str]:
    """Where torch and triton keep what they compiled; a folder that is not decided yet is left out, and one that an engine names after
    its own key: that differs because the key does."""
    paths = {FOLDER: cache_folder(environ), KERNELS_FOLDER: environ.get("TRITON_CACHE_DIR", "")}
    return {
        name: short_hash(name, path)
        for name, path in paths.items()
        if path and not derived_from(path)
    }


def folder_access(environ: Mapping[str, str]) -> dict[str, str]:
    """Whether this process may write into torch's caches, asked of what is there of them; nothing is made or tried. A folder that is
    not decided yet is left out."""
    folder = cache_folder(environ)
    if not folder:
        return {}
    parts = [path for name in _CACHES_WITHIN if os.path.isdir(path := os.path.join(folder, name))]  # noqa: PTH112, PTH118
    while not os.path.isdir(folder) and folder != os.path.dirname(folder):  # noqa: PTH112, PTH120
        folder = os.path.dirname(folder)  # noqa: PTH120 - torch makes what is missing below it
    may = all(
        os.access(path, os.W_OK | os.X_OK, effective_ids=_AS_EFFECTIVE) for path in (folder, *parts)
    )
    return {ACCESS: WRITTEN if may else READ_ONLY}


def kernels_folder(environ: Mapping[str, str]) -> str:
    """The folder of Triton's compiled kernels, or of those of each GPU; empty where it is not decided yet."""
    inductor = cache_folder(environ)
    return environ.get("TRITON_CACHE_DIR") or (os.path.join(inductor, "triton") if inductor else "")  # noqa: PTH118 - as torch makes it


def cache_folder(environ: Mapping[str, str]) -> str:
    """The folder of torch's compile caches; nothing is imported or made for it."""
    chosen = environ.get("TORCHINDUCTOR_CACHE_DIR") or CACHE_FOLDER.answer("")
    return os.path.abspath(chosen) if chosen else ""  # noqa: PTH100 - torch does the same, and Path.absolute keeps `..`


class Options:
    """What the job itself set of torch's options, as its compilations met it. An option can be set for one thread alone, and
    `torch.compile(mode=...)` sets some for one compilation alone: so they are read between the two, where a compilation ends."""

    def __init__(self) -> None:
        self._tables: dict[str, Table] = {}
        self._seen: dict[str, set[str]] = {}
        self._unread: deque[Context] = deque()
        self._texts: set[str] = set()
        """What was noted already, value and all; a text is hashed once."""

    def prepare(self) -> None:
        """Finds the tables of what is imported, and what stands in their hundreds of entries; better not on a thread that compiles."""
        for module, path in _MODULES.items():
            if module not in self._tables and fully_imported(path):
                self._tables[module] = Table(sys.modules[path])

    def note(self) -> None:
        """Keeps them as they stand on the thread that compiles; where torch has them in no context they are read at once."""
        self.prepare()
        self._unread.append(copy_context())
        if len(self._unread) > MOST_UNREAD or not all(
            table.in_contexts for table in list(self._tables.values())
        ):
            self.read()

    def read(self) -> None:
        """Reads what was kept; also on the agent's thread, so that a compilation does not wait for it."""
        while self._unread:
            with suppress(IndexError):  # another thread was faster
                self._read(self._unread.popleft())

    def _read(self, context: Context) -> None:
        for module, table in list(self._tables.items()):
            for option, value in table.overridden(context):
                name = f"{module} {option}"
                text = f"{name} {value!r}"
                if text in self._texts:
                    continue
                if len(self._texts) < MOST_TEXTS:
                    self._texts.add(text)
                if len(self._seen) < 4 * MOST_NAMES or name in self._seen:
                    self._seen.setdefault(name, set()).add(short_hash(name, value))

    def hashed(self) -> dict[str, str]:
        """One hash per option; compilations that met several values give several."""
        self.read()
        found = {
            name: "+".join(sorted(hashes)[:3]) for name, hashes in sorted(self._seen.copy().items())
        }
        return _bounded(found, "options (others)")


class Table:
    """One of torch's configuration modules. Options are read as they stand in its table: reading them through the module would print
    warnings into the job. Torch has kept them in three ways: as values, as entries with an override, as entries with an override
    per context; the last is what makes it worth not to ask each of some hundred entries at every compilation."""

    def __init__(self, config: Any) -> None:
        entries = getattr(config, "_config", None)
        self._entries: dict[str, Any] = entries if isinstance(entries, dict) else {}
        self._defaults: dict[str, Any] = getattr(config, "_default", None) or {}
        self._unset = UNSET.find()
        self._last: dict[str, Any] = {}
        overrides = {
            name: getattr(entry, "user_override", None)
            for name, entry in list(self._entries.items())
        }
        self._by_context = {
            var: name for name, var in overrides.items() if isinstance(var, ContextVar)
        }
        self.in_contexts = bool(self._by_context)
        self._by_variable = [
            name
            for name, entry in list(self._entries.items())
            if self._by_environment(entry) is not self._unset
        ]

    def overridden(self, context: Context) -> Iterator[tuple[str, Any]]:
        """The options that are not at their default in the context, with their values, unless they were met with that value last time."""
        for name in self._candidates(context):
            entry = self._entries.get(name)
            default = getattr(entry, "default", self._defaults.get(name, entry))
            value = self._value(entry, default, context)
            if type(value) in _FIXED:
                if self._last.get(name, self) is value:
                    continue
                self._last[name] = value
            plain = _plain(default)
            if (told := _plain(value)) != plain and "/" not in str(told):
                # A path says where a machine keeps its files, not how it compiles.
                yield name, told

    def _candidates(self, context: Context) -> set[str]:
        if self._by_context:
            return {self._by_context[var] for var in context if var in self._by_context}.union(
                self._by_variable
            )
        changed = [
            name
            for name, entry in list(self._entries.items())
            if getattr(entry, "user_override", entry) is not self._unset
        ]
        return set(changed).union(self._by_variable)

    def _value(self, entry: Any, default: Any, context: Context) -> Any:
        if not hasattr(entry, "default"):
            return entry
        chosen = entry.user_override
        if isinstance(chosen, ContextVar):
            chosen = context.get(chosen, self._unset)
        options = (
            getattr(entry, "env_value_force", self._unset),
            chosen,
            getattr(entry, "env_value_default", self._unset),
            default,
        )
        return next(value for value in options if value is not self._unset)

    def _by_environment(self, entry: Any) -> Any:
        forced = getattr(entry, "env_value_force", self._unset)
        return getattr(entry, "env_value_default", self._unset) if forced is self._unset else forced


OPTIONS = Options()
"""The process's own."""


def components() -> dict[str, str]:
    """Everything that is known now."""
    found = {
        **versions(),
        **variables_hashed(os.environ),
        **OPTIONS.hashed(),
        **folders_hashed(os.environ),
        **folder_access(os.environ),
    }
    found.update(VLLM_KEY.components(os.environ))
    gpu = gpu_name()
    return {**found, "gpu": gpu} if gpu else found


def _bounded(found: dict[str, str], rest: str) -> dict[str, str]:
    if len(found) <= MOST_NAMES:
        return found
    names = list(found)
    return {
        **{name: found[name] for name in names[:MOST_NAMES]},
        rest: short_hash(rest, [found[name] for name in names[MOST_NAMES:]]),
    }


def _plain(value: Any) -> Any:
    """The value if it reads the same in another process, else its type."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return type(value).__name__
