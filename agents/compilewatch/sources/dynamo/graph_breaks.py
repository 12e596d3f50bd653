"""Graph breaks: the new tail of torch's list of reasons, grouped by text and place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compilewatch.sources.dynamo.scrubber import break_reason
from compilewatch.sources.dynamo.user_frames import user_place


class BreakList:
    """Follows `torch._dynamo.utils.graph_break_reasons`, which only grows until a reset empties it."""

    def __init__(self, reasons: Sequence[Any]) -> None:
        self._reasons = reasons
        self._seen = len(reasons)
        self._last = reasons[-1] if reasons else None

    def tell(self, finding: Callable[[str, str, str, int], None]) -> int:
        """Hands each group of breaks that is new since the last call to `finding(kind, text, where, count)`; answers how many broke."""
        size = len(self._reasons)
        # After a reset the list may have grown back to any length: it is the same one only if the entry told last still stands there.
        same = not self._seen or (
            size >= self._seen and self._reasons[self._seen - 1] is self._last
        )
        start = self._seen if same else 0
        self._seen, self._last = size, self._reasons[size - 1] if size else None
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
    """The place in the user's code; None for torch's own optimizers, which break on purpose."""
    stack = getattr(entry, "user_stack", None) or []
    if any("/torch/optim/" in frame.filename.replace("\\", "/") for frame in stack):
        return None
    place = user_place((frame.filename, frame.lineno or 0, frame.name) for frame in reversed(stack))
    return str(place) if place else ""
