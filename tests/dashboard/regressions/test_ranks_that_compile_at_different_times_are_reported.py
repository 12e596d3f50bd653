"""Comparison of a job's ranks: a compilation on one rank alone is confirmed, a late compilation is
not, and declared stages may differ."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.regressions.judge.rank_divergence import (
    Divergence,
    Rank,
    RankCompilation,
    find_divergences,
)
from dashboard.regressions.judge.text.ranks import describe_divergence

NOW = 1_000_000.0


def compiled(
    ago: float, kind: str = "first", frame: str = "step", cache: str = "hit", key: str = "k"
) -> RankCompilation:
    return RankCompilation(NOW - ago, frame, "train.py:8", kind, "ok", key, cache)


def job(size: int, *events: RankCompilation) -> list[Rank]:
    return [Rank(number, NOW, events) for number in range(size)]


def kinds(found: list[Divergence]) -> list[tuple[str, tuple[int, ...], bool]]:
    return [(one.kind, one.ranks, one.certain) for one in found]


@given(
    st.integers(2, 9),
    st.lists(
        st.builds(compiled, st.floats(0, 500), st.sampled_from(["first", "recompile", "backward"]))
    ),
)
def test_ranks_with_the_same_compilations_do_not_diverge(
    size: int, events: list[RankCompilation]
) -> None:
    assert find_divergences(job(size, *events)) == []


@given(st.integers(3, 9), st.integers(0, 8), st.floats(3, 500))
def test_a_recompilation_on_one_rank_alone_is_confirmed(size: int, which: int, ago: float) -> None:
    ranks = job(size, compiled(600))
    alone = which % size
    ranks[alone] = replace(ranks[alone], compiled=(compiled(600), compiled(ago, "recompile")))
    [found] = find_divergences(ranks)
    assert (found.kind, found.ranks, found.others, found.certain, found.count, found.usual) == (
        "more",
        (alone,),
        size - 1,
        True,
        2,
        1,
    )
    assert found.at == NOW - ago and found.about == "step (train.py:8)"


def test_a_compilation_that_others_may_not_have_reported_yet_is_no_difference() -> None:
    ranks = job(4, compiled(600))
    ranks[0] = Rank(0, NOW + 9, (compiled(600), compiled(-5, "recompile")))
    assert find_divergences(ranks) == []
    assert kinds(find_divergences([replace(rank, seen_until=NOW + 9) for rank in ranks])) == [
        ("more", (0,), True)
    ]


def test_a_rank_that_still_compiles_is_behind_and_has_not_diverged() -> None:
    ranks = job(4, compiled(60))
    ranks[2] = Rank(2, NOW, (), "step", 71.0)
    assert kinds(find_divergences(ranks)) == [("straggler", (2,), False)]
    ranks[2] = Rank(2, NOW, (), "another", 71.0)
    assert kinds(find_divergences(ranks)) == [("fewer", (2,), True)]


def test_one_eager_rank_among_compiled_ones_is_confirmed() -> None:
    ranks = [replace(rank, eager_share=0.0) for rank in job(4, compiled(60))]
    ranks[3] = replace(ranks[3], eager_share=0.97)
    assert kinds(find_divergences(ranks)) == [("eager", (3,), True)]
    assert find_divergences([replace(rank, eager_share=0.97) for rank in ranks]) == []


def test_a_minority_graph_is_confirmed_and_a_cold_rank_is_only_reported() -> None:
    ranks = job(4, compiled(60))
    ranks[1] = Rank(1, NOW, (compiled(60, cache="miss", key="other"),))
    assert kinds(find_divergences(ranks)) == [("graph", (1,), True), ("cache", (1,), False)]
    ranks[2] = Rank(2, NOW, (compiled(60, key="third"),))
    assert ("graph", (1, 2), False) in kinds(find_divergences(ranks)), (
        "two machines with two devices each, and no majority"
    )
    every = [Rank(number, NOW, (compiled(60, key=f"k{number}"),)) for number in range(4)]
    assert find_divergences(every) == [], "a key may hold the number of the device"


def test_another_graph_is_named_by_its_key() -> None:
    ranks = job(4, compiled(60, key="ausual0123456789"))
    ranks[3] = Rank(3, NOW, (compiled(60, key="aother0123456789"),))
    (found,) = find_divergences(ranks)
    assert describe_divergence(found) == (
        "Rank 3 requested a different graph of `step (train.py:8)` (`aother012`) from the caches "
        "than the 3\u00a0others (`ausual012`)"
    )
    many = [Rank(number, NOW, (compiled(60, key=f"k{number}"),)) for number in range(3)]
    (several,) = find_divergences(
        [*many, *(Rank(number, NOW, (compiled(60, key="most"),)) for number in range(3, 8))]
    )
    assert "(`k0`, `k1`, …) from the caches than the 5\u00a0others (`most`)" in describe_divergence(
        several
    )


@pytest.mark.parametrize(
    ("stages", "found"), [(("", ""), [("more", (0,), True)]), (("first", "second"), [])]
)
def test_declared_stages_may_differ(stages: tuple[str, str], found: list[object]) -> None:
    first = [
        Rank(number, NOW, (compiled(60), compiled(50, "recompile")), stage=stages[0])
        for number in (0,)
    ]
    second = [Rank(number, NOW, (compiled(60),), stage=stages[1]) for number in (1, 2)]
    assert kinds(find_divergences([*first, *second])) == found


def test_the_rank_that_starts_first_has_not_diverged_until_the_others_continue_without_it() -> None:
    early = [Rank(0, NOW, (compiled(20),)), Rank(1, NOW), Rank(2, NOW), Rank(3, NOW)]
    assert kinds(find_divergences(early)) == [("straggler", (1, 2, 3), False)]
    went_on = [
        early[0],
        *(replace(rank, compiled=(compiled(10, frame="other"),)) for rank in early[1:]),
    ]
    assert ("fewer", (1, 2, 3), True) in kinds(find_divergences(went_on))
    late = [Rank(0, NOW, (compiled(90),)), Rank(1, NOW), Rank(2, NOW), Rank(3, NOW)]
    assert kinds(find_divergences(late)) == [("fewer", (1, 2, 3), True)]


def test_the_first_of_all_ranks_that_recompile_together_has_not_diverged() -> None:
    ranks = job(3, compiled(300))
    ranks[0] = replace(ranks[0], compiled=(compiled(300), compiled(9, "recompile")))
    together = [
        ranks[0],
        *(replace(rank, compiling_frame="step", compiling_for=11.0) for rank in ranks[1:]),
    ]
    assert kinds(find_divergences(together)) == [("straggler", (1, 2), False)]
    assert kinds(find_divergences(ranks)) == [("more", (0,), True)]


def test_a_recompile_limit_on_one_rank_alone_is_confirmed() -> None:
    ranks = job(3, compiled(300))
    ranks[1] = replace(ranks[1], limits=("step",))
    assert kinds(find_divergences(ranks)) == [("limit", (1,), True)]
    assert find_divergences([replace(rank, limits=("step",)) for rank in ranks]) == []


def test_a_dead_rank_hides_no_difference() -> None:
    ranks = job(4, compiled(600))
    ranks[0] = replace(ranks[0], compiled=(compiled(600), compiled(60, "recompile")))
    ranks[3] = replace(ranks[3], seen_until=NOW - 500)
    assert kinds(find_divergences(ranks)) == [("more", (0,), True)]


@pytest.mark.parametrize("kind", ["recompile", "empty"])
def test_a_repeated_compilation_on_one_rank_alone_is_reported_with_or_without_a_graph(
    kind: str,
) -> None:
    ranks = job(2, compiled(600, "empty"))
    ranks[1] = replace(ranks[1], compiled=(compiled(600, "empty"), compiled(60, kind)))
    assert kinds(find_divergences(ranks)) == [("more", (1,), True)]


def test_frames_without_a_graph_on_all_ranks_are_no_difference() -> None:
    ranks = job(
        3, compiled(600, "empty", cache=""), compiled(500, "empty", cache="", frame="other")
    )
    assert find_divergences(ranks) == []
    recorded = replace(
        ranks[1], compiled=(*ranks[1].compiled, compiled(60, "cuda_graph", cache=""))
    )
    assert find_divergences([ranks[0], recorded, ranks[2]]) == [], (
        "recordings of CUDA graphs compile no frame"
    )
