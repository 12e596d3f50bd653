"""Answers what a person asks first: are the settings right, is the dashboard there, is the key good, what can be seen of this torch."""

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
from compilewatch.export.advice import ANOTHER, advice_of
from compilewatch.export.sender import request_body
from compilewatch.export.spool.spool import spool_capability
from compilewatch.export.transport import http_of
from compilewatch.identity.identity import identity_build, identity_refresh
from compilewatch.identity.redaction import identity_redact
from compilewatch.recording.recorder import Recorder
from compilewatch.sources.registry import InstalledSources
from compilewatch.version import __version__
from compilewatch.wire.codec import encode

LOADED = ("torch", "torch._dynamo", "torch._inductor.graph", "torch._inductor.cudagraph_utils")
"""What a job that compiles has imported; `doctor` imports it to see what the sources can bind."""

ADVICE = {
    "bad_key": "make a new key on the dashboard's Setup page and set COMPILEWATCH_API_KEY",
    "wrong_scope": "use a key for reports (cw_ing_...), from the dashboard's Setup page",
    "plain_http": "use https; to allow plain http on a trusted network, set it on the dashboard too",
    "wrong_version": "update the agent or the dashboard: they speak different versions of the protocol",
    "too_many": "wait: the project sends more than its quota allows",
    "busy": "wait: the dashboard cannot store reports right now",
}
"""What to do about a refusal, by its code."""

IN_CODE = "(named by init)"
"""The model when no variable names it: most jobs do so in their code."""


@dataclass
class Findings:
    """Results of `doctor`; agents/docs/reference/cli.md explains the fields of `--json`."""

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
        findings.advice = "put this setting right; `compilewatch --help` lists them"
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
    for module in LOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    sources.install_unbound()
    sources.poll()
    found = sources.capabilities()
    sources.uninstall()
    return found


def _dashboard(config: Config, body: bytes) -> tuple[str, str]:
    """How the dashboard answers, and what to do about it if that is not well."""
    if config.file is not None:
        folder = Path(config.file).absolute().parent
        if not folder.is_dir():
            return (
                f"there is no folder {folder}",
                "make the folder that reports are to be recorded in",
            )
        return f"ok: reports are recorded to {config.file}", ""
    try:
        answer = http_of(config).send(body)
    except OSError as error:
        return f"cannot be reached: {type(error).__name__}: {error}", advice_of(error)
    if answer.ack is not None:
        return "ok: reachable, and it takes the key", ""
    if not answer.code:
        return answer.problem, ANOTHER
    return answer.problem, ADVICE.get(answer.code, "the answer says what is wrong")


def _text(findings: Findings) -> str:
    lines = [
        f"agent      {findings.agent} on Python {findings.python}, torch {findings.torch or 'not found'}",
        f"settings   {findings.settings}",
    ]
    if findings.endpoint:
        lines += [f"endpoint   {findings.endpoint}", f"dashboard  {findings.dashboard}"]
    if findings.advice:
        lines += [f"to do      {findings.advice}"]
    lines += ["", "What can be seen here:"]
    width = max(map(len, findings.capabilities), default=0)
    lines += [
        f"  {name:{width}}  {answer:6}  {why}".rstrip()
        for name, (answer, why) in findings.capabilities.items()
    ]
    if findings.identity:
        lines += [
            "",
            "What would be sent about this process:",
            json.dumps(findings.identity, indent=2),
        ]
    return "\n".join(lines)
