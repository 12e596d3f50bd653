"""Text that fits its column, shows all it holds, and stays distinct: long names keep their start
and gain a hash of the whole."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from compilewatch.wire.clip import clip

from dashboard.common.unicode_safety import visible_name, visible_text


@lru_cache(maxsize=10_000)
def clip_name(text: str, limit: int) -> str:
    """A name that is part of a key: two different names stay different when they are cut."""
    clean = visible_name(clip(text, max(len(text), 1)))
    if len(clean) <= limit:
        return clean
    return f"{clean[: limit - 9]}~{hashlib.blake2b(clean.encode(), digest_size=4).hexdigest()}"


def clip_label(text: str, limit: int) -> str:
    """Text that is only shown."""
    return clip(visible_text(text), limit)
