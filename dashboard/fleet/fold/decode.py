"""An inbox row as the wire's messages, with the identity's keys made once per identity instead of once per report."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
from compilewatch.wire.messages import Identity, Report

from dashboard.fleet.fold.column_text import label, name
from dashboard.fleet.fold.keys import Source, VersionKey
from dashboard.fleet.fold.ttl_cache import Remembered
from dashboard.ingest.batch import identity_read, report_read

MAX_INT32 = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Row:
    """An acknowledged report as it lies in the inbox; times are Unix seconds."""

    id: int
    project: int
    instance: str
    clock_offset: float
    identity: bytes
    report: bytes
    received: float | None = None


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sent a report, as keys and as columns."""

    source: Source
    identity: Identity
    digest: str
    columns: dict[str, Any]


def report_of(row: Row) -> Report:
    """The report in a row; raises msgspec.DecodeError, which names the field."""
    return report_read(row.report)


def _sender(project: int, instance: str, identity: bytes) -> Sender:
    who = identity_read(identity)
    gpu, world_size = name(who.gpu, 100), _int32(who.world_size, 1)
    version = VersionKey(project, who.model, who.version)
    source = Source(version, instance, who.environment, gpu, world_size)
    return Sender(source, who, hashlib.blake2b(identity, digest_size=16).hexdigest(), _columns(who))


sender_of = Remembered(_sender, period=600.0, most=20_000)
"""The sender in a row, from project, instance and identity: all that the answer depends on."""

_label = lru_cache(maxsize=20_000)(label)
"""Thousands of processes say the same of themselves."""


def _columns(who: Identity) -> dict[str, Any]:
    """The identity as the columns of an instance."""
    whole = {key: _plain(value) for key, value in msgspec.to_builtins(who).items() if key not in ("capabilities", "components")}
    return {
        "kind": _label(who.kind, 16),
        "host": name(who.host, 200),
        "job": name(who.job, 200),
        "rank": _int32(who.rank, 0),
        "pid": _int32(who.pid, 0) or None,
        "world_size": _int32(who.world_size, 1),
        "gpu": name(who.gpu, 100),
        "torch": _label(who.torch, 64),
        "agent": _label(who.agent, 64),
        "label": name(who.label, 128) if who.label else "",
        "role": _label(who.role, 16),
        "simulated": who.simulated,
        "identity": whole,
        "capabilities": {_label(key, 64): [_label(answer, 16), _label(why, 512)] for key, (answer, why) in who.capabilities.items()},
        "components": {_label(key, 64): _label(value, 512) for key, value in who.components.items()},
    }


def _plain(value: Any) -> Any:
    return label(value, 512) if isinstance(value, str) else value


def _int32(value: int, smallest: int) -> int:
    return min(max(value, smallest), MAX_INT32)
