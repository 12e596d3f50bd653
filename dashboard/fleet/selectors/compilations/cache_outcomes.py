"""What of the stored compilations is a compilation, and what the caches answered to it: the one
definition that all queries use.

Recordings of CUDA graphs come as compilations do, and are none. A compilation that failed left
nothing for a cache to hold: what it asked for counts neither as a hit nor as a miss. Of the two
caches that hold a graph one miss is enough: torch compiles that part once more."""

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
    """The same of one compilation: hit, miss, bypass, or empty where no cache answered."""
    return cache_answer(event.kind, event.outcome, (event.cache_fx, event.cache_aot))
