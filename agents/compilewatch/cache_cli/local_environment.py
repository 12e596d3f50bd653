"""Local environment: the facts that determine compilations here.

It imports torch and compiles nothing.
"""

from __future__ import annotations

import importlib
import os
import platform
from contextlib import suppress
from typing import Any

from compilewatch.cache_cli.archive import MACHINE, PYTHON
from compilewatch.errors import AgentError
from compilewatch.identity.compile_config import (
    cache_folder,
    folder_access,
    gpu_name,
    hash_folders,
    hash_variables,
    versions,
)
from compilewatch.runtime.torch_internals import GRAPH_KEY
from compilewatch.sources.inductor.cache_key_parts import KeyParts, parts_of

_CONFIG_MODULES = (
    "torch._dynamo.config",
    "torch._functorch.config",
    "torch._inductor.config",
    "torch._inductor.runtime.cache_dir_utils",
)


def import_torch() -> Any:
    """Imports torch and its configuration modules. Raises an AgentError if that fails."""
    try:
        torch = importlib.import_module("torch")
        for name in _CONFIG_MODULES:
            importlib.import_module(name)
    except Exception as error:  # noqa: BLE001 - a broken installation may fail in any way
        raise AgentError(f"torch cannot be imported here: {error!r:.200}") from None
    with suppress(ImportError):  # torch without GPU support has none
        importlib.import_module("triton")
    return torch


def build_info() -> dict[str, str]:
    """Returns versions, GPU type, Python version and processor type; starts CUDA on the first GPU
    for its name.
    """
    torch = import_torch()
    if torch.cuda.is_available():
        torch.cuda.init()
    info = {
        **versions(),
        PYTHON: ".".join(platform.python_version_tuple()[:2]),
        MACHINE: platform.machine(),
    }
    gpu = gpu_name()
    return {**info, "gpu": gpu} if gpu else info


def local_components() -> dict[str, str]:
    """Returns these facts with the hashes of variables and folders, under the names that a running
    job reports.
    """
    return {
        **build_info(),
        **hash_variables(os.environ),
        **hash_folders(os.environ),
        **folder_access(os.environ),
    }


def local_key_parts() -> KeyParts | None:
    """Returns the key parts that torch uses for every graph here, read from an empty graph without
    compiling; None if this torch does not provide them.
    """
    torch = import_torch()
    with suppress(Exception):  # other arguments than the agent knows cost only this answer
        importlib.import_module(GRAPH_KEY.module)
        empty = torch.fx.Graph()
        empty.output(())
        return parts_of(GRAPH_KEY.find()(torch.fx.GraphModule({}, empty), [], {}, [])[1])
    return None


def local_cache_folder() -> str:
    """Returns the folder of torch's compile caches."""
    return cache_folder(os.environ)
