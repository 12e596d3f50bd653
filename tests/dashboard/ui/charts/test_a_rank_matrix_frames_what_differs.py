"""The rank matrix shows compilations by rank and time, frames the cells of diverged ranks, and
stays short for a job of any size."""

from __future__ import annotations

import pytest

from dashboard.ui.charts.rank_matrix import RankTimeline, draw_rank_matrix


def timeline(rank: int, compiled: list[float], first: int = 900, last: int = 1023) -> RankTimeline:
    return RankTimeline(rank, first, last, compiled)


def test_a_cell_counts_the_compilations_so_far_and_a_cell_without_a_report_is_empty() -> None:
    ranks = [timeline(0, [1001.5, 1010.2]), timeline(1, [1001.5], first=1005, last=1015)]
    matrix = draw_rank_matrix(ranks, odd=[], since=1010, now=1023)
    assert matrix is not None and matrix.step == 1 and len(matrix.minutes) == 24
    first, second = ([cell.text for cell in row.cells] for row in matrix.rows)
    assert first == ["0", *["1"] * 9, *["2"] * 14]
    assert second[:5] == [""] * 5 and second[5:16] == ["1"] * 11 and second[16:] == [""] * 8


def test_only_cells_of_diverged_ranks_are_framed() -> None:
    ranks = [timeline(rank, [1000.5, *([1012.0] if rank == 2 else [])]) for rank in range(4)]
    ranks[3] = timeline(3, [1000.5, 1000.9])
    matrix = draw_rank_matrix(ranks, odd=[2], since=1012, now=1023)
    assert matrix is not None and [row.odd for row in matrix.rows] == [False, False, True, False]
    assert sum(cell.odd for row in matrix.rows for cell in row.cells) == 12
    assert [cell.text for cell in matrix.rows[2].newest_first] == ["2"] * 8
    assert matrix.newest_first == list(range(1023, 1015, -1))


@pytest.mark.parametrize(
    ("size", "odd", "rows"), [(16, 1, 16), (17, 1, 4), (1024, 3, 6), (64, 20, 15)]
)
def test_a_large_job_shows_its_odd_ranks_and_a_summary(size: int, odd: int, rows: int) -> None:
    ranks = [timeline(rank, [1000.5]) for rank in range(size)]
    matrix = draw_rank_matrix(ranks, odd=range(odd), since=1010, now=1023)
    assert matrix is not None and len(matrix.rows) == rows and matrix.ranks == size
    if size > 16:
        assert "ranks)" in matrix.rows[-1].label or "others" in matrix.rows[-1].label


def test_a_summary_shows_the_range_of_different_values() -> None:
    ranks = [timeline(rank, [1000.5] * (1 + (rank == 30))) for rank in range(40)]
    matrix = draw_rank_matrix(ranks, odd=[0], since=1010, now=1023)
    assert matrix is not None and matrix.rows[-1].cells[-1].text == "1–2"


def test_an_old_divergence_has_wider_columns_and_no_rank_has_no_matrix() -> None:
    matrix = draw_rank_matrix([timeline(0, [], last=2000)], odd=[0], since=1000, now=2000)
    assert matrix is not None and matrix.step == 43 and len(matrix.minutes) == 24
    assert matrix.minutes[-1] == 2000
    assert draw_rank_matrix([], odd=[], since=1, now=2) is None
