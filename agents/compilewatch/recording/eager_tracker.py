"""Eager tracker: which calls run eager from now on, and why.

Torch marks single frames as eager, and the regions around a frame follow. A command or a setting
makes the whole process eager."""

from __future__ import annotations

from compilewatch.recording.runtime_names import TORCH_COMPILE, usual_runtime
from compilewatch.recording.series_buffer import SeriesBuffer
from compilewatch.wire.messages import EAGER_CAUSES, Fact


class EagerTracker:
    """Eager fallbacks of this process, the nesting of regions, and the regions that compiled
    code."""

    def __init__(self) -> None:
        self.buffers: list[SeriesBuffer] = []
        """All buffers. Each one is updated when an eager fallback changes."""
        self.frames: dict[str, Fact] = {}
        """The reported fact of each frame."""
        self._cause_by_region: dict[str, str] = {}
        self._outer_region: dict[str, str] = {}
        self._compiled_regions: set[str] = set()
        self._graphless_regions: set[str] = set()
        self._process_cause, self._overrides_regions = "", False

    def record_nesting(self, inner: str, outer: str) -> None:
        """Records that a call of region `inner` ran inside a call of `outer`."""
        if inner != outer:
            self._outer_region.setdefault(inner, outer)

    def record_compile(self, region: str | None) -> None:
        """Records a compilation in the region, and so in the regions around it."""
        previous_count = len(self._compiled_regions)
        self._compiled_regions.update(self.enclosing_regions(region))
        if len(self._compiled_regions) > previous_count:
            self._update_buffers()

    def record_fallback(self, fact: Fact, region: str | None) -> bool:
        """Records the eager fallback of the frame, of its region and of the regions around it.
        True if it is new."""
        frame, cause = fact.data["frame"], _check_cause(fact.data["cause"])
        previous = self.frames.get(frame)
        if region:
            for name in self.enclosing_regions(region):
                self._cause_by_region.setdefault(name, cause)
        self._update_buffers()
        if previous is not None and previous.data["cause"] == cause:
            return False
        self.frames[frame] = fact
        return True

    def record_no_graph(self, region: str | None) -> None:
        """Records that code without a graph ran in the region, and so in the regions around it."""
        if region and region not in self._graphless_regions:
            self._graphless_regions.update(self.enclosing_regions(region))
            self._update_buffers()

    def clear_fallbacks(self) -> None:
        """Clears the eager fallback of every frame after a reset of torch."""
        self._graphless_regions.clear()
        self.frames.clear()
        self._cause_by_region.clear()
        self._update_buffers()

    def set_process_cause(self, cause: str, overrides: bool) -> None:
        """Marks the whole process as eager until `cause` is empty.

        With `overrides`, the cause of the process takes precedence over the causes of single
        regions."""
        self._process_cause, self._overrides_regions = (
            _check_cause(cause) if cause else "",
            overrides,
        )
        self._update_buffers()

    def _update_buffers(self) -> None:
        for buffer in list(self.buffers):
            self.update_buffer(buffer)

    def update_buffer(self, buffer: SeriesBuffer) -> None:
        """Sets the cause under which calls of the buffer without a guard hit are counted.
        Unknown without a cause."""
        buffer.set_eager_cause(buffer.spec.eager_cause or self._find_cause(buffer))

    def _find_cause(self, buffer: SeriesBuffer) -> str:
        region_cause = self._cause_by_region.get(buffer.region.name, "")
        process_cause = (
            self._process_cause if self._process_cause and self._reaches_compiler(buffer) else ""
        )
        graphless_cause = "no_graph" if buffer.region.name in self._graphless_regions else ""
        return (
            process_cause or region_cause
            if self._overrides_regions
            else region_cause or process_cause
        ) or graphless_cause

    def _reaches_compiler(self, buffer: SeriesBuffer) -> bool:
        """True if calls of the buffer would otherwise run compiled code.

        A stance changes nothing for a function that never reaches the compiler. While compiling
        is disabled, this is unknown: the agent assumes that a watched callable was meant to be
        compiled."""
        spec = buffer.spec
        is_compiled = spec.runtime == TORCH_COMPILE or buffer.region.name in self._compiled_regions
        return is_compiled or (
            self._process_cause == "disabled"
            and (spec.runtime or spec.observed_runtime or usual_runtime()) == TORCH_COMPILE
        )

    def enclosing_regions(self, region: str | None) -> list[str]:
        """The region and the regions around it."""
        regions: list[str] = []
        while region and region not in regions:
            regions.append(region)
            region = self._outer_region.get(region)
        return regions


def _check_cause(cause: str) -> str:
    if cause not in EAGER_CAUSES:
        raise ValueError(f"unknown cause {cause!r}")
    return cause
