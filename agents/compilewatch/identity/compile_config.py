"""Compile configuration: versions in plain text, everything else as one hash per name.

No value of a variable or an option leaves the process.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from typing import Any

from compilewatch.identity.vllm_cache_key import VLLM_KEY, vllm_key_of
from compilewatch.runtime.import_hook import is_fully_imported
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
MAX_NAMES = 48
"""Maximum number of names of one sort that are reported separately; the others share one hash."""
MAX_TEXTS = 4 * MAX_NAMES
MAX_UNREAD = 16

_CONFIG_PREFIXES = (
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
# torch, its launcher and CUDA set these variables, or they name a folder, which has its own
# component.
_IGNORED_PREFIXES = (
    "TORCHELASTIC_",
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "CUDA_MODULE_LOADING",
)
_CACHE_FOLDERS = ("fxgraph", "aotautograd")
_HAS_EFFECTIVE_IDS = os.access in os.supports_effective_ids
_PLAIN_TYPES = frozenset({bool, int, float, str, type(None)})
"""Types for which an identical object means an identical value."""
_MODULES = {
    "inductor_config": "torch._inductor.config",
    "functorch_config": "torch._functorch.config",
    "dynamo_config": "torch._dynamo.config",
}


EXTRA_COMPONENTS: dict[str, str] = {}
"""Components found during compilation that no cache depends on.

A forked child keeps its parent's.
"""


def short_hash(name: str, value: object) -> str:
    """Hashes a value with its name, so that equal values of two names have different hashes."""
    return hashlib.sha256(f"{name}\0{value!r}".encode("utf-8", "replace")).hexdigest()[:HASH_LENGTH]


def hash_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Hashes the environment variables that configure a compilation, by name."""
    hashes = {
        f"{ENVIRONMENT}{name}": short_hash(name, value)
        for name, value in sorted(environ.items())
        if name.startswith(_CONFIG_PREFIXES) and not name.startswith(_IGNORED_PREFIXES)
    }
    return _bounded(hashes, f"{ENVIRONMENT}(others)")


def versions() -> dict[str, str]:
    """Returns the versions of torch, CUDA and triton that the job has imported."""
    torch, triton = sys.modules.get("torch"), sys.modules.get("triton")
    result = {}
    if torch is not None and hasattr(torch, "__version__"):
        result["torch"] = str(torch.__version__)
        result["cuda"] = str(getattr(getattr(torch, "version", None), "cuda", None) or "")
    if triton is not None:
        result["triton"] = str(getattr(triton, "__version__", ""))
    return result


def gpu_name() -> str:
    """Returns the type of the current GPU; empty until the job itself has started CUDA."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not hasattr(cuda, "is_initialized") or not cuda.is_initialized():
        return ""
    return str(cuda.get_device_name(cuda.current_device()))


def hash_folders(environ: Mapping[str, str]) -> dict[str, str]:
    """Hashes the cache folders of torch and triton.

    Leaves out a folder that is not decided yet, and a folder that an engine names after its own
    key: that folder differs because the key differs.
    """
    paths = {FOLDER: cache_folder(environ), KERNELS_FOLDER: environ.get("TRITON_CACHE_DIR", "")}
    return {
        name: short_hash(name, path)
        for name, path in paths.items()
        if path and not vllm_key_of(path)
    }


def folder_access(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns whether this process may write into torch's caches, according to the permissions of
    the existing folders.

    Creates and writes nothing. Returns nothing if the folder is not decided yet.
    """
    folder = cache_folder(environ)
    if not folder:
        return {}
    paths = [os.path.join(folder, name) for name in _CACHE_FOLDERS]  # noqa: PTH118
    parts = [path for path in paths if os.path.isdir(path)]  # noqa: PTH112
    while not os.path.isdir(folder) and folder != os.path.dirname(folder):  # noqa: PTH112, PTH120
        folder = os.path.dirname(folder)  # noqa: PTH120 - torch creates the missing ones
    may = all(
        os.access(path, os.W_OK | os.X_OK, effective_ids=_HAS_EFFECTIVE_IDS)
        for path in (folder, *parts)
    )
    return {ACCESS: WRITTEN if may else READ_ONLY}


def kernels_folder(environ: Mapping[str, str]) -> str:
    """Returns the folder of Triton's compiled kernels, or the parent of the folders per GPU; empty
    if it is not decided yet.
    """
    inductor = cache_folder(environ)
    default = os.path.join(inductor, "triton") if inductor else ""  # noqa: PTH118
    return environ.get("TRITON_CACHE_DIR") or default


def cache_folder(environ: Mapping[str, str]) -> str:
    """Returns the folder of torch's compile caches; imports and creates nothing."""
    chosen = environ.get("TORCHINDUCTOR_CACHE_DIR") or CACHE_FOLDER.call("")
    return os.path.abspath(chosen) if chosen else ""  # noqa: PTH100


class Options:
    """The torch options that the job has changed, as its compilations saw them.

    An option can be set for one thread, and `torch.compile(mode=...)` sets options for one
    compilation. The agent therefore reads the options at the end of each compilation.
    """

    def __init__(self) -> None:
        self._tables: dict[str, OptionTable] = {}
        self._hashes_by_option: dict[str, set[str]] = {}
        self._unread: deque[Context] = deque()
        self._texts: set[str] = set()
        """Options already recorded, with their values, so that each text is hashed once."""

    def prepare(self) -> None:
        """Indexes the option tables of imported modules.

        Call it on a thread that does not compile: the tables have hundreds of entries.
        """
        for module, path in _MODULES.items():
            if module not in self._tables and is_fully_imported(path):
                self._tables[module] = OptionTable(sys.modules[path])

    def note(self) -> None:
        """Captures the context of the compiling thread.

        Reads the options immediately if torch does not store them in contexts.
        """
        self.prepare()
        self._unread.append(copy_context())
        if len(self._unread) > MAX_UNREAD or not all(
            table.is_per_context for table in list(self._tables.values())
        ):
            self.read()

    def read(self) -> None:
        """Reads the captured contexts.

        The agent's thread does so too, so that compilations do not wait.
        """
        while self._unread:
            with suppress(IndexError):  # another thread was faster
                self._read_context(self._unread.popleft())

    def _read_context(self, context: Context) -> None:
        for module, table in list(self._tables.items()):
            for option, value in table.iter_overrides(context):
                name = f"{module} {option}"
                text = f"{name} {value!r}"
                if text in self._texts:
                    continue
                if len(self._texts) < MAX_TEXTS:
                    self._texts.add(text)
                if len(self._hashes_by_option) < 4 * MAX_NAMES or name in self._hashes_by_option:
                    self._hashes_by_option.setdefault(name, set()).add(short_hash(name, value))

    def hashes(self) -> dict[str, str]:
        """Returns one hash per option; up to three hashes if compilations saw several values."""
        self.read()
        result = {
            name: "+".join(sorted(hashes)[:3])
            for name, hashes in sorted(self._hashes_by_option.copy().items())
        }
        return _bounded(result, "options (others)")


class OptionTable:
    """One of torch's configuration modules.

    Reads the table behind the module, because attribute access through the module would print
    warnings into the job. Releases of torch store options as plain values, as entries with an
    override, or as entries with an override per context. With contexts, a compilation reads only
    the changed options instead of some hundred entries.
    """

    def __init__(self, config: Any) -> None:
        entries = getattr(config, "_config", None)
        self._entries: dict[str, Any] = entries if isinstance(entries, dict) else {}
        self._defaults: dict[str, Any] = getattr(config, "_default", None) or {}
        self._unset = UNSET.find()
        self._last_values: dict[str, Any] = {}
        overrides = {
            name: getattr(entry, "user_override", None)
            for name, entry in list(self._entries.items())
        }
        self._by_context = {
            var: name for name, var in overrides.items() if isinstance(var, ContextVar)
        }
        self.is_per_context = bool(self._by_context)
        self._by_variable = [
            name
            for name, entry in list(self._entries.items())
            if self._environment_value(entry) is not self._unset
        ]

    def iter_overrides(self, context: Context) -> Iterator[tuple[str, Any]]:
        """Yields the options with a non-default value in this context, unless the value is the same
        as in the last call.
        """
        for name in self._candidates(context):
            entry = self._entries.get(name)
            default = getattr(entry, "default", self._defaults.get(name, entry))
            value = self._value(entry, default, context)
            if type(value) in _PLAIN_TYPES:
                if self._last_values.get(name, self) is value:
                    continue
                self._last_values[name] = value
            plain = _plain(default)
            if (shown := _plain(value)) != plain and "/" not in str(shown):
                # A path depends on the machine and does not change the compilation.
                yield name, shown

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

    def _environment_value(self, entry: Any) -> Any:
        forced = getattr(entry, "env_value_force", self._unset)
        return getattr(entry, "env_value_default", self._unset) if forced is self._unset else forced


OPTIONS = Options()
"""The options of this process."""


def components() -> dict[str, str]:
    """Returns all components known now."""
    result = {
        **versions(),
        **hash_variables(os.environ),
        **OPTIONS.hashes(),
        **hash_folders(os.environ),
        **folder_access(os.environ),
    }
    result.update(VLLM_KEY.components(os.environ))
    gpu = gpu_name()
    return {**result, "gpu": gpu} if gpu else result


def _bounded(components: dict[str, str], overflow: str) -> dict[str, str]:
    if len(components) <= MAX_NAMES:
        return components
    names = list(components)
    return {
        **{name: components[name] for name in names[:MAX_NAMES]},
        overflow: short_hash(overflow, [components[name] for name in names[MAX_NAMES:]]),
    }


def _plain(value: Any) -> Any:
    """Returns the value if its text is the same in every process, otherwise its type's name."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return type(value).__name__
