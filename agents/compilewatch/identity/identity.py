"""Identity: the reporting process, its place in the job, and its software.

Nothing is imported or started to find it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compilewatch.config import Config
from compilewatch.identity.autotuned_kernels import KERNEL_CHOICES
from compilewatch.identity.compile_config import EXTRA_COMPONENTS, components, gpu_name, short_hash
from compilewatch.identity.launcher import placement_of
from compilewatch.identity.process_start import process_start_time
from compilewatch.version import __version__
from compilewatch.wire.messages import STAGE, Identity

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"

_COMMIT_VARIABLES = (
    "GIT_COMMIT",
    "GIT_SHA",
    "GITHUB_SHA",
    "CI_COMMIT_SHA",
    "SOURCE_VERSION",
    "IMAGE_TAG",
    "K_REVISION",
)
UNVERSIONED = "unversioned"


def instance_id() -> str:
    """Creates an id of 26 characters that sorts by time: 10 for milliseconds, 16 random."""
    return id_of(int(time.time() * 1000), int.from_bytes(os.urandom(10), "big"))


def successor_id(earlier: str, body: bytes) -> str:
    """Derives the new id for a contested window.

    The id is a function of the window, so that repeated sends are stored once.
    """
    digest = hashlib.sha256(f"{earlier}\0".encode() + body).digest()
    return earlier[:10] + id_of(0, int.from_bytes(digest[:10], "big"))[10:]


def id_of(milliseconds: int, chance: int) -> str:
    """Builds the id of an instance from its start time and 80 random bits."""
    number = milliseconds << 80 | chance
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def version_of(config: Config, environ: Mapping[str, str]) -> str:
    """Returns the configured version, else the commit or image tag in the environment, else the
    commit of the working folder.
    """
    if config.version:
        return config.version
    for variable in _COMMIT_VARIABLES:
        if environ.get(variable):
            return environ[variable][:40]
    return _working_folder_commit() or UNVERSIONED


def _working_folder_commit() -> str:
    """Returns the commit checked out in the working folder or a parent folder; empty if there is
    none.
    """
    try:
        working = Path.cwd()
        for folder in (working, *working.parents):
            head = folder / ".git" / "HEAD"
            if head.is_file():
                text = head.read_text().strip()
                return (_ref(folder / ".git", text[5:]) if text.startswith("ref: ") else text)[:12]
    except (OSError, UnicodeDecodeError):
        return ""
    return ""


def _ref(git: Path, name: str) -> str:
    loose = git / name
    if loose.is_file():
        return loose.read_text().strip()
    packed = git / "packed-refs"
    lines = packed.read_text().splitlines() if packed.is_file() else []
    return next((line.split()[0] for line in lines if line.endswith(f" {name}")), "")


def identity_build(config: Config, environ: Mapping[str, str] | None = None) -> Identity:
    """Builds the identity at the start of an instance."""
    environ = os.environ if environ is None else environ
    job, rank, local_rank, world_size = placement_of(environ)
    return Identity(
        id=instance_id(),
        started=process_start_time(),
        model=config.model,
        version=version_of(config, environ),
        environment=config.environment,
        kind=config.kind,
        job=job,
        rank=rank,
        local_rank=local_rank,
        world_size=world_size,
        host=socket.gethostname(),
        node=config.node,
        pid=os.getpid(),
        python=platform.python_version(),
        agent=__version__,
        simulated=config.simulated,
        components=_job_components(config),
    )


def _job_components(config: Config) -> dict[str, str]:
    """Returns the components that only the job can set; hashed if redaction is on."""
    if not config.stage:
        return {}
    return {STAGE: short_hash(STAGE, config.stage) if config.redact else config.stage}


def identity_refresh(identity: Identity) -> None:
    """Adds facts that were unknown before: torch after its import, the GPU after the job started
    CUDA, kernels after autotuning.
    """
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "__version__"):
        identity.torch = str(torch.__version__)
        identity.cuda = str(getattr(getattr(torch, "version", None), "cuda", None) or "")
        if not identity.gpu:
            _gpu_find(identity, torch)
    declared = {name: value for name, value in identity.components.items() if name == STAGE}
    identity.components = {**components(), **KERNEL_CHOICES, **EXTRA_COMPONENTS, **declared}
    identity.triton = identity.components.get("triton", "")


def _gpu_find(identity: Identity, torch: Any) -> None:
    identity.gpu = gpu_name()
    if not identity.gpu:
        return
    cuda = torch.cuda
    device = cuda.current_device()
    identity.gpu_count = cuda.device_count()
    identity.gpu_capability = ".".join(map(str, cuda.get_device_capability(device)))
    driver = Path("/proc/driver/nvidia/version")
    if driver.is_file():
        words = driver.read_text().splitlines()[0].split()
        identity.driver = next((word for word in words if word[0].isdigit() and "." in word), "")
