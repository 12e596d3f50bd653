"""Decoder: inbox rows to wire messages and senders, with one cached sender per identity."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
from cachetools import TTLCache, cached
from compilewatch.wire.messages import Identity, Report

from dashboard.fleet.fold.column_text import clip_label, clip_name
from dashboard.fleet.fold.keys import Source, VersionKey
from dashboard.ingest.batch import identity_read, report_read

MAX_INT32 = (1 << 31) - 1
SENDER_RETENTION_S = 600.0
MAX_SENDERS = 20_000


@dataclass(frozen=True, slots=True)
class EncodedReport:
    """An acknowledged report as stored in the inbox; times are Unix seconds."""

    id: int
    project: int
    instance: str
    clock_offset: float
    identity: bytes
    report: bytes
    received: float | None = None


@dataclass(frozen=True, slots=True)
class ReportSender:
    """The sender of a report, as keys and as columns."""

    source: Source
    identity: Identity
    digest: str
    columns: dict[str, Any]


def decode_report(row: EncodedReport) -> Report:
    """Decode the report of a row. Raises msgspec.DecodeError, which names the field."""
    return report_read(row.report)


@cached(TTLCache(MAX_SENDERS, SENDER_RETENTION_S), lock=threading.Lock())
def decode_sender(project: int, instance: str, identity: bytes) -> ReportSender:
    """The sender in a row, from project, instance and identity: the answer depends on these alone.

    Answers expire, so that processes that come and go leave nothing in memory."""
    who = identity_read(identity)
    gpu, world_size = clip_name(who.gpu, 100), _clamp_int32(who.world_size, 1)
    version = VersionKey(project, who.model, who.version)
    source = Source(version, instance, who.environment, gpu, world_size)
    return ReportSender(
        source, who, hashlib.blake2b(identity, digest_size=16).hexdigest(), _build_columns(who)
    )


_clip_label = lru_cache(maxsize=20_000)(clip_label)
"""Cached because thousands of processes report the same labels."""


def _build_columns(who: Identity) -> dict[str, Any]:
    """Return the identity as the columns of an instance."""
    whole = {
        key: _clip_if_text(value)
        for key, value in msgspec.to_builtins(who).items()
        if key not in ("capabilities", "components")
    }
    return {
        "kind": _clip_label(who.kind, 16),
        "host": clip_name(who.host, 200),
        "node": clip_name(who.node, 200) if who.node else "",
        "job": clip_name(who.job, 200),
        "rank": _clamp_int32(who.rank, 0),
        "pid": _clamp_int32(who.pid, 0) or None,
        "world_size": _clamp_int32(who.world_size, 1),
        "gpu": clip_name(who.gpu, 100),
        "torch": _clip_label(who.torch, 64),
        "agent": _clip_label(who.agent, 64),
        "label": clip_name(who.label, 128) if who.label else "",
        "role": _clip_label(who.role, 16),
        "simulated": who.simulated,
        "identity": whole,
        "capabilities": {
            _clip_label(key, 64): [_clip_label(answer, 16), _clip_label(why, 512)]
            for key, (answer, why) in who.capabilities.items()
        },
        "components": {
            _clip_label(key, 64): _clip_label(value, 512) for key, value in who.components.items()
        },
    }


def _clip_if_text(value: Any) -> Any:
    return clip_label(value, 512) if isinstance(value, str) else value


def _clamp_int32(value: int, smallest: int) -> int:
    return min(max(value, smallest), MAX_INT32)
