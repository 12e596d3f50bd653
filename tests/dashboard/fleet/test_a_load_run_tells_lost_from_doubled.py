"""The books of a load run hold instance by instance: one report lost and another counted twice do
not cancel."""

from __future__ import annotations

from tests.bench.line_books import Books, books_close, others_of


def test_what_is_lost_and_what_is_doubled_do_not_cancel() -> None:
    acked = {"a": 5, "b": 5, "c": 5}
    books = books_close(acked=acked, taken=acked, folded={"a": 4, "b": 6, "c": 5}, others=0)
    assert books == Books(lost=1, doubled=1, unanswered=0)
    assert not books.balanced


def test_an_answer_that_was_cut_off_is_neither() -> None:
    books = books_close(
        acked={"a": 5, "b": 5}, taken={"a": 6, "b": 5}, folded={"a": 6, "b": 5}, others=0
    )
    assert books == Books(lost=0, doubled=0, unanswered=1)
    assert books.balanced


def test_what_was_acknowledged_and_is_not_durable_is_lost() -> None:
    assert books_close(acked={"a": 5, "b": 1}, taken={"a": 4}, folded={"a": 4}, others=0) == Books(
        lost=2, doubled=0, unanswered=0
    )


def test_of_instances_without_room_the_sum_is_held_against_their_common_name() -> None:
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
