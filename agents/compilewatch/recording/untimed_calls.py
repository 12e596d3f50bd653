"""Untimed calls: finds calls in progress that hold a skip token, by walking the frames of all
threads.

An untimed call records nothing when it starts and has no end hook; that makes it cheap. Rare
events, such as a compilation, find it by its frame instead. The wrapper's code object is in
`SKIPPING_CODE`, and its local variable `skip_token` refers to the `Sampling` of the region.

Overlap attribution: `CompileOverlaps` records the untimed calls in progress when a compilation
starts. `scan` removes calls that ended before the compilation; they count as steady calls. When the
last compilation ends, the remaining calls have waited for it. The next collection after the end of
such a call adds the call to the warm-up or stalled list, with the overlap as its duration. A call
that raises in between is counted as an error instead.

Invariants. A call is counted once: `dict.pop` decides which thread takes an overlap, as one step of
the interpreter under the GIL. A snapshot of frames is cleared before return: a frame kept in a
variable refers to itself and keeps the arguments alive until the garbage collector runs. Before
Python 3.13, reading `f_locals` copies the locals of the frame (PEP 667); this walk pays for the
copy, not a call.

Cost: one walk of all stacks per compilation and per flush of the counts, once a region was
sampled. Source: the conservative stack scan of garbage collectors, applied to frames."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from types import CodeType, FrameType
from typing import TypeVar

from compilewatch.recording.buffer_types import Buffer, UntimedSampling

T = TypeVar("T", bound=Buffer)

MAX_COMPILE_SECONDS = 86400.0
"""Maximum accepted duration of a compilation in a record."""
SKIPPING_CODE: set[CodeType] = set()
"""Code objects of wrappers that take tokens. A frame of such code that holds a token is an
untimed call."""


def find_untimed_in(frame: FrameType | None) -> list[UntimedSampling]:
    """The sampling states of the untimed calls in this stack, innermost first."""
    samplings: list[UntimedSampling] = []
    while frame is not None:
        if frame.f_code in SKIPPING_CODE:
            frame_locals = frame.f_locals
            if "skip_token" in frame_locals:
                samplings.append(frame_locals["skip_token"])
        frame = frame.f_back
    return samplings


def find_untimed_calls() -> dict[int, list[UntimedSampling]]:
    """The sampling states of untimed calls in all threads, by thread ID.

    Keeps no frame. A frame in a variable would refer to itself and keep all arguments until the
    garbage collector runs."""
    by_thread: dict[int, list[UntimedSampling]] = {}
    frame, frames = None, sys._current_frames()
    own_frame = sys._getframe()
    try:
        for thread, frame in frames.items():
            samplings = find_untimed_in(frame)
            if samplings:
                # With greenlets, a thread has a different ID here than in its own calls.
                by_thread[threading.get_ident() if frame is own_frame else thread] = samplings
    finally:
        frames.clear()
        del frame, own_frame
    return by_thread


def find_innermost(recorded_buffer: Buffer | None, frame: FrameType | None) -> Buffer | None:
    """The buffer of the innermost watched call in this stack. `recorded_buffer` is the
    buffer of the innermost recorded call."""
    samplings = find_untimed_in(frame)
    if not samplings or samplings[0].buffer is None:
        return recorded_buffer
    if recorded_buffer is None or samplings[0].is_nested:
        return samplings[0].buffer
    # A region that is never nested encloses the recorded call.
    samplings[0].buffer.record_nested_call()
    return recorded_buffer


class CompileOverlap:
    """An untimed call that overlaps a compilation."""

    __slots__ = ("buffer", "sampling", "seconds", "since", "target_list", "thread")

    def __init__(
        self, thread: int, sampling: UntimedSampling, buffer: Buffer, since: float
    ) -> None:
        self.thread, self.sampling, self.buffer, self.since = thread, sampling, buffer, since
        self.target_list: list[float] = []
        """The list for the call and the seconds of overlap, set when the compilation ends."""
        self.seconds = 0.0


class CompileOverlaps:
    """Untimed calls that overlap a compilation. Each one is counted by the first collection
    after its end."""

    def __init__(self) -> None:
        self._ids = itertools.count()
        self._open_overlaps: dict[int, CompileOverlap] = {}
        self._ended_overlaps: dict[int, CompileOverlap] = {}
        """Calls whose compilation has ended."""

    def record_start(self, seconds: float) -> None:
        """Records that a compilation starts, or has ended on this thread unobserved after
        `seconds`."""
        now, own_thread = time.perf_counter(), threading.get_ident()
        # The seconds come from a clock that may be set during the compilation.
        since = now - seconds if 0.0 <= seconds <= MAX_COMPILE_SECONDS else now
        for thread, samplings in find_untimed_calls().items():
            for sampling in samplings:
                if sampling.buffer is not None:
                    sampling.corrections.append(1)
                    overlap = CompileOverlap(
                        thread, sampling, sampling.buffer, since if thread == own_thread else now
                    )
                    self._open_overlaps[next(self._ids)] = overlap

    def scan(self, calls: dict[int, list[UntimedSampling]]) -> None:
        """Removes calls that ended before the compilation. They did not wait and count as steady
        calls."""
        for overlap_id, overlap in list(self._open_overlaps.items()):
            if (
                overlap.sampling not in calls.get(overlap.thread, ())
                and self._open_overlaps.pop(overlap_id, None) is not None
            ):
                overlap.sampling.corrections.append(-1)

    def record_end(self, others: bool) -> None:
        """Records the end of a compilation. `others` is true while another compilation is
        running."""
        if others or not self._open_overlaps:
            return
        self.scan(find_untimed_calls())
        now = time.perf_counter()
        for overlap_id in list(self._open_overlaps):
            overlap = self._open_overlaps.pop(overlap_id, None)
            if overlap is not None:
                overlap.target_list, overlap.seconds = (
                    overlap.buffer.choose_waiting_list(overlap.since),
                    now - overlap.since,
                )
                self._ended_overlaps[overlap_id] = overlap

    def drop_failed(self, sampling: UntimedSampling) -> bool:
        """Drops the overlap of a call that raised on this thread. True if there was one."""
        own_thread = threading.get_ident()
        for calls in (self._open_overlaps, self._ended_overlaps):
            for overlap_id, overlap in list(calls.items()):
                if (
                    overlap.thread == own_thread
                    and overlap.sampling is sampling
                    and calls.pop(overlap_id, None) is not None
                ):
                    return True
        return False

    def count_ended(self) -> None:
        """Counts the calls that overlapped an ended compilation and have ended. Until its end, a
        call may fail."""
        calls = find_untimed_calls() if self._ended_overlaps else {}
        for overlap_id, overlap in list(self._ended_overlaps.items()):
            if (
                overlap.sampling not in calls.get(overlap.thread, ())
                and self._ended_overlaps.pop(overlap_id, None) is not None
            ):
                overlap.target_list.append(overlap.seconds)
