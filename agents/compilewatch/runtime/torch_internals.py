"""Registry of private torch names that the agent uses.

Each is looked up by trying; a test checks all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from compilewatch.runtime.import_hook import is_fully_imported


class TorchName(NamedTuple):
    """A name in a module of torch."""

    module: str
    path: str
    kind: type
    """Expected type in every known torch; `Callable` for functions."""
    lost_capability: str
    """The facts that are missing without this name; empty if another source provides them."""

    @property
    def short_name(self) -> str:
        """The last part of the path, for searching."""
        return self.path.rpartition(".")[2]

    def find(self, default: Any = None) -> Any:
        """Returns the current value, or the default if the module is not imported or has no such
        name.

        Imports nothing and never raises.
        """
        value: Any = sys.modules.get(self.module)
        try:
            for part in self.path.split("."):
                value = getattr(value, part)
        except Exception:  # noqa: BLE001 - attribute access in torch may run any code
            return default
        return value

    def call(self, default: Any, *args: Any) -> Any:
        """Calls the function and returns its result; the default if it is missing or fails."""
        function = self.find()
        try:
            return function(*args) if callable(function) else default
        except Exception:  # noqa: BLE001 - other arguments than the agent knows
            return default

    def owner(self) -> tuple[Any, str]:
        """Returns the object that holds the name, and the name in it."""
        parent, _, name = self.path.rpartition(".")
        return (self._replace(path=parent).find() if parent else sys.modules.get(self.module)), name

    def put(self, value: Any) -> None:
        """Replaces the value."""
        owner, name = self.owner()
        setattr(owner, name, value)

    def problem(self) -> str:
        """Returns why the name is unusable; empty if it is usable or its module is not imported."""
        value = self.find(_ABSENT)
        if value is _ABSENT:
            return f"this torch has no {self.short_name}" if is_fully_imported(self.module) else ""
        return "" if isinstance(value, self.kind) else f"{self.short_name} has an unknown type"


_ABSENT = object()
ALL_NAMES: list[TorchName] = []
"""All names below, in order."""


def _register(module: str, path: str, kind: type, costs: str = "") -> TorchName:
    ALL_NAMES.append(TorchName(module, path, kind, costs))
    return ALL_NAMES[-1]


def problems_of(*names: TorchName) -> list[str]:
    """Describes the facts that are missing because these names cannot be used."""
    return [
        f"no {name.lost_capability}: {name.problem()}"
        for name in names
        if name.lost_capability and name.problem()
    ]


_FUNCTION: type = Callable  # type: ignore[assignment]

RECORDS = _register(
    "torch._dynamo.utils", "log_compilation_event", _FUNCTION, "reasons and sizes of compilations"
)
EVENTS = _register(
    "torch._dynamo.utils",
    "record_chromium_event_internal",
    _FUNCTION,
    "live starts and fine phases",
)
COUNTERS = _register("torch._dynamo.utils", "counters", Mapping, "cache counts")
BREAKS = _register("torch._dynamo.utils", "graph_break_reasons", list, "graph breaks")
RECORDS_ON = _register("torch._dynamo.config", "log_compilation_metrics", bool)
SWITCHED_OFF = _register(
    "torch._dynamo.config", "disable", bool, "switch that disables compilation"
)
STATIC_FIRST = _register("torch._dynamo.config", "assume_static_by_default", bool, "dynamic=True")
AUTOMATIC = _register("torch._dynamo.config", "automatic_dynamic_shapes", bool, "dynamic=False")
RECOMPILE_LIMIT = _register("torch._dynamo.config", "recompile_limit", int)
CACHE_SIZE_LIMIT = _register("torch._dynamo.config", "cache_size_limit", int)
TOTAL_LIMIT = _register("torch._dynamo.config", "accumulated_recompile_limit", int)
TOTAL_CACHE_SIZE_LIMIT = _register("torch._dynamo.config", "accumulated_cache_size_limit", int)
SETTINGS = _register("torch._dynamo.config", "_config", Mapping)
SET_OPTION = _register(
    "torch.utils._config_module",
    "ConfigModule.__setattr__",
    _FUNCTION,
    "limits set on other threads",
)
ENTRIES = _register("torch._C._dynamo", "eval_frame._debug_get_cache_entry_list", _FUNCTION)
TENSOR = _register("torch", "Tensor", type)
MODULE = _register("torch", "nn.Module", type)
RESET = _register("torch._dynamo", "reset", _FUNCTION)
SKIPS = _register(
    "torch._dynamo.convert_frame",
    "add_skip_reason",
    _FUNCTION,
    "skips without a compilation record",
)
BUILD_GUARDS = _register(
    "torch._dynamo.guards",
    "CheckFunctionManager.build_guards",
    _FUNCTION,
    "omitted guards",
)
WRAP_COMPILED = _register(
    "torch._dynamo.eval_frame",
    "_TorchDynamoContext.__call__",
    _FUNCTION,
    "generators to compile",
)
HOOKS_UNGUARDED = _register("torch._dynamo.config", "skip_nnmodule_hook_guards", bool)
NEXT_HOOK = _register(
    "torch.utils.hooks", "RemovableHandle.next_id", int, "hooks registered too late"
)
MODULE = _register("torch.nn", "Module", type)
STANCE = _register("torch._dynamo.eval_frame", "_stance.stance", str, "stance")
SET_STANCE = _register(
    "torch._dynamo.decorators", "_set_stance", _FUNCTION, "stances shorter than one second"
)
OPTIMIZE = _register(
    "torch._dynamo.eval_frame", "OptimizeContext.__call__", _FUNCTION, "requests to compile"
)
GUARD_HOOK = _register(
    "torch._C._dynamo", "eval_frame.set_guard_complete_hook", _FUNCTION, "guard lookups"
)
GUARDED_CODE = _register(
    "torch._dynamo.convert_frame",
    "GuardedCode",
    _FUNCTION,
    "entries without a graph, apart from those with one",
)
COLLECTIVES = _register("torch._dynamo.eval_frame", "guard_collectives_hook", _FUNCTION)
SWITCH_COLLECTIVES = _register("torch.compiler", "set_enable_guard_collectives", _FUNCTION)
HEADERS = _register(
    "torch._inductor.codecache", "_precompile_header", _FUNCTION, "time for precompiled headers"
)
CACHE_STATISTICS = _register("torch._inductor.remote_cache", "cache_stats._stats", Mapping)
GRAPH_KEY = _register("torch._inductor.codecache", "compiled_fx_graph_hash", _FUNCTION)
GEMM_CHOICES = _register("torch._inductor.codecache", "PersistentCache.lookup", _FUNCTION)
SKIP_CODE = _register("torch._dynamo.eval_frame", "skip_code", _FUNCTION)
CACHE_FOLDER = _register("torch._inductor.runtime.cache_dir_utils", "default_cache_dir", _FUNCTION)
UNSET = _register("torch.utils._config_module", "_UNSET_SENTINEL", object)
PARTITIONS = _register(
    "torch._inductor.output_code",
    "cudagraph_partition_post_compile",
    _FUNCTION,
    "skips of partitioned CUDA graphs",
)
RECORDING = _register(
    "torch._inductor.cudagraph_trees",
    "CUDAGraphTreeManager.record_function",
    _FUNCTION,
    "recordings of CUDA graphs",
)
SAVE_ARTIFACTS = _register(
    "torch.compiler", "save_cache_artifacts", _FUNCTION, "saving of mega-caches"
)
LOAD_ARTIFACTS = _register(
    "torch.compiler", "load_cache_artifacts", _FUNCTION, "loading of mega-caches"
)
LOAD_PACKAGE = _register(
    "torch._inductor.package",
    "load_package",
    _FUNCTION,
    "loading of a package, though its calls are seen",
)
_PACKAGES = "torch.export.pt2_archive._package"
CALL_PACKAGE = _register(
    _PACKAGES, "AOTICompiledModel.__call__", _FUNCTION, "calls of packages inside watched regions"
)
CALL_AHEAD = _register(
    "torch._dynamo.aot_compile",
    "AOTCompiledFunction.__call__",
    _FUNCTION,
    "calls of AOT code inside watched regions",
)
PROFILED_RUNS = _register(
    "torch._C", "_jit_get_num_profiled_runs", _FUNCTION, "number of profiled TorchScript runs"
)
TENSOR = _register("torch", "Tensor", type)
CUDA = _register("torch", "cuda", object)
CUDA_STARTED = _register("torch", "cuda.is_initialized", _FUNCTION)
CUDA_DEVICE = _register("torch", "_C._cuda_getDevice", _FUNCTION)
CUDA_MEMORY = _register("torch", "_C._cuda_memoryStats", _FUNCTION, "GPU memory")
CUDA_HISTORY = _register("torch", "_C._cuda_isHistoryEnabled", _FUNCTION)
