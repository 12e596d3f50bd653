"""Start-up log parser: durations of compilation and graph capture from vLLM and SGLang logs. Pure
code."""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_LINES = 200_000
MAX_STAGE_S = 86_400.0
_SECONDS = r"(?P<seconds>[\d.]+)"
_STAGES = (
    # vLLM; newer releases name the compiled part.
    (
        "torch.compile",
        re.compile(
            r"(?:\[(?P<part>\w+)\] )?torch\.compile(?: and [\w /]+)? (?:takes|took) "
            rf"{_SECONDS} s in total"
        ),
    ),
    (
        "CUDA graphs",
        re.compile(rf"(?:(?P<part>Encoder) g|G)raph capturing finished in {_SECONDS} secs?\b"),
    ),
    ("engine init", re.compile(rf"init engine \([^)]*\) took {_SECONDS} s")),
    # SGLang; newer releases name the runner, and for some runners the batch sizes.
    ("CUDA graphs", re.compile(rf"Capture cuda graph end\. Time elapsed: {_SECONDS} s")),
    (
        "CUDA graphs",
        re.compile(
            r"Capture (?P<part>[\w -]*)(?:CUDA|CPU|NPU) graph end\. (?:bs=\[[^\]]*\], "
            rf")?elapsed={_SECONDS} s"
        ),
    ),
)


def stages_read(lines: Iterable[str]) -> dict[str, float]:
    """Seconds per stage. Ranks work in parallel and each logs its own time, so the longest counts.
    Parts of a model (backbone, draft, encoder) run in sequence and add up. Other lines are ignored.
    """
    found: dict[str, dict[str, float]] = {}
    for number, line in enumerate(lines):
        if number >= MAX_LINES:
            break
        for name, pattern in _STAGES:
            match = pattern.search(line[:4000])
            if match and (seconds := _parse_seconds(match["seconds"])) is not None:
                parts, part = found.setdefault(name, {}), match.groupdict().get("part") or ""
                parts[part] = max(seconds, parts.get(part, 0.0))
    return {
        name: round(sum(found[name].values()), 6)
        for name in dict.fromkeys(name for name, _ in _STAGES)
        if name in found
    }


def _parse_seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 <= seconds <= MAX_STAGE_S else None
