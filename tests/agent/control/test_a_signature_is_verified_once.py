"""Verifying a signature costs the agent's thread milliseconds, so each signature is verified once,
and one answer causes at most eight verifications."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from compilewatch.control import signatures
from compilewatch.control.command_handler import CommandHandler
from compilewatch.control.signatures import MAX_CACHED_SIGNATURES, SignatureCache
from compilewatch.instrument.kill_switch import KILL_SWITCH, route_function
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.command import MAX_COMMANDS
from compilewatch.wire.ed25519 import PublicKey
from compilewatch.wire.messages import Report

from tests.agent.signed import ME, OTHER_SECRET, PUBLIC, SECRET, command, config_of, signed


class Counted(SignatureCache):
    """The unchanged cache; the test reads the number of verifications from the newest one."""

    newest: Counted

    def __init__(self, key: PublicKey) -> None:
        super().__init__(key)
        Counted.newest = self


@pytest.fixture
def commands(
    window: Callable[[], Report], monkeypatch: pytest.MonkeyPatch
) -> Iterator[CommandHandler]:
    monkeypatch.setattr(signatures, "SignatureCache", Counted)
    KILL_SWITCH.is_allowed, KILL_SWITCH.route_count = True, 0
    route_function(len)
    made = CommandHandler(config_of(command_public_key=PUBLIC), RECORDER, lambda: ME)
    yield made
    made.close()


def forged(counter: int) -> dict[str, Any]:
    """A command that an unknown key signed, under the label of this job's key."""
    return signed(command(counter), OTHER_SECRET, label=PUBLIC)


def test_a_command_repeated_in_every_answer_is_verified_once(commands: CommandHandler) -> None:
    given = signed(command())
    for _ in range(100):
        commands.handle([given])
    assert (
        Counted.newest.verified_count == 1
        and KILL_SWITCH.command is not None
        and not commands.refused
    )


def test_a_forged_command_repeated_in_every_answer_is_verified_once_and_always_refused(
    commands: CommandHandler,
) -> None:
    given = [forged(number) for number in range(MAX_COMMANDS)]
    for _ in range(100):
        commands.handle(given)
    assert (
        Counted.newest.verified_count == MAX_COMMANDS
        and commands.refused == {"forged": 100 * MAX_COMMANDS}
        and KILL_SWITCH.command is None
    )


def test_an_answer_causes_at_most_eight_verifications(commands: CommandHandler) -> None:
    commands.handle([forged(number) for number in range(1000)])
    assert Counted.newest.verified_count == MAX_COMMANDS == 8
    assert commands.refused == {"forged": 8, "too_many": 992}


def test_a_good_command_is_not_verified_again_because_of_forged_commands_next_to_it(
    commands: CommandHandler,
) -> None:
    good = signed(command())
    for answer in range(40):
        commands.handle([good, *(forged(answer * 10 + number) for number in range(7))])
    assert Counted.newest.verified_count == 1 + 40 * 7 and KILL_SWITCH.command is not None


def test_the_id_of_a_verified_command_does_not_help_a_forged_one(
    commands: CommandHandler,
) -> None:
    commands.handle([signed(command(1, verb="restore"))])
    commands.handle([signed(command(1), OTHER_SECRET, label=PUBLIC)])
    assert commands.refused == {"forged": 1} and KILL_SWITCH.command is None


def test_the_cache_of_signatures_stays_bounded_and_evicts_the_oldest() -> None:
    known = SignatureCache(PublicKey(bytes.fromhex(PUBLIC)))
    one = SECRET.sign(b"one")
    assert known.verify(one, b"one") and known.verify(one, b"one") and known.verified_count == 1
    for number in range(MAX_CACHED_SIGNATURES):
        assert not known.verify(bytes([number]) * 64, b"one")
    assert known.verified_count == 1 + MAX_CACHED_SIGNATURES
    assert known.verify(one, b"one") and known.verified_count == 2 + MAX_CACHED_SIGNATURES


def test_a_thousand_forged_commands_in_as_many_answers_cost_little_each(
    commands: CommandHandler,
) -> None:
    made = [forged(number) for number in range(1000)]
    began = time.thread_time()
    for place in range(0, 1000, MAX_COMMANDS):
        commands.handle(made[place : place + MAX_COMMANDS])
    each = (time.thread_time() - began) / 1000
    assert commands.refused == {"forged": 1000}
    assert each < 0.05, f"{each * 1000:.1f} ms of the agent's thread for one forged command"
