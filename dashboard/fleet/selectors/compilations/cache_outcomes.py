"""Cache outcomes: definitions of compilation, cache lookup, hit and miss for all queries.

CUDA graph recordings are stored as compilations, but do not count. A failed compilation leaves no
cache entry, so its lookups count neither as hits nor as misses. Two caches hold a graph; a miss in
one of them makes a miss, because torch compiles that part again.
"""

from __future__ import annotations

from django.db.models import Q

from dashboard.fleet.fold.process import RECORDING, SUCCESS_OUTCOME, cache_answer
from dashboard.fleet.models import CompileEvent

COMPILATION = ~Q(kind=RECORDING)
CACHE_LOOKUP = COMPILATION & Q(outcome=SUCCESS_OUTCOME)
MISS = CACHE_LOOKUP & (Q(cache_fx="miss") | Q(cache_aot="miss"))
HIT = (
    CACHE_LOOKUP
    & (Q(cache_fx="hit") | Q(cache_aot="hit"))
    & ~(Q(cache_fx="miss") | Q(cache_aot="miss"))
)


def derive_cache_answer(event: CompileEvent) -> str:
    """Return hit, miss, bypass, or empty where no cache answered."""
    return cache_answer(event.kind, event.outcome, (event.cache_fx, event.cache_aot))
