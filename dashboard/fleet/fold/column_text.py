"""Column text: printable text within a column's length.

A long name keeps its start and ends with a hash of the whole name, so that names remain distinct.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from compilewatch.wire.clip import clip

from dashboard.common.unicode_safety import visible_name, visible_text


@lru_cache(maxsize=10_000)
def clip_name(text: str, limit: int) -> str:
    """Clip a name that is part of a key: two different names remain different."""
    clean = visible_name(clip(text, max(len(text), 1)))
    if len(clean) <= limit:
        return clean
    return f"{clean[: limit - 9]}~{hashlib.blake2b(clean.encode(), digest_size=4).hexdigest()}"


def clip_label(text: str, limit: int) -> str:
    """Clip text for display only."""
    return clip(visible_text(text), limit)
