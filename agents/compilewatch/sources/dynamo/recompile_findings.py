"""Recompile findings: reports why a frame is compiled again, and recompile limits not in force."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from compilewatch.recording.recorder import Recorder
from compilewatch.sources.dynamo.compilation_metrics import Frame, guard_key
from compilewatch.sources.dynamo.compile_history import REPEAT_REASONS
from compilewatch.sources.dynamo.guard_values import FailedGuard, GuardValues, parse_failed_guard

_MAX_LIMIT_FINDINGS = 1024


class RecompileFindings:
    """Keeps the values that each guard met, and the ignored limits that are already reported."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._values = GuardValues()
        self._reported_limits: set[tuple[str, str]] = set()

    def report(
        self,
        frame: Frame,
        repeat: str,
        causes: Iterable[list[str]],
        failed: Mapping[str, FailedGuard],
        ignored: Iterable[str],
    ) -> None:
        """Report the findings of one recompile.

        `repeat` is a key of AGAIN if no guard is the cause. `causes` holds torch's reasons, grouped
        by guard; `failed` holds the guard of each reason. `ignored` holds a text for each limit
        that another thread set."""
        if repeat:
            self._recorder.record_finding("guard", REPEAT_REASONS[repeat], frame.where)
        for reasons in causes:
            self._report_guard(frame, reasons, failed)
        for text in ignored:
            self._report_limit_once(frame, text)

    def _report_guard(
        self, frame: Frame, reasons: list[str], failed: Mapping[str, FailedGuard]
    ) -> None:
        """Report one guard that failed for all cache entries of these reasons."""
        group = guard_key(reasons[0])
        # Torch lists the newest entry first; the values are kept in the order of compilation.
        guards = [
            failed.get(reason) or parse_failed_guard(reason, {}) for reason in reversed(reasons)
        ]
        varies = self._values.note(group, frame.where, guards)
        self._recorder.record_finding(
            "guard",
            group,
            frame.where,
            values=varies.values,
            distinct=varies.distinct,
            pattern=varies.pattern,
        )

    def _report_limit_once(self, frame: Frame, text: str) -> None:
        """Report an ignored limit once for each place."""
        key = text, frame.where
        if key not in self._reported_limits and len(self._reported_limits) < _MAX_LIMIT_FINDINGS:
            self._reported_limits.add(key)
            self._recorder.record_finding("limit_not_in_force", text, frame.where)
