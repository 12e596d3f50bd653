"""Who reports: the process, where it runs, and with what; everything that is found is found without importing or starting anything."""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compilewatch import __version__
from compilewatch.config import Config
from compilewatch.wire.report import Identity

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"

# Each launcher's variables: job, rank, local rank, world size.
_LAUNCHERS = (
    ("TORCHELASTIC_RUN_ID", "RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("SLURM_JOB_ID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
    ("RAY_JOB_ID", "RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("JOB_NAME", "RANK", "LOCAL_RANK", "WORLD_SIZE"),
)
_COMMIT_VARIABLES = ("GIT_COMMIT", "GIT_SHA", "GITHUB_SHA", "CI_COMMIT_SHA", "SOURCE_VERSION", "IMAGE_TAG", "K_REVISION")
_CONFIGURING = ("TORCH", "INDUCTOR", "DYNAMO", "TRITON", "CUDA_", "NCCL_", "OMP_", "MKL_", "PYTORCH_")
UNVERSIONED = "unversioned"


def instance_id() -> str:
    """26 characters that sort by time: 10 of milliseconds, 16 of chance."""
    number = int(time.time() * 1000) << 80 | secrets.randbits(80)
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def version_of(config: Config, environ: Mapping[str, str]) -> str:
    """The version that was given, else the commit or image tag in the environment, else the commit of the working folder."""
    if config.version:
        return config.version
    for variable in _COMMIT_VARIABLES:
        if environ.get(variable):
            return environ[variable][:40]
    return _commit_here() or UNVERSIONED


def _commit_here() -> str:
    """The commit that is checked out in the working folder or above it; empty when there is none."""
    try:
        here = Path.cwd()
        for folder in (here, *here.parents):
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
    """The identity at the start of an instance."""
    environ = os.environ if environ is None else environ
    job, rank, local_rank, world_size = _placement(environ)
    return Identity(
        id=instance_id(),
        started=time.time(),
        model=config.model,
        version=version_of(config, environ),
        environment=config.environment,
        kind=config.kind,
        job=job,
        rank=rank,
        local_rank=local_rank,
        world_size=world_size,
        host=socket.gethostname(),
        pid=os.getpid(),
        python=platform.python_version(),
        agent=__version__,
        simulated=config.simulated,
        components={"env": _environment_hash(environ)},
    )


def _placement(environ: Mapping[str, str]) -> tuple[str, int, int, int]:
    for job, rank, local_rank, world_size in _LAUNCHERS:
        if environ.get(job):
            return environ[job], _whole(environ, rank, 0), _whole(environ, local_rank, 0), _whole(environ, world_size, 1)
    return "", _whole(environ, "RANK", 0), _whole(environ, "LOCAL_RANK", 0), _whole(environ, "WORLD_SIZE", 1)


def _whole(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default


def _environment_hash(environ: Mapping[str, str]) -> str:
    """The environment variables that configure a compilation, as one hash; their values never leave the process."""
    return _hash(sorted((key, value) for key, value in environ.items() if key.startswith(_CONFIGURING)))


def _hash(value: object) -> str:
    return hashlib.sha256(repr(value).encode("utf-8", "replace")).hexdigest()[:16]


def identity_refresh(identity: Identity) -> None:
    """Adds what has become known since: torch once it is imported, the GPU once the job has started CUDA itself."""
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "__version__"):
        identity.torch = str(torch.__version__)
        identity.cuda = str(getattr(getattr(torch, "version", None), "cuda", None) or "")
        if not identity.gpu:
            _gpu_find(identity, torch)
    triton = sys.modules.get("triton")
    if triton is not None:
        identity.triton = identity.components["triton"] = str(getattr(triton, "__version__", ""))
    for name, module in (("dynamo_config", "torch._dynamo.config"), ("inductor_config", "torch._inductor.config")):
        if name not in identity.components and module in sys.modules:
            found = _config_hash(sys.modules[module])
            if found:
                identity.components[name] = found


def _gpu_find(identity: Identity, torch: Any) -> None:
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not hasattr(cuda, "is_initialized") or not cuda.is_initialized():
        return
    device = cuda.current_device()
    identity.gpu = cuda.get_device_name(device)
    identity.gpu_count = cuda.device_count()
    identity.gpu_capability = ".".join(map(str, cuda.get_device_capability(device)))
    driver = Path("/proc/driver/nvidia/version")
    if driver.is_file():
        words = driver.read_text().splitlines()[0].split()
        identity.driver = next((word for word in words if word[0].isdigit() and "." in word), "")


def _config_hash(config: Any) -> str:
    """A hash over a configuration module of torch, of what can be written as text the same way in another process."""
    settings = getattr(config, "_config", None)
    if not isinstance(settings, dict):
        return ""
    plain = []
    for key in sorted(settings):
        value = _setting(settings[key])
        # A path says where a machine keeps its files, not how it compiles.
        if "/" not in str(value):
            plain.append((key, value))
    return _hash(plain)


def _setting(entry: Any) -> Any:
    """The value of an entry as it stands in the table: reading it through the module would print warnings into the job."""
    for name in ("env_value_force", "user_override", "env_value_default", "default"):
        value = getattr(entry, name, entry)
        if isinstance(value, (bool, int, float, str)):
            return value
    return None
