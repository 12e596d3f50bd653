"""Graph-break reader: groups the new entries of torch's list of break reasons by text and place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compilewatch.sources.dynamo.scrubber import break_reason
from compilewatch.sources.dynamo.user_frames import find_user_place


class BreakList:
    """Cursor over `torch._dynamo.utils.graph_break_reasons`. Torch appends to the list; a reset
    empties the list."""

    def __init__(self, reasons: Sequence[Any]) -> None:
        self._reasons = reasons
        self._read_count = len(reasons)
        self._last_read = reasons[-1] if reasons else None

    def report_new(self, finding: Callable[[str, str, str, int], None]) -> int:
        """Pass each group of new breaks to `finding(kind, text, where, count)`. Return the number
        of new breaks."""
        size = len(self._reasons)
        # After a reset the list may have grown to any length. Without a reset, the entry read last
        # is still at its index.
        is_same_list = not self._read_count or (
            size >= self._read_count and self._reasons[self._read_count - 1] is self._last_read
        )
        start = self._read_count if is_same_list else 0
        self._read_count, self._last_read = size, self._reasons[size - 1] if size else None
        groups: dict[tuple[str, str], int] = {}
        for entry in self._reasons[start:size]:
            where = _where(entry)
            if where is not None:
                key = (break_reason(str(entry.reason)), where)
                groups[key] = groups.get(key, 0) + 1
        for (text, where), count in groups.items():
            finding("graph_break", text, where, count)
        return size - start


def _where(entry: Any) -> str | None:
    """Return the place in the user's code; None for torch's optimizers, which break on purpose."""
    stack = getattr(entry, "user_stack", None) or []
    if any("/torch/optim/" in frame.filename.replace("\\", "/") for frame in stack):
        return None
    place = find_user_place(
        (frame.filename, frame.lineno or 0, frame.name) for frame in reversed(stack)
    )
    return str(place) if place else ""
