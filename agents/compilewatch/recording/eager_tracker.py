"""Which calls run eager from now on, and why: torch latches frames, the regions around them follow, and a process may be told to."""

from __future__ import annotations

from compilewatch.recording.runtime_names import TORCH_COMPILE, usual_runtime
from compilewatch.recording.series_buffer import Line
from compilewatch.wire.messages import EAGER_CAUSES, Fact


class LatchedRegions:
    """What has latched in this process, which region was last seen around which, and in which something was compiled."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        """All lines, each pointed again when what is known changes."""
        self.frames: dict[str, Fact] = {}
        """What was told of each frame."""
        self._regions: dict[str, str] = {}
        self._around: dict[str, str] = {}
        self._compiled: set[str] = set()
        self._graphless: set[str] = set()
        self._everywhere, self._overrides = "", False

    def note(self, inner: str, outer: str) -> None:
        """A call of the region `inner` was seen inside one of `outer`."""
        if inner != outer:
            self._around.setdefault(inner, outer)

    def compiled_in(self, region: str | None) -> None:
        """Something was compiled in the region, and so in those around it."""
        known = len(self._compiled)
        self._compiled.update(self.with_outer(region))
        if len(self._compiled) > known:
            self._repoint()

    def latch(self, fact: Fact, region: str | None) -> bool:
        """The fact's frame, and the region it latched in with those around it. True if it is news."""
        frame, cause = fact.data["frame"], _known(fact.data["cause"])
        before = self.frames.get(frame)
        if region:
            for name in self.with_outer(region):
                self._regions.setdefault(name, cause)
        self._repoint()
        if before is not None and before.data["cause"] == cause:
            return False
        self.frames[frame] = fact
        return True

    def without_graph(self, region: str | None) -> None:
        """Code without a graph ran in the region, and so in those around it."""
        if region and region not in self._graphless:
            self._graphless.update(self.with_outer(region))
            self._repoint()

    def unlatch(self) -> None:
        """Every frame: torch was reset."""
        self._graphless.clear()
        self.frames.clear()
        self._regions.clear()
        self._repoint()

    def everywhere(self, cause: str, overrides: bool) -> None:
        """The whole process runs eager, until the cause is empty; what overrides stands before what is known of single regions."""
        self._everywhere, self._overrides = _known(cause) if cause else "", overrides
        self._repoint()

    def _repoint(self) -> None:
        for line in list(self.lines):
            self.point(line)

    def point(self, line: Line) -> None:
        """From now on, calls of the line that hit no guard count by their cause, or as unknown where nobody said one."""
        line.point(line.spec.eager or self._cause_of(line))

    def _cause_of(self, line: Line) -> str:
        own = self._regions.get(line.region.name, "")
        whole = self._everywhere if self._everywhere and self._concerns(line) else ""
        bare = "no_graph" if line.region.name in self._graphless else ""
        return (whole or own if self._overrides else own or whole) or bare

    def _concerns(self, line: Line) -> bool:
        """Whether the line's calls would run compiled: a stance changes nothing for a function that never meets the compiler. Where
        compiling is off nobody can tell, and what is watched is taken for what was meant to be compiled."""
        spec = line.spec
        told = spec.runtime == TORCH_COMPILE or line.region.name in self._compiled
        return told or (
            self._everywhere == "disabled"
            and (spec.runtime or spec.ran or usual_runtime()) == TORCH_COMPILE
        )

    def with_outer(self, region: str | None) -> list[str]:
        """The region and those around it."""
        found: list[str] = []
        while region and region not in found:
            found.append(region)
            region = self._around.get(region)
        return found


def _known(cause: str) -> str:
    if cause not in EAGER_CAUSES:
        raise ValueError(f"unknown cause {cause!r}")
    return cause
