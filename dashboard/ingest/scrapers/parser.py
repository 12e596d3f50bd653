"""Metrics parser: a snapshot of an engine's /metrics, and the difference between two snapshots.
Pure code."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from dashboard.ingest.scrapers.metric_names import EngineFormat, FinishedCounter, FrontendHistogram

MAX_FAMILIES = 2000
MAX_BUCKETS = 200
MAX_COUNT = 2**53


class MetricsParseError(ValueError):
    """The answer is not in Prometheus text format; the message is a sentence."""


@dataclass
class Histogram:
    """Counts per bucket (not cumulative), and the sum of the values."""

    bounds: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    total: float = 0.0


@dataclass
class Snapshot:
    """All counts since the engine started. `absent` lists names of the format that the answer
    lacks."""

    started: float | None = None
    tokens: float | None = None
    failed: float | None = None
    """Requests that the engine failed to finish; None if it does not count them."""
    parts: dict[str, Histogram] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)
    own_names: int = 0

    def as_json(self) -> dict[str, Any]:
        """JSON for a column. Infinity is not valid JSON and becomes null."""
        parts = {
            name: {"bounds": encode_bounds(one.bounds), "counts": one.counts, "total": one.total}
            for name, one in self.parts.items()
        }
        return {
            "started": self.started,
            "tokens": self.tokens,
            "failed": self.failed,
            "parts": parts,
        }

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Snapshot:
        """Inverse of `as_json`."""
        parts = {
            name: Histogram(decode_bounds(one["bounds"]), list(one["counts"]), one["total"])
            for name, one in kept["parts"].items()
        }
        return cls(kept["started"], kept["tokens"], kept.get("failed"), parts)


def snapshot_read(text: str, wanted: EngineFormat) -> Snapshot:
    """Parses one answer. Label sets of a name (the engines of one server) add up."""
    found, families = Snapshot(), {one.name: one for one in _parse_families(text)}
    found.own_names = sum(name.startswith(wanted.prefix) for name in families)
    found.started = _sum_samples(families.get(wanted.started))
    for part in wanted.parts:
        name = next(
            (
                name
                for name in part.names
                if name in families and families[name].type == "histogram"
            ),
            None,
        )
        if name is None:
            found.absent.append(part.names[0])
        else:
            found.parts[part.region] = _parse_histogram(families[name])
    if wanted.front is not None and (front := _parse_frontend(families, wanted.front)) is not None:
        found.parts[wanted.front.part.region] = front
    tokens = next((families[name] for name in wanted.tokens if name in families), None)
    found.tokens = _sum_samples(tokens)
    found.failed = _count_failed(families, wanted.finished)
    if tokens is None:
        found.absent.append(f"{wanted.tokens[0]}_total")
    return found


def _parse_families(text: str) -> Iterator[Metric]:
    try:
        for number, family in enumerate(text_string_to_metric_families(text)):
            if number >= MAX_FAMILIES:
                raise MetricsParseError(f"The response has more than {MAX_FAMILIES:,} metrics.")
            yield family
    except MetricsParseError:
        raise
    except Exception as error:
        raise MetricsParseError(
            f"The response is not in Prometheus text format ({type(error).__name__})."
        ) from error


def _sum_samples(family: Metric | None) -> float | None:
    """Sum over label sets; creation times of counters are not values."""
    if family is None:
        return None
    values = [sample.value for sample in family.samples if not sample.name.endswith("_created")]
    total = sum(value for value in values if math.isfinite(value))
    return total if values and 0 <= total <= MAX_COUNT else None


def _count_failed(families: Mapping[str, Metric], wanted: FinishedCounter | None) -> float | None:
    """The count of the failure reason. A release without the reason counts no failures, which
    differs from zero failures."""
    family = families.get(wanted.name) if wanted else None
    if wanted is None or family is None:
        return None
    samples = [
        one
        for one in family.samples
        if not one.name.endswith("_created") and one.labels.get(wanted.label) == wanted.failed
    ]
    counts = [one.value for one in samples]
    return sum(counts) if counts and all(0 <= count <= MAX_COUNT for count in counts) else None


def _parse_histogram(family: Metric) -> Histogram:
    upto: dict[float, float] = {}
    total = 0.0
    for sample in family.samples:
        if sample.name.endswith("_bucket") and "le" in sample.labels:
            bound = _parse_bound(sample.labels["le"])
            upto[bound] = upto.get(bound, 0.0) + sample.value
        elif sample.name.endswith("_sum"):
            total += sample.value
    bounds = sorted(bound for bound in upto if bound > 0)
    if len(bounds) > MAX_BUCKETS or not all(0 <= upto[bound] <= MAX_COUNT for bound in bounds):
        raise MetricsParseError(f"{family.name} has invalid buckets.")
    counts, before = [], 0.0
    for bound in bounds:
        counts.append(max(0, int(upto[bound] - before)))
        before = max(before, upto[bound])
    return Histogram(bounds, counts, total)


def _parse_frontend(families: Mapping[str, Metric], wanted: FrontendHistogram) -> Histogram | None:
    """Times of all HTTP requests, if nearly all reach the model. The histogram does not separate
    handlers."""
    fine, by_handler = (families.get(name) for name in (wanted.part.names[0], wanted.by_handler))
    if fine is None or by_handler is None or fine.type != "histogram":
        return None
    found = _parse_histogram(fine)
    counts = [one for one in by_handler.samples if one.name.endswith("_count")]
    asking = sum(one.value for one in counts if one.labels.get(wanted.label) in wanted.handlers)
    return found if asking >= wanted.least * sum(found.counts) else None


def _parse_bound(text: str) -> float:
    try:
        bound = float(text)
    except ValueError as error:
        raise MetricsParseError(
            f"The response is not in Prometheus text format: a bucket ends at {text[:40]!r}."
        ) from error
    return bound if not math.isnan(bound) else math.inf


def has_restarted(before: Snapshot, now: Snapshot) -> bool:
    """True if the engine counts from zero again: its start time changed, or a counter fell."""
    if (
        before.started is not None
        and now.started is not None
        and abs(now.started - before.started) > 1
    ):
        return True
    for name, one in now.parts.items():
        earlier = before.parts.get(name)
        if earlier and (
            earlier.bounds != one.bounds
            or any(new < old for new, old in zip(one.counts, earlier.counts, strict=True))
        ):
            return True
    return _has_decreased(before.tokens, now.tokens) or _has_decreased(before.failed, now.failed)


def _has_decreased(before: float | None, now: float | None) -> bool:
    return before is not None and now is not None and now < before


def diff_snapshots(before: Snapshot | None, now: Snapshot) -> Snapshot:
    """Counts since `before`; all counts if the engine restarted since."""
    if before is None:
        return Snapshot(
            started=now.started, parts=dict(now.parts), tokens=now.tokens, failed=now.failed
        )
    found = Snapshot(started=now.started)
    for name, one in now.parts.items():
        earlier = before.parts.get(name)
        if earlier is not None:
            counts = [new - old for new, old in zip(one.counts, earlier.counts, strict=True)]
            found.parts[name] = Histogram(one.bounds, counts, max(0.0, one.total - earlier.total))
    if before.tokens is not None and now.tokens is not None:
        found.tokens = now.tokens - before.tokens
    if before.failed is not None and now.failed is not None:
        found.failed = now.failed - before.failed
    return found


def encode_bounds(bounds: Sequence[float]) -> list[float | None]:
    """JSON for a column. Infinity is not valid JSON and becomes null."""
    return [None if math.isinf(bound) else bound for bound in bounds]


def decode_bounds(kept: Sequence[float | None]) -> list[float]:
    """Inverse of `encode_bounds`."""
    return [math.inf if bound is None else bound for bound in kept]


def name_layout(bounds: list[float]) -> str:
    """A short name of the bounds; only versions with equal bounds are compared."""
    return f"buckets {hashlib.blake2b(repr(bounds).encode(), digest_size=3).hexdigest()}"
