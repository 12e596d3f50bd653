"""Every private name of torch that the agent rests on, each looked up by trying; tests go through them all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from compilewatch.runtime.import_hook import fully_imported


class TorchName(NamedTuple):
    """A name in a module of torch."""

    module: str
    path: str
    kind: type
    """What stands under it in every torch that is known; `Callable` for what is called."""
    costs: str
    """What cannot be seen without it; empty where something else tells the same."""

    @property
    def short(self) -> str:
        """The name alone, as people would search for it."""
        return self.path.rpartition(".")[2]

    def find(self, default: Any = None) -> Any:
        """What stands there now; the default where the module is not imported or has no such name. Imports nothing, never raises."""
        found: Any = sys.modules.get(self.module)
        try:
            for part in self.path.split("."):
                found = getattr(found, part)
        except Exception:  # noqa: BLE001 - a module of torch may do anything when it is asked for a name
            return default
        return found

    def answer(self, default: Any, *args: Any) -> Any:
        """What the function answers; the default where there is none or it fails."""
        found = self.find()
        try:
            return found(*args) if callable(found) else default
        except Exception:  # noqa: BLE001 - it wants other arguments than we know
            return default

    def owner(self) -> tuple[Any, str]:
        """What the name is an attribute of, and its name there."""
        parent, _, name = self.path.rpartition(".")
        return (self._replace(path=parent).find() if parent else sys.modules.get(self.module)), name

    def put(self, value: Any) -> None:
        """Makes the value what stands there."""
        owner, name = self.owner()
        setattr(owner, name, value)

    def problem(self) -> str:
        """Why it cannot be used; empty if it can, and while its module is not imported."""
        found = self.find(_ABSENT)
        if found is _ABSENT:
            return f"this torch has no {self.short}" if fully_imported(self.module) else ""
        return "" if isinstance(found, self.kind) else f"{self.short} is of an unknown kind"


_ABSENT = object()
ALL: list[TorchName] = []
"""The names below, in their order."""


def _named(module: str, path: str, kind: type, costs: str = "") -> TorchName:
    ALL.append(TorchName(module, path, kind, costs))
    return ALL[-1]


def problems_of(*names: TorchName) -> list[str]:
    """What cannot be seen for want of these names, and why, in words."""
    return [f"no {name.costs}: {name.problem()}" for name in names if name.costs and name.problem()]


_FUNCTION: type = Callable  # type: ignore[assignment]

RECORDS = _named(
    "torch._dynamo.utils", "log_compilation_event", _FUNCTION, "reasons and sizes of compilations"
)
EVENTS = _named(
    "torch._dynamo.utils",
    "record_chromium_event_internal",
    _FUNCTION,
    "live starts and fine phases",
)
COUNTERS = _named("torch._dynamo.utils", "counters", Mapping, "cache counts")
BREAKS = _named("torch._dynamo.utils", "graph_break_reasons", list, "graph breaks")
RECORDS_ON = _named("torch._dynamo.config", "log_compilation_metrics", bool)
SWITCHED_OFF = _named("torch._dynamo.config", "disable", bool, "switch that turns compiling off")
STATIC_FIRST = _named("torch._dynamo.config", "assume_static_by_default", bool, "dynamic=True")
AUTOMATIC = _named("torch._dynamo.config", "automatic_dynamic_shapes", bool, "dynamic=False")
RECOMPILE_LIMIT = _named("torch._dynamo.config", "recompile_limit", int)
CACHE_SIZE_LIMIT = _named("torch._dynamo.config", "cache_size_limit", int)
TOTAL_LIMIT = _named("torch._dynamo.config", "accumulated_recompile_limit", int)
TOTAL_CACHE_SIZE_LIMIT = _named("torch._dynamo.config", "accumulated_cache_size_limit", int)
SETTINGS = _named("torch._dynamo.config", "_config", Mapping)
SET_OPTION = _named(
    "torch.utils._config_module",
    "ConfigModule.__setattr__",
    _FUNCTION,
    "limits that other threads set",
)
ENTRIES = _named("torch._C._dynamo", "eval_frame._debug_get_cache_entry_list", _FUNCTION)
TENSOR = _named("torch", "Tensor", type)
MODULE = _named("torch", "nn.Module", type)
RESET = _named("torch._dynamo", "reset", _FUNCTION)
SKIPS = _named(
    "torch._dynamo.convert_frame", "add_skip_reason", _FUNCTION, "skips without a record"
)
BUILD_GUARDS = _named(
    "torch._dynamo.guards",
    "CheckFunctionManager.build_guards",
    _FUNCTION,
    "guards that are left out",
)
WRAP_COMPILED = _named(
    "torch._dynamo.eval_frame",
    "_TorchDynamoContext.__call__",
    _FUNCTION,
    "generators that are to be compiled",
)
HOOKS_UNGUARDED = _named("torch._dynamo.config", "skip_nnmodule_hook_guards", bool)
NEXT_HOOK = _named("torch.utils.hooks", "RemovableHandle.next_id", int, "hooks that come too late")
MODULE = _named("torch.nn", "Module", type)
STANCE = _named("torch._dynamo.eval_frame", "_stance.stance", str, "stance")
SET_STANCE = _named(
    "torch._dynamo.decorators", "_set_stance", _FUNCTION, "stance that lasts less than a second"
)
OPTIMIZE = _named(
    "torch._dynamo.eval_frame", "OptimizeContext.__call__", _FUNCTION, "requests to compile"
)
GUARD_HOOK = _named(
    "torch._C._dynamo", "eval_frame.set_guard_complete_hook", _FUNCTION, "guard lookups"
)
GUARDED_CODE = _named(
    "torch._dynamo.convert_frame",
    "GuardedCode",
    _FUNCTION,
    "telling of entries without a graph from those with one",
)
COLLECTIVES = _named("torch._dynamo.eval_frame", "guard_collectives_hook", _FUNCTION)
SWITCH_COLLECTIVES = _named("torch.compiler", "set_enable_guard_collectives", _FUNCTION)
HEADERS = _named(
    "torch._inductor.codecache", "_precompile_header", _FUNCTION, "time for precompiled headers"
)
CACHE_STATISTICS = _named("torch._inductor.remote_cache", "cache_stats._stats", Mapping)
GRAPH_KEY = _named("torch._inductor.codecache", "compiled_fx_graph_hash", _FUNCTION)
GEMM_CHOICES = _named("torch._inductor.codecache", "PersistentCache.lookup", _FUNCTION)
SKIP_CODE = _named("torch._dynamo.eval_frame", "skip_code", _FUNCTION)
CACHE_FOLDER = _named("torch._inductor.runtime.cache_dir_utils", "default_cache_dir", _FUNCTION)
UNSET = _named("torch.utils._config_module", "_UNSET_SENTINEL", object)
PARTITIONS = _named(
    "torch._inductor.output_code",
    "cudagraph_partition_post_compile",
    _FUNCTION,
    "skips of graphs that are cut into parts",
)
RECORDING = _named(
    "torch._inductor.cudagraph_trees",
    "CUDAGraphTreeManager.record_function",
    _FUNCTION,
    "recordings of CUDA graphs",
)
SAVE_ARTIFACTS = _named(
    "torch.compiler", "save_cache_artifacts", _FUNCTION, "saving of mega-caches"
)
LOAD_ARTIFACTS = _named(
    "torch.compiler", "load_cache_artifacts", _FUNCTION, "loading of mega-caches"
)
LOAD_PACKAGE = _named(
    "torch._inductor.package",
    "load_package",
    _FUNCTION,
    "loading of a package, though its calls are seen",
)
_PACKAGES = "torch.export.pt2_archive._package"
CALL_PACKAGE = _named(
    _PACKAGES, "AOTICompiledModel.__call__", _FUNCTION, "calls of packages inside what is watched"
)
CALL_AHEAD = _named(
    "torch._dynamo.aot_compile",
    "AOTCompiledFunction.__call__",
    _FUNCTION,
    "calls of AOT code inside what is watched",
)
PROFILED_RUNS = _named(
    "torch._C", "_jit_get_num_profiled_runs", _FUNCTION, "number of runs that TorchScript profiles"
)
TENSOR = _named("torch", "Tensor", type)
CUDA = _named("torch", "cuda", object)
CUDA_STARTED = _named("torch", "cuda.is_initialized", _FUNCTION)
CUDA_DEVICE = _named("torch", "_C._cuda_getDevice", _FUNCTION)
CUDA_MEMORY = _named("torch", "_C._cuda_memoryStats", _FUNCTION, "memory of GPUs")
CUDA_HISTORY = _named("torch", "_C._cuda_isHistoryEnabled", _FUNCTION)
