"""The content of a recording of the agent, window by window."""

from __future__ import annotations

from pathlib import Path

from compilewatch.wire.codec import loads
from compilewatch.wire.messages import Compile, Request


def compilations(path: Path) -> list[Compile]:
    """All compilations in the recording, in their order."""
    requests = [loads(Request, line) for line in path.read_bytes().splitlines()]
    return [
        compilation
        for request in requests
        for report in request.reports
        for compilation in report.compiles
    ]
