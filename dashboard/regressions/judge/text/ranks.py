"""Rank text: describes how some ranks differ from the others. Names of frames come from the agent
and are only escaped."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.regressions.judge.rank_divergence import Divergence
from dashboard.vocabulary.numbers import SPACE

MAX_RANKS_NAMED, MAX_GRAPHS_NAMED = 6, 2
KEY_CHARS = 9
"""Number of characters that distinguish keys and identify a cache folder."""


def describe_divergence(one: Divergence) -> str:
    """One sentence without a full stop; it begins with the ranks."""
    who = _ranks(one.ranks)
    others = f"the {_plural(one.others, 'other')}" if one.others else "the others"
    where = f" in stage {one.stage}" if one.stage else ""
    single = len(one.ranks) == 1
    if one.kind == "eager":
        return (
            f"{who} run{'s' if single else ''} eager{where} while "
            f"{_plural(one.others, 'rank')} run compiled"
        )
    if one.kind == "limit":
        return (
            f"{who} fell back to eager for `{one.about}`{where} and {others} did not: a "
            "collective inside can hang"
        )
    if one.kind == "cache":
        return (
            f"{who} missed the caches for `{one.about}`{where} and {others} did not: the slow "
            "start of these ranks delays the job"
        )
    if one.kind == "graph":
        graphs = ", ".join(map(format_key, one.graphs[:MAX_GRAPHS_NAMED]))
        more = ", …" if len(one.graphs) > MAX_GRAPHS_NAMED else ""
        asked = f" ({graphs}{more})" if one.graphs else ""
        usual = f" ({format_key(one.usual_graph)})" if one.usual_graph else ""
        return (
            f"{who} requested a different graph of `{one.about}`{asked} from the caches than "
            f"{others}{usual}{where}"
        )
    if one.kind == "straggler":
        return (
            f"{who} {'is' if single else 'are'} behind with `{one.about}`{where}: {others} "
            "have compiled it"
        )
    more = "more" if one.kind == "more" else "fewer"
    times = _plural(abs(one.count - one.usual), f"{more} time")
    return (
        f"{who} compiled `{one.about}` {times} than {others}{where}: a collective inside can hang"
    )


def format_key(key: str) -> str:
    """The beginning of a key, as code."""
    return f"`{key[:KEY_CHARS]}`"


def _ranks(ranks: Sequence[int]) -> str:
    """Rank 3; ranks 1, 2 and 5; 12 ranks."""
    if len(ranks) == 1:
        return f"Rank {ranks[0]}"
    if len(ranks) > MAX_RANKS_NAMED:
        return _plural(len(ranks), "rank")
    return f"Ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"


def _plural(count: int, one: str) -> str:
    return f"{count:,}{SPACE}{one if count == 1 else one + 's'}"
