"""Redaction (COMPILEWATCH_REDACT=strict): replaces each text with a fingerprint, except words of
the protocol.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from typing import Any

from compilewatch.wire import messages as wire
from compilewatch.wire.cache_miss_causes import SENTENCES
from compilewatch.wire.codec import decode, encode
from compilewatch.wire.command import RECEIPTS, REFUSALS, RESTORE, VERBS
from compilewatch.wire.messages import Identity, Report
from compilewatch.wire.numerics import KINDS, LASTS, REFERENCES, STATES, Parity
from compilewatch.wire.sketch import Sketch

PLAIN_IDENTITY_FIELDS = {
    *(
        "id",
        "started",
        "model",
        "version",
        "environment",
        "kind",
        "rank",
        "local_rank",
        "world_size",
        "pid",
        "gpu",
        "gpu_count",
    ),
    *(
        "gpu_capability",
        "driver",
        "torch",
        "triton",
        "cuda",
        "python",
        "agent",
        "simulated",
        "components",
        "role",
    ),
}
"""Settings, versions, hardware and hashes, which the dashboard needs for any comparison."""
_MESSAGES = (
    wire.Report,
    wire.Region,
    wire.Compile,
    wire.Finding,
    wire.Device,
    wire.Gauges,
    wire.Fact,
    wire.Losses,
    Sketch,
    Parity,
)
_KEYS = {field.name for message in _MESSAGES for field in dataclasses.fields(message)} | {
    "cause",
    "limit",
    "region",
    "dynamic",
    "backend",
}
_KEYS |= {"began", "total", "until", "stages", "phases", "unaccounted"}
_KEYS |= {"code", "signal"}
_KEYS |= {"command", "verb", "counter", "state", "why", "detail", "callables", "refused"}
_WORDS = {
    *wire.EAGER_CAUSES,
    *wire.COMPILE_KINDS,
    *wire.OUTCOMES,
    *wire.FINDING_KINDS,
    *wire.FACT_KINDS,
    *wire.CACHE_ANSWERS,
    *wire.REASON_KINDS,
    *wire.PATTERNS,
    *wire.DYNAMIC,
    wire.HELPS_ALONE,
    *wire.OWN_MARKS,
    *wire.COLD_START_STAGES,
    *wire.COLD_START_ENDS,
    *SENTENCES,
    *(*VERBS, ", ".join(VERBS), RESTORE, *RECEIPTS, *REFUSALS),
    *(*STATES, *REFERENCES, *LASTS, *KINDS),
    *("SIGTERM", "SIGINT"),
    *("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"),
    *("torch.compile", "eager", "inductor", "other", "True", "False", "None"),
}
_OWN_TABLES = ("seconds", "cache", "eager_by", "phases")
"""Tables that contain only the agent's own words."""
_PLAIN = re.compile(r"2\^\d{1,3}|[\d!/_.]*|#[0-9a-f]{16}")
"""A bucket, a number or a compile id, or a fingerprint."""


def fingerprint(text: str) -> str:
    """Returns a fingerprint, equal in every process; a guessed text can still be confirmed."""
    return (
        text
        if text in _WORDS or _PLAIN.fullmatch(text)
        else "#" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
    )


def redact_report(report: Report) -> Report:
    """Returns the report with fingerprints in place of its texts."""
    return decode(Report, _redact(encode(report)))


def identity_redact(identity: Identity) -> None:
    """Replaces all fields of the identity that are not explicitly allowed with fingerprints."""
    for field in dataclasses.fields(identity):
        if field.name not in PLAIN_IDENTITY_FIELDS and field.name != "capabilities":
            setattr(identity, field.name, _redact(getattr(identity, field.name)))
    chosen = {
        name: value for name, value in identity.components.items() if name.startswith(wire.KERNEL)
    }
    for name, value in chosen.items():
        del identity.components[name]
        identity.components[wire.KERNEL + fingerprint(name)] = fingerprint(value)
    identity.capabilities = {
        name: (answer, fingerprint(why)) for name, (answer, why) in identity.capabilities.items()
    }


def _redact(data: Any) -> Any:
    if isinstance(data, str):
        return fingerprint(data)
    if isinstance(data, dict):
        return {
            key if key in _KEYS else fingerprint(key): value
            if key in _OWN_TABLES
            else _redact(value)
            for key, value in data.items()
        }
    if isinstance(data, (list, tuple)):
        return [_redact(item) for item in data]
    return data
