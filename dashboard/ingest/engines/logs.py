"""Start-up lines of vLLM and SGLang that say how long compiling and graph capture took; pure code."""

from __future__ import annotations

import re
from collections.abc import Iterable

MOST_LINES = 200_000
LONGEST = 86_400.0
_STAGES = (
    ("torch.compile", re.compile(r"torch\.compile takes ([\d.]+) s in total")),
    ("CUDA graphs", re.compile(r"Graph capturing finished in ([\d.]+) secs?\b")),
    ("CUDA graphs", re.compile(r"Capture cuda graph end\. Time elapsed: ([\d.]+) s")),
    ("CUDA graphs", re.compile(r"Capture [\w ]*CUDA graph end\. elapsed=([\d.]+) s")),
    ("engine init", re.compile(r"init engine \([^)]*\) took ([\d.]+) s")),
)


def stages_read(lines: Iterable[str]) -> dict[str, float]:
    """Seconds a stage; ranks work at the same time and each says its own, so the longest one counts. Other lines are passed over."""
    found: dict[str, float] = {}
    for number, line in enumerate(lines):
        if number >= MOST_LINES:
            break
        for name, pattern in _STAGES:
            match = pattern.search(line[:2000])
            if match and (seconds := _seconds(match[1])) is not None:
                found[name] = max(seconds, found.get(name, 0.0))
    return found


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 <= seconds <= LONGEST else None
