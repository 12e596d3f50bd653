"""Two processes with one instance id, as a copied state leaves them: the dashboard refuses one
process, which continues under another id."""

from __future__ import annotations

from compilewatch.export.outbox import Outbox
from compilewatch.export.sender import Sender
from compilewatch.export.transport import Answer
from compilewatch.wire.ack import Ack, Rejected
from compilewatch.wire.codec import loads
from compilewatch.wire.messages import Identity, Report

from tests.agent.export.spool.collector import Collector

IDENTITY = Identity("x" * 26, 0.0, "m", "1")


def filled(*numbers: int) -> Outbox:
    outbox = Outbox()
    for number in numbers:
        outbox.add(Report((number, number), (0.0, float(number))))
    return outbox


def answered(outbox: Outbox, ack: Ack, *, renews: bool = True) -> Sender:
    dashboard = Collector()
    dashboard.answers = [Answer(200, ack=ack)]
    sender = Sender(dashboard, outbox, renews=renews)
    assert sender.attempt(IDENTITY)
    return sender


def test_a_contested_window_waits_for_another_id_with_numbers_from_one() -> None:
    outbox = filled(7, 8, 9)
    sender = answered(
        outbox,
        Ack(
            [(8, 8)],
            9,
            rejected=[Rejected((7, 7), "range_conflict"), Rejected((9, 9), "partial_overlap")],
        ),
    )
    assert outbox.renewable and not outbox.next_batch()
    assert outbox.renumber() == 2
    assert [(loads(Report, entry.body).seq, entry.end) for entry in outbox.next_batch()] == [
        ((1, 1), 7.0),
        ((2, 2), 9.0),
    ]
    assert outbox.rejected_windows == 0 and sender.refusals["rejected: range_conflict"] == 1


def test_a_window_with_a_lost_answer_is_settled_under_the_earlier_id_first() -> None:
    outbox = filled(1, 2)
    outbox.next_batch()
    answered(outbox, Ack([], 1, rejected=[Rejected((1, 1), "range_conflict")]))
    assert not outbox.renewable and [entry.seq for entry in outbox.next_batch()] == [(2, 2)]
    outbox.acknowledge([(2, 2)])
    assert outbox.renewable


def test_a_restored_process_sends_its_pending_windows_like_the_original() -> None:
    outbox = filled(3)
    outbox.mark_copied()
    outbox.add(Report((4, 4), (0.0, 4.0)))
    assert [entry.seq for entry in outbox.next_batch()] == [(3, 3)]
    outbox.acknowledge([(3, 3)])
    assert outbox.renewable and outbox.renumber() == 1


def test_windows_that_a_dead_process_left_are_refused_and_counted() -> None:
    outbox = filled(1)
    answered(outbox, Ack([], 1, rejected=[Rejected((1, 1), "range_conflict")]), renews=False)
    assert not len(outbox) and outbox.rejected_windows == 1
