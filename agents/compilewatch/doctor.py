"""Answers what a person asks first: are the settings right, is the dashboard there, is the key good, what can be seen of this torch."""

from __future__ import annotations

import contextlib
import http.client
import importlib
import json
import platform
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from compilewatch import __version__
from compilewatch.config import Config, load
from compilewatch.errors import ConfigError
from compilewatch.identity import identity_build, identity_refresh
from compilewatch.recorder import Recorder
from compilewatch.sender import request_body
from compilewatch.sources.installed import InstalledSources
from compilewatch.transport import HttpTransport
from compilewatch.wire.codec import encode

LOADED = ("torch", "torch._dynamo", "torch._inductor.graph", "torch._inductor.cudagraph_utils")
"""What a job that compiles has imported; `doctor` imports it to see what the sources can bind."""

IN_CODE = "(named by init)"
"""The model when no variable names it: most jobs do so in their code."""


@dataclass
class Findings:
    """What `doctor` found out."""

    agent: str = __version__
    python: str = field(default_factory=platform.python_version)
    torch: str = ""
    settings: str = ""
    endpoint: str = ""
    dashboard: str = ""
    healthy: bool = False
    capabilities: dict[str, tuple[str, str]] = field(default_factory=dict)
    identity: dict[str, Any] = field(default_factory=dict)


def run(*, endpoint: str | None, key: str | None, as_json: bool) -> int:
    """The command; 0 if reports would arrive."""
    findings = examine(endpoint, key)
    print(json.dumps(vars(findings), indent=2) if as_json else _text(findings))
    return 0 if findings.healthy else 1


def examine(endpoint: str | None, key: str | None) -> Findings:
    """Looks at everything; sends an empty request to see whether the dashboard takes the key."""
    findings = Findings()
    findings.capabilities = _capabilities()
    findings.torch = str(getattr(sys.modules.get("torch"), "__version__", ""))
    try:
        config = load({"endpoint": endpoint, "api_key": key}, model=IN_CODE)
    except ConfigError as error:
        findings.settings = str(error).removeprefix("off: ")
        return findings
    findings.settings, findings.endpoint = "ok", config.endpoint
    identity = identity_build(config)
    identity_refresh(identity)
    identity.capabilities = findings.capabilities
    findings.identity = encode(identity)
    findings.dashboard = _dashboard(config, request_body(identity, [], time.time()))
    findings.healthy = findings.dashboard.startswith("ok")
    return findings


def _capabilities() -> dict[str, tuple[str, str]]:
    recorder = Recorder()
    sources = InstalledSources(recorder)
    sources.install()
    for module in LOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    sources.poll()
    found = sources.capabilities()
    sources.uninstall()
    return found


def _dashboard(config: Config, body: bytes) -> str:
    if config.file is not None:
        return f"ok: reports are recorded to {config.file}"
    try:
        answer = HttpTransport(config.endpoint, config.api_key).send(body)
    except (OSError, http.client.HTTPException) as error:
        return f"cannot be reached: {type(error).__name__}: {error}"
    return "ok: reachable, and it takes the key" if answer.ack is not None else answer.problem


def _text(findings: Findings) -> str:
    lines = [
        f"agent      {findings.agent} on Python {findings.python}, torch {findings.torch or 'not found'}",
        f"settings   {findings.settings}",
    ]
    if findings.endpoint:
        lines += [f"endpoint   {findings.endpoint}", f"dashboard  {findings.dashboard}"]
    lines += ["", "What can be seen here:"]
    width = max(map(len, findings.capabilities), default=0)
    lines += [f"  {name:{width}}  {answer:6}  {why}".rstrip() for name, (answer, why) in findings.capabilities.items()]
    if findings.identity:
        lines += ["", "What would be sent about this process:", json.dumps(findings.identity, indent=2)]
    return "\n".join(lines)
