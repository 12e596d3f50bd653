"""Running totals of sampled calls, and the schedule of their reports."""

from __future__ import annotations

import os
import threading
import time

from compilewatch.numerics.tolerance import Comparison
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.clip import clip
from compilewatch.wire.numerics import (
    MAX_GOLDENS,
    MAX_NAME,
    MAX_WHY,
    Kind,
    Parity,
    State,
    parity_data,
)

REPORT_INTERVAL_S = 10.0
"""Minimum interval between two reports, unless the state changes."""
MIN_BEYOND, MIN_BEYOND_SHARE = 3, 0.01
"""Minimum number and share of calls beyond the tolerance for `failed`.

Both are needed because a live call is compared with eager alone, without a higher precision."""

_names: set[str] = set()


class Totals:
    """Totals of one callable. Callers' threads and the agent's thread hold `lock` to use them."""

    def __init__(self, kind: Kind, region: str) -> None:
        self.kind, self.region = kind, region
        self.name = clip(
            f"{'shadow calls' if kind == 'shadow' else 'values'} of {region}", MAX_NAME
        )
        self.samples = self.beyond = self.timed = self.nonfinite = self.eager_nonfinite = (
            self.outputs
        ) = 0
        self.compiled_seconds = self.eager_seconds = 0.0
        self.worst: Comparison | None = None
        self.relative: float | None = None
        self.dtype = self.first = self.refused = ""
        self._reported_at = -REPORT_INTERVAL_S
        self._state: State | None = None
        self._pending = False
        """True if the totals hold calls that no fact has reported."""
        self._process = os.getpid()
        self._alone = threading.RLock()

    @property
    def lock(self) -> threading.RLock:
        """Lock of the totals. A forked child starts with new totals and a new lock."""
        if self._process != os.getpid():
            self.__init__(self.kind, self.region)  # type: ignore[misc]
        return self._alone

    def add(self, worst: Comparison) -> None:
        """Adds a call that was compared."""
        self.samples += 1
        self.beyond += worst.times > 1.0
        self.nonfinite += worst.nonfinite
        self.eager_nonfinite += worst.eager_nonfinite
        if self.worst is None or worst.times > self.worst.times:
            self.worst = worst

    @property
    def state(self) -> State:
        """State of the calls so far."""
        if self.kind == "finite":
            return "failed" if self.beyond else "passed" if self.samples else "not compared"
        enough = self.beyond >= MIN_BEYOND and self.beyond >= MIN_BEYOND_SHARE * self.samples
        return (
            "failed" if enough else "not compared" if self.refused or not self.samples else "passed"
        )

    def report(self) -> None:
        """Reports the totals if the state has changed or the interval has passed.

        Otherwise the totals are reported when the reporting window closes."""
        if self.name not in _names and len(_names) >= MAX_GOLDENS:
            return
        _names.add(self.name)
        now, state = time.monotonic(), self.state
        if state != self._state or now - self._reported_at >= REPORT_INTERVAL_S:
            self._reported_at, self._state, self._pending = now, state, False
            try:
                RECORDER.record_fact("parity", parity_data(self.to_parity()))
            except Exception as error:  # noqa: BLE001 - the job's call has already succeeded
                RECORDER.record_internal_error(error)
        else:
            self._pending = True
            RECORDER.report_at_rotation(self.name, self._report_pending)

    def _report_pending(self) -> None:
        with self.lock:
            if self._pending:
                self._reported_at = -REPORT_INTERVAL_S
                self.report()

    def to_parity(self) -> Parity:
        """The totals as the data of a fact."""
        one, timed = self.worst, self.timed
        known = one is not None and not one.wrong and self.kind == "shadow"
        return Parity(
            self.name,
            self.state,
            why=clip(self.refused or (one.wrong if one is not None else ""), MAX_WHY),
            region=clip(self.region, MAX_NAME),
            where=one.where if one is not None else "",
            error=one.error if one is not None and known else None,
            tolerance=one.allowed if one is not None and known else None,
            reference="eager" if self.kind == "shadow" else "",
            dtype=self.dtype,
            outputs=self.outputs,
            nonfinite=self.nonfinite,
            eager_nonfinite=self.eager_nonfinite,
            kind=self.kind,
            samples=self.samples,
            beyond=self.beyond,
            timed=timed,
            relative=self.relative,
            compiled_seconds=self.compiled_seconds / timed if timed else None,
            eager_seconds=self.eager_seconds / timed if timed else None,
        )
