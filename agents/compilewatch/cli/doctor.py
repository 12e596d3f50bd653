"""`compilewatch doctor`: checks settings, dashboard and key, and lists the capabilities of this
torch.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import platform
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compilewatch.config import Config, load
from compilewatch.control.signatures import signature_capability
from compilewatch.errors import ConfigError
from compilewatch.export.advice import OTHER_PROGRAM, advice_of
from compilewatch.export.sender import request_body
from compilewatch.export.spool.spool import spool_capability
from compilewatch.export.transport import create_http_transport
from compilewatch.identity.identity import identity_build, identity_refresh
from compilewatch.identity.redaction import identity_redact
from compilewatch.recording.recorder import Recorder
from compilewatch.sources.registry import InstalledSources
from compilewatch.version import __version__
from compilewatch.wire.codec import encode

IMPORTED_MODULES = (
    "torch",
    "torch._dynamo",
    "torch._inductor.graph",
    "torch._inductor.cudagraph_utils",
)
"""Modules that a compiling job has imported; `doctor` imports them so that sources can bind."""

ADVICE = {
    "bad_key": "create a new key on the dashboard's Setup page and set COMPILEWATCH_API_KEY",
    "wrong_scope": "use a key for reports (cw_ing_...), from the dashboard's Setup page",
    "plain_http": (
        "use https; to allow plain http on a trusted network, also allow it on the dashboard"
    ),
    "wrong_version": (
        "update the agent or the dashboard: they use different versions of the protocol"
    ),
    "too_many": "wait: the project sends more than its quota allows",
    "busy": "wait: the dashboard cannot store reports right now",
}
"""Advice for a refusal, by its code."""

IN_CODE = "(named by init)"
"""The model if no variable names it: most jobs name it in their code."""


@dataclass
class Diagnosis:
    """The results of `doctor`; agents/docs/reference/cli.md explains the fields of `--json`."""

    schema: int = 1
    healthy: bool = False
    advice: str = ""
    agent: str = __version__
    python: str = field(default_factory=platform.python_version)
    torch: str = ""
    settings: str = ""
    endpoint: str = ""
    dashboard: str = ""
    capabilities: dict[str, tuple[str, str]] = field(default_factory=dict)
    identity: dict[str, Any] = field(default_factory=dict)


def run(*, endpoint: str | None, key: str | None, as_json: bool) -> int:
    """Runs the command; returns 0 if reports would arrive."""
    findings = examine(endpoint, key)
    print(json.dumps(vars(findings), indent=2) if as_json else _text(findings))
    return 0 if findings.healthy else 1


def examine(endpoint: str | None, key: str | None) -> Diagnosis:
    """Checks everything; sends an empty request to test the key."""
    findings = Diagnosis()
    findings.capabilities = _capabilities()
    findings.torch = str(getattr(sys.modules.get("torch"), "__version__", ""))
    try:
        config = load({"endpoint": endpoint, "api_key": key}, model=IN_CODE)
    except ConfigError as error:
        findings.settings = str(error).removeprefix("off: ")
        findings.advice = "correct this setting; `compilewatch --help` lists all settings"
        return findings
    findings.settings, findings.endpoint = "ok", config.endpoint
    findings.capabilities["spool"] = spool_capability(config)
    if config.allow_remote:
        findings.capabilities["command_signatures"] = signature_capability(config)
    identity = identity_build(config)
    identity.capabilities = findings.capabilities
    identity_refresh(identity)
    if config.redact:
        identity_redact(identity)
    findings.identity = encode(identity)
    findings.dashboard, findings.advice = _dashboard(
        config, request_body(identity, [], time.time())
    )
    findings.healthy = not findings.advice
    return findings


def _capabilities() -> dict[str, tuple[str, str]]:
    recorder = Recorder()
    sources = InstalledSources(recorder)
    sources.install()
    for module in IMPORTED_MODULES:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    sources.install_unbound()
    sources.poll()
    capabilities = sources.capabilities()
    sources.uninstall()
    return capabilities


def _dashboard(config: Config, body: bytes) -> tuple[str, str]:
    """Returns the answer of the dashboard, and the advice if there is a problem."""
    if config.file is not None:
        folder = Path(config.file).absolute().parent
        if not folder.is_dir():
            return (
                f"the folder {folder} does not exist",
                "create the folder for the recorded reports",
            )
        return f"ok: reports are recorded to {config.file}", ""
    try:
        answer = create_http_transport(config).send(body)
    except OSError as error:
        return f"cannot be reached: {type(error).__name__}: {error}", advice_of(error)
    if answer.ack is not None:
        return "ok: reachable, and the key is valid", ""
    if not answer.code:
        return answer.problem, OTHER_PROGRAM
    return answer.problem, ADVICE.get(answer.code, "see the answer above")


def _text(findings: Diagnosis) -> str:
    lines = [
        f"agent      {findings.agent} on Python {findings.python}, "
        f"torch {findings.torch or 'not found'}",
        f"settings   {findings.settings}",
    ]
    if findings.endpoint:
        lines += [f"endpoint   {findings.endpoint}", f"dashboard  {findings.dashboard}"]
    if findings.advice:
        lines += [f"to do      {findings.advice}"]
    lines += ["", "Capabilities:"]
    width = max(map(len, findings.capabilities), default=0)
    lines += [
        f"  {name:{width}}  {answer:6}  {why}".rstrip()
        for name, (answer, why) in findings.capabilities.items()
    ]
    if findings.identity:
        lines += [
            "",
            "Sent about this process:",
            json.dumps(findings.identity, indent=2),
        ]
    return "\n".join(lines)
