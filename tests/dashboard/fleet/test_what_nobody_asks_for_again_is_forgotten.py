"""Who reports is worked out once and kept while it reports; processes that went leave nothing
behind."""

from __future__ import annotations

from compilewatch.wire.codec import dumps
from compilewatch.wire.messages import Identity

from dashboard.fleet.fold.decode import _clip_label, _decode_sender
from dashboard.fleet.fold.ttl_cache import TtlCache


class Asked:
    """Counts what it had to work out, beside a clock that is set by hand."""

    def __init__(self, most: int = 100) -> None:
        self.now = 0.0
        self.worked_out: list[str] = []
        self.answer = TtlCache(self._work_out, period=600.0, most=most, clock=lambda: self.now)

    def _work_out(self, question: str) -> str:
        self.worked_out.append(question)
        return question.upper()


def test_what_is_asked_all_along_is_worked_out_once() -> None:
    asked = Asked()
    for asked.now in range(0, 36_000, 10):
        assert asked.answer("a") == "A"
    assert asked.worked_out == ["a"]


def test_what_is_not_asked_for_two_periods_is_gone() -> None:
    asked = Asked()
    asked.answer("left")
    for asked.now in (0.0, 601.0, 1202.0):
        asked.answer("stays")
    assert len(asked.answer) == 1
    asked.answer("left")
    assert asked.worked_out == ["left", "stays", "left"]


def test_after_a_long_silence_nothing_is_left() -> None:
    asked = Asked()
    asked.answer("left")
    asked.now = 5000.0
    asked.answer("came")
    assert len(asked.answer) == 1


def test_processes_that_come_and_go_do_not_add_up() -> None:
    asked = Asked(most=10_000)
    sizes = []
    for minute in range(600):
        asked.now = 60.0 * minute
        for number in range(20):
            asked.answer(f"{minute} {number}")
        sizes.append(len(asked.answer))
    assert max(sizes) <= 20 * 22


def test_however_many_ask_at_once_there_is_a_limit() -> None:
    asked = Asked(most=100)
    for number in range(10_000):
        asked.answer(str(number))
        assert len(asked.answer) <= 200


def test_what_one_process_alone_says_of_itself_is_kept_by_nothing_else() -> None:
    def comes(number: int) -> None:
        identity = Identity(
            f"i-{number}",
            1.0,
            "ranker",
            "1",
            host=f"pod-{number}",
            capabilities={"caches": ("yes", "")},
        )
        _decode_sender(1, identity.id, dumps(identity))

    comes(0)
    before = _clip_label.cache_info().currsize
    for number in range(1, 100):
        comes(number)
    assert _clip_label.cache_info().currsize == before
