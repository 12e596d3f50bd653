"""Accounting of a load run per instance: a lost report and a report that is counted twice do not
cancel out."""

from __future__ import annotations

from tests.bench.line_books import Books, books_close, others_of


def test_a_lost_and_a_doubled_report_do_not_cancel_out() -> None:
    acked = {"a": 5, "b": 5, "c": 5}
    books = books_close(acked=acked, taken=acked, folded={"a": 4, "b": 6, "c": 5}, others=0)
    assert books == Books(lost=1, doubled=1, unanswered=0)
    assert not books.balanced


def test_a_report_whose_answer_was_cut_off_is_neither_lost_nor_doubled() -> None:
    books = books_close(
        acked={"a": 5, "b": 5}, taken={"a": 6, "b": 5}, folded={"a": 6, "b": 5}, others=0
    )
    assert books == Books(lost=0, doubled=0, unanswered=1)
    assert books.balanced


def test_an_acknowledged_report_that_is_not_durable_is_lost() -> None:
    assert books_close(acked={"a": 5, "b": 1}, taken={"a": 4}, folded={"a": 4}, others=0) == Books(
        lost=2, doubled=0, unanswered=0
    )


def test_instances_beyond_the_limit_are_compared_by_the_sum_of_their_common_name() -> None:
    folded = {"a": 5, "other-1": 7, "other-2": 3}
    acked = {"a": 5, "b": 4, "c": 3}
    assert others_of(folded) == 10
    assert books_close(
        acked=acked, taken=acked, folded=folded, others=others_of(folded) - 3
    ).balanced
    assert books_close(acked=acked, taken=acked, folded=folded, others=6) == Books(
        lost=1, doubled=0, unanswered=0
    )
    assert books_close(acked=acked, taken=acked, folded=folded, others=8) == Books(
        lost=0, doubled=1, unanswered=0
    )
