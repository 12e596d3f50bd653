"""What a compilation in this environment would be made with, found by importing torch and compiling nothing."""

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
    folders_hashed,
    gpu_name,
    variables_hashed,
    versions,
)
from compilewatch.runtime.torch_internals import GRAPH_KEY
from compilewatch.sources.inductor.cache_key_parts import KeyParts, parts_of

_CONFIGURED = (
    "torch._dynamo.config",
    "torch._functorch.config",
    "torch._inductor.config",
    "torch._inductor.runtime.cache_dir_utils",
)


def torch_imported() -> Any:
    """Torch, with what decides its configuration. Raises an AgentError where there is none."""
    try:
        torch = importlib.import_module("torch")
        for name in _CONFIGURED:
            importlib.import_module(name)
    except Exception as error:  # noqa: BLE001 - a broken installation may fail in any way
        raise AgentError(f"torch cannot be imported here: {error!r:.200}") from None
    with suppress(ImportError):  # torch without GPUs has none
        importlib.import_module("triton")
    return torch


def made_with() -> dict[str, str]:
    """Versions, the GPU's type, Python and the processor's kind; the first GPU is started for its name."""
    torch = torch_imported()
    if torch.cuda.is_available():
        torch.cuda.init()
    found = {
        **versions(),
        PYTHON: ".".join(platform.python_version_tuple()[:2]),
        MACHINE: platform.machine(),
    }
    gpu = gpu_name()
    return {**found, "gpu": gpu} if gpu else found


def components_here() -> dict[str, str]:
    """The same with the hashes of variables and folders, by the names that a running job tells."""
    return {
        **made_with(),
        **variables_hashed(os.environ),
        **folders_hashed(os.environ),
        **folder_access(os.environ),
    }


def key_parts_here() -> KeyParts | None:
    """What torch would put into the key of any graph here, from an empty one that is not compiled; None where this torch does not tell."""
    torch = torch_imported()
    with suppress(
        Exception
    ):  # a torch that wants other arguments than we know costs this answer alone
        importlib.import_module(GRAPH_KEY.module)
        empty = torch.fx.Graph()
        empty.output(())
        return parts_of(GRAPH_KEY.find()(torch.fx.GraphModule({}, empty), [], {}, [])[1])
    return None


def folder_here() -> str:
    """The folder of torch's compile caches."""
    return cache_folder(os.environ)
