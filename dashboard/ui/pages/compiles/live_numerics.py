"""Shadow sampling: speed-up and error of compiled live calls against eager, and NaN values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from compilewatch.wire.numerics import Parity, parity_words

from dashboard.fleet.selectors.instances.cold_starts import ProcessStart
from dashboard.fleet.selectors.numerics import ParityRow
from dashboard.vocabulary import numbers
from dashboard.vocabulary.numbers import significant

REASONS = 2
SHORT_CALL_S = 0.01
"""Seconds. On two cores, a compiled step of 0.5 ms took twice as long as the eager step right after
it, and equally long alone."""
WHAT = {"shadow": "shadow calls", "finite": "checked for NaN"}


@dataclass(frozen=True)
class LiveNumerics:
    """The sampled calls of one region across the processes of a version."""

    kind: str
    region: str
    samples: int
    beyond: int
    nonfinite: int
    told: int
    """Number of processes that report sampled calls."""
    processes: int
    failed: int
    at: datetime
    compiled: float | None
    eager: float | None
    """Mean seconds of the sampled calls."""
    on_gpu: bool
    relative: float | None
    text: str
    reasons: list[str]
    before: str

    @property
    def what(self) -> str:
        """The kind of sampling."""
        return WHAT[self.kind]

    @property
    def is_shadow(self) -> bool:
        """Whether the calls also ran eager."""
        return self.kind == "shadow"

    @property
    def speed(self) -> float | None:
        """Ratio of eager to compiled time; None if unknown."""
        return (
            self.eager / self.compiled
            if self.eager is not None and self.compiled and not self.too_short
            else None
        )

    @property
    def too_short(self) -> bool:
        """Whether the order of the two calls outweighs the code: below this duration, the second
        call benefits from warm caches."""
        return not self.on_gpu and max(self.compiled or 0.0, self.eager or 0.0) < SHORT_CALL_S

    @property
    def speed_text(self) -> str:
        """The speed-up as text."""
        if self.speed is None:
            return ""
        return (
            f"{significant(self.speed)} times as fast"
            if self.speed >= 1
            else f"{significant(1 / self.speed)} times as slow"
        )

    @property
    def times_text(self) -> str:
        """Both means as text."""
        if self.compiled is None or self.eager is None:
            return ""
        both = (
            f"{numbers.duration(self.compiled)} compiled, {numbers.duration(self.eager)} eager on "
            "average"
        )
        return (
            f"{both}; the second of two short calls benefits from warm CPU caches"
            if self.too_short
            else both
        )

    @property
    def relative_text(self) -> str:
        """The largest error relative to the magnitude of its output."""
        return (
            f"largest error: {significant(self.relative * 100, 2)}% of the magnitude of its output"
            if self.relative is not None
            else ""
        )


def list_live_numerics(
    rows: Sequence[ParityRow],
    own: Sequence[ProcessStart],
    *,
    version: int,
    baseline: str,
    baseline_id: int | None,
) -> list[LiveNumerics]:
    """Sampled calls of the processes that the page lists, failures first, then by name."""
    known = {one.id: one for one in own}
    mine: dict[tuple[str, str], list[ParityRow]] = {}
    theirs: dict[tuple[str, str], list[ParityRow]] = {}
    for row in rows:
        key = (row.told.kind, row.told.region or row.told.name)
        if row.told.kind and row.version_id == version and row.instance in known:
            mine.setdefault(key, []).append(row)
        elif row.told.kind and row.version_id == baseline_id:
            theirs.setdefault(key, []).append(row)
    found = [
        _live(key, group, known, _before(key[0], theirs.get(key, []), baseline))
        for key, group in mine.items()
    ]
    return sorted(found, key=lambda one: (-one.failed, one.region, one.kind))


def _live(
    key: tuple[str, str], rows: Sequence[ParityRow], known: Mapping[int, ProcessStart], before: str
) -> LiveNumerics:
    results = [row.told for row in rows]
    timed = [
        one
        for one in results
        if one.timed and one.compiled_seconds is not None and one.eager_seconds is not None
    ]
    several = sum(one.timed for one in timed)
    refused = Counter(one.why or "unknown reason" for one in results if one.state == "not compared")
    return LiveNumerics(
        kind=key[0],
        region=key[1],
        samples=sum(one.samples for one in results),
        beyond=sum(one.beyond for one in results),
        nonfinite=sum(one.nonfinite for one in results),
        told=len({row.instance for row in rows}),
        processes=len(known),
        failed=sum(one.state == "failed" for one in results),
        at=max(row.at for row in rows),
        compiled=sum((one.compiled_seconds or 0.0) * one.timed for one in timed) / several
        if several
        else None,
        eager=sum((one.eager_seconds or 0.0) * one.timed for one in timed) / several
        if several
        else None,
        on_gpu=any(known[row.instance].gpu for row in rows),
        relative=max((one.relative for one in results if one.relative is not None), default=None),
        text=_text(key[0], results),
        reasons=[
            f"{why} ({numbers.plural(count, 'process', 'processes')})"
            for why, count in refused.most_common(REASONS)
        ],
        before=before,
    )


def _text(kind: str, results: Sequence[Parity]) -> str:
    """All processes on one line, with the error that is the largest multiple of its tolerance."""
    samples = sum(one.samples for one in results)
    if not samples:
        return "no call compared" if kind == "shadow" else "no call checked"
    beyond = sum(one.beyond for one in results)
    if kind == "finite":
        count = f"{numbers.number(beyond)} of {numbers.number(samples)}"
        held = f"{count} results contain NaN or infinite values"
        return held if beyond else "no NaN or infinite values"
    worst = max(
        (one for one in results if one.samples),
        key=lambda one: (one.state == "failed", one.times or 0.0),
    )
    why = (
        "" if worst.state == "not compared" else worst.why
    )  # the reasons of skipped calls are listed separately
    return parity_words(
        replace(
            worst, samples=samples, beyond=beyond, why=why, state="failed" if beyond else "passed"
        )
    )


def _before(kind: str, rows: Sequence[ParityRow], baseline: str) -> str:
    samples, beyond = sum(row.told.samples for row in rows), sum(row.told.beyond for row in rows)
    if not samples:
        return ""
    what = "contain NaN or infinite values" if kind == "finite" else "exceed the tolerance"
    return f"{baseline}: {numbers.number(beyond)} of {numbers.number(samples)} {what}"


def count_shadow_calls(rows: Sequence[ParityRow], version: int) -> int:
    """Number of eager calls next to live calls of this version."""
    return sum(
        row.told.timed for row in rows if row.told.kind == "shadow" and row.version_id == version
    )


def live_json(found: Sequence[LiveNumerics]) -> list[dict[str, Any]]:
    """The sampled calls as JSON."""
    return [
        {
            "kind": one.kind,
            "region": one.region,
            "samples": one.samples,
            "beyond": one.beyond,
            "nonfinite": one.nonfinite,
            "speed_up": one.speed,
            "compiled_seconds": one.compiled,
            "eager_seconds": one.eager,
            "relative_error": one.relative,
            "told_at": one.at.isoformat(),
            "left_alone": one.reasons,
        }
        for one in found
    ]
