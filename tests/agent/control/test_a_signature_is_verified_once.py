"""A signature costs the agent's thread milliseconds, so each is verified once, and an answer can cause eight verifications at most."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from compilewatch.control import signatures
from compilewatch.control.command_handler import Commands
from compilewatch.control.signatures import MAX_KNOWN, KnownSignatures
from compilewatch.instrument.kill_switch import SWITCH, routed_function
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.command import MAX_COMMANDS
from compilewatch.wire.ed25519 import PublicKey
from compilewatch.wire.messages import Report

from tests.agent.signed import ME, OTHER_SECRET, PUBLIC, SECRET, command, config_of, signed


class Counted(KnownSignatures):
    """As it is; the test can ask the newest how many it verified."""

    newest: Counted

    def __init__(self, key: PublicKey) -> None:
        super().__init__(key)
        Counted.newest = self


@pytest.fixture
def commands(window: Callable[[], Report], monkeypatch: pytest.MonkeyPatch) -> Iterator[Commands]:
    monkeypatch.setattr(signatures, "KnownSignatures", Counted)
    SWITCH.possible, SWITCH.routes = True, 0
    routed_function(len)
    made = Commands(config_of(command_public_key=PUBLIC), RECORDER, lambda: ME)
    yield made
    made.close()


def forged(counter: int) -> dict[str, Any]:
    """Of a key that this job does not know, under this job's key's name."""
    return signed(command(counter), OTHER_SECRET, label=PUBLIC)


def test_a_command_in_every_answer_is_verified_once(commands: Commands) -> None:
    given = signed(command())
    for _ in range(100):
        commands.take([given])
    assert Counted.newest.verified == 1 and SWITCH.held is not None and not commands.refused


def test_a_forged_one_in_every_answer_is_verified_once_and_refused_each_time(commands: Commands) -> None:
    given = [forged(number) for number in range(MAX_COMMANDS)]
    for _ in range(100):
        commands.take(given)
    assert Counted.newest.verified == MAX_COMMANDS and commands.refused == {"forged": 100 * MAX_COMMANDS} and SWITCH.held is None


def test_an_answer_causes_eight_verifications_at_most(commands: Commands) -> None:
    commands.take([forged(number) for number in range(1000)])
    assert Counted.newest.verified == MAX_COMMANDS == 8
    assert commands.refused == {"forged": 8, "too_many": 992}


def test_a_good_one_is_not_verified_again_because_forged_ones_come_with_it(commands: Commands) -> None:
    good = signed(command())
    for answer in range(40):
        commands.take([good, *(forged(answer * 10 + number) for number in range(7))])
    assert Counted.newest.verified == 1 + 40 * 7 and SWITCH.held is not None


def test_the_id_of_a_command_that_was_verified_lends_a_forged_one_nothing(commands: Commands) -> None:
    commands.take([signed(command(1, verb="restore"))])
    commands.take([signed(command(1), OTHER_SECRET, label=PUBLIC)])
    assert commands.refused == {"forged": 1} and SWITCH.held is None


def test_what_is_known_stays_bounded_and_the_oldest_is_verified_again() -> None:
    known = KnownSignatures(PublicKey(bytes.fromhex(PUBLIC)))
    one = SECRET.sign(b"one")
    assert known.verifies(one, b"one") and known.verifies(one, b"one") and known.verified == 1
    for number in range(MAX_KNOWN):
        assert not known.verifies(bytes([number]) * 64, b"one")
    assert known.verified == 1 + MAX_KNOWN
    assert known.verifies(one, b"one") and known.verified == 2 + MAX_KNOWN


def test_a_thousand_forged_ones_over_as_many_answers_cost_little_each(commands: Commands) -> None:
    made = [forged(number) for number in range(1000)]
    began = time.thread_time()
    for place in range(0, 1000, MAX_COMMANDS):
        commands.take(made[place : place + MAX_COMMANDS])
    each = (time.thread_time() - began) / 1000
    assert commands.refused == {"forged": 1000}
    assert each < 0.05, f"{each * 1000:.1f} ms of the agent's thread for one forged command"
