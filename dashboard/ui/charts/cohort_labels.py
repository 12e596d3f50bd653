"""Names of cohorts (stratum and shape bucket): short names next to each other, with the common
parts stated once."""

from __future__ import annotations

import re
from collections.abc import Iterable

PARTS = re.compile(r" · |, ")


def format_cohort(stratum: str, bucket: str) -> str:
    """Stratum and shape bucket as text."""
    return (
        ", ".join(part for part in (stratum, f"shapes {bucket}" if bucket else "") if part)
        or "all calls"
    )


def shorten_cohorts(names: Iterable[str]) -> tuple[dict[str, str], str]:
    """Each name without the common parts, and the common parts; a name that would be empty keeps
    its first part."""
    parts = {name: PARTS.split(name) for name in names}
    if not parts:
        return {}, ""
    shared = set.intersection(*(set(each) for each in parts.values()))
    short = {}
    for name, each in parts.items():
        own = [part for part in each if part not in shared] or each[:1]
        short[name] = ", ".join(part.removeprefix("NVIDIA ") for part in own)
    if len(set(short.values())) < len(short):
        return {name: name for name in parts}, ""
    first = next(iter(parts.values()))
    said = ", ".join(
        part for part in first if part in shared and part not in short[next(iter(parts))]
    )
    return short, said
