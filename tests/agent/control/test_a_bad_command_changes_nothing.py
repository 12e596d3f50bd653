"""A command that is forged, replayed, expired, foreign, oversized or malformed is not executed;
each refusal is counted and reported."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import compilewatch
import pytest
from compilewatch.config import Config
from compilewatch.control.command_handler import MAX_REFUSAL_RECEIPTS, CommandHandler
from compilewatch.instrument.kill_switch import KILL_SWITCH, route_function
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.command import CONTEXT, MAX_COMMANDS, REFUSALS, Command, command_sign
from compilewatch.wire.messages import Identity, Report

from tests.agent.server import Dashboard

KEY = f"cw_cmd_8charsid_{'k' * 49}"
OTHER_KEY = f"cw_cmd_8charsid_{'o' * 49}"
ME = Identity(
    id="i" * 26, started=0.0, model="ranker", version="1", environment="production", job="train-7"
)
Build = Callable[[], Any]


def fields(**changes: Any) -> dict[str, Any]:
    """The fields of a valid command as JSON, except for `changes`."""
    now = time.time()
    good = {
        "v": 1,
        "id": "a1.1",
        "project": "8charsid",
        "verb": "eager",
        "counter": 7,
        "model": "ranker",
        "version": "1",
    }
    rest = {
        "environment": "production",
        "not_before": now - 1,
        "expires": now + 60,
        "instances": [ME.id],
        "share": 0.0,
        "ask": False,
    }
    return {**good, **rest, **changes}


def signed(data: Any, key: str = KEY) -> dict[str, str]:
    """Any data, signed as a dashboard would sign it."""
    body = data if isinstance(data, bytes) else json.dumps(data).encode()
    return sealed(hmac.new(key.encode(), CONTEXT + body, hashlib.sha256).digest() + body)


def sealed(raw: bytes) -> dict[str, str]:
    return {"signed": base64.b64encode(raw).decode()}


def flipped(bit: int) -> dict[str, str]:
    raw = bytearray(base64.b64decode(signed(fields())["signed"]))
    raw[bit // 8] ^= 1 << bit % 8
    return sealed(bytes(raw))


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in fields().items() if key != name}


BAD: dict[str, tuple[str, Build]] = {
    "signed with another key": ("forged", lambda: signed(fields(), OTHER_KEY)),
    "signed for another project": (
        "forged",
        lambda: signed(fields(project="otherone"), f"cw_cmd_otherone_{'k' * 49}"),
    ),
    "of another project, though signed with this key": (
        "foreign_project",
        lambda: signed(fields(project="otherone")),
    ),
    "a bit of the signature flipped": ("forged", lambda: flipped(5)),
    "a bit of the verb flipped": ("forged", lambda: flipped(8 * 80)),
    "without a signature": ("forged", lambda: sealed(json.dumps(fields()).encode())),
    "only a signature": ("forged", lambda: sealed(b"\0" * 32)),
    "empty": ("forged", lambda: sealed(b"")),
    "signed without the context": (
        "forged",
        lambda: sealed(
            hmac.new(KEY.encode(), (body := json.dumps(fields()).encode()), hashlib.sha256).digest()
            + body
        ),
    ),
    "expired": (
        "expired",
        lambda: signed(fields(not_before=time.time() - 90, expires=time.time() - 1)),
    ),
    "longer than a command may last": (
        "too_long",
        lambda: signed(fields(expires=time.time() + 7200)),
    ),
    "over before it begins": (
        "wrong_type",
        lambda: signed(fields(not_before=time.time() + 60, expires=time.time() + 30)),
    ),
    "for another instance": ("wrong_target", lambda: signed(fields(instances=["x" * 26]))),
    "for no instance": ("wrong_target", lambda: signed(fields(instances=[]))),
    "for another model": ("wrong_target", lambda: signed(fields(model="other"))),
    "for another version": ("wrong_target", lambda: signed(fields(version="2"))),
    "for another environment": ("wrong_target", lambda: signed(fields(environment="staging"))),
    "a verb that the job did not allow": ("not_allowed", lambda: signed(fields(verb="freeze"))),
    "an unknown verb": ("unknown_verb", lambda: signed(fields(verb="exec"))),
    "oversized": ("too_large", lambda: signed(fields(model="m" * 8000))),
    "no object": ("malformed", lambda: "eager"),
    "no text": ("malformed", lambda: {"signed": 5}),
    "not base64": ("malformed", lambda: {"signed": "eager!"}),
    "signed, but not JSON": ("malformed", lambda: signed(b"eager")),
    "signed, but a list": ("malformed", lambda: signed([fields()])),
    "of another protocol": ("wrong_format", lambda: signed(fields(v=2))),
    "a number for a name": ("wrong_type", lambda: signed(fields(model=5))),
    "a counter that is no whole number": ("wrong_type", lambda: signed(fields(counter=7.5))),
    "a share of true": ("wrong_type", lambda: signed(fields(share=True))),
    "a time that is no number": (
        "wrong_type",
        lambda: signed(json.dumps(fields(expires=0)).replace("0}", "NaN}").encode()),
    ),
    "a time beyond all calendars": ("wrong_type", lambda: signed(fields(expires=1e300))),
    "a field too few": ("wrong_type", lambda: signed(without("counter"))),
    "an unknown field": ("wrong_type", lambda: signed(fields(shell="rm"))),
    "nested too deep": ("malformed", lambda: signed(b"[" * 4000)),
}


@pytest.fixture
def commands(window: Callable[[], Report]) -> Iterator[CommandHandler]:
    """The commands of a job that allows `eager`, with one callable that can be switched."""
    config = Config(
        model="ranker", endpoint="http://127.0.0.1:9", allow_remote=("eager",), command_key=KEY
    )
    KILL_SWITCH.is_allowed, KILL_SWITCH.route_count = True, 0
    route_function(len)
    made = CommandHandler(config, RECORDER, lambda: ME)
    yield made
    made.close()


def receipts(report: Report) -> list[dict[str, Any]]:
    return [fact.data for fact in report.facts if fact.kind == "command_receipt"]


@pytest.mark.parametrize("name", BAD)
def test_it_is_refused_counted_and_reported(
    name: str, commands: CommandHandler, window: Callable[[], Report]
) -> None:
    code, build = BAD[name]
    given = build()
    for _ in range(3):  # every answer repeats the command
        commands.handle([given])
    assert KILL_SWITCH.command is None and code in REFUSALS
    assert commands.refused == {code: 3}
    [told] = receipts(window())
    assert (told["state"], told["why"], told["refused"]) == ("refused", code, 1)


def test_a_good_command_is_executed_so_the_table_is_meaningful(
    commands: CommandHandler, window: Callable[[], Report]
) -> None:
    assert len(BAD) >= 25
    commands.handle([signed(fields())])
    assert KILL_SWITCH.command is not None and KILL_SWITCH.command.is_in_force()
    assert [told["state"] for told in receipts(window())] == ["accepted", "applied"]


def test_a_replayed_earlier_counter_is_refused(commands: CommandHandler) -> None:
    first, taken_back = (
        signed(fields(counter=7)),
        signed(fields(id="a1.2", counter=8, verb="restore")),
    )
    commands.handle([first])
    commands.handle([taken_back])
    assert KILL_SWITCH.command is None
    commands.handle([first])
    commands.handle([signed(fields(id="b1.1", counter=8))])
    assert KILL_SWITCH.command is None and commands.refused == {"replayed": 2}


def test_a_flood_is_counted_and_reported_in_few_words(
    commands: CommandHandler, window: Callable[[], Report]
) -> None:
    for answer in range(20):
        commands.handle(
            [
                signed(fields(counter=answer * 20 + number), OTHER_KEY)
                for number in range(MAX_COMMANDS + 1)
            ]
        )
    assert (
        commands.refused == {"forged": 20 * MAX_COMMANDS, "too_many": 20}
        and KILL_SWITCH.command is None
    )
    told = receipts(window())
    assert len(told) == MAX_REFUSAL_RECEIPTS and {one["state"] for one in told} == {"refused"}


def test_a_job_that_allows_nothing_reports_the_command(
    start: Callable[..., None], dashboard: Dashboard
) -> None:
    dashboard.commands = [signed(fields())]
    start()
    dashboard.wait(
        lambda seen: any(
            fact.kind == "command_receipt" for report in seen.reports() for fact in report.facts
        )
    )
    [told] = [
        fact.data
        for report in dashboard.reports()
        for fact in report.facts
        if fact.kind == "command_receipt"
    ]
    assert (told["state"], told["why"]) == (
        "refused",
        "not_allowed",
    ) and KILL_SWITCH.command is None
    assert compilewatch.agent.AGENT.worker is not None


def test_a_command_that_a_dashboard_signs_is_accepted_by_a_job(commands: CommandHandler) -> None:
    now = time.time()
    good = Command(
        "a1.1", "8charsid", "eager", 1, "ranker", "1", "production", now, now + 30, share=1.0
    )
    commands.handle([sealed(command_sign(good, KEY))])
    assert KILL_SWITCH.command is not None and not commands.refused
    with pytest.raises(ValueError, match="larger than 4096"):
        command_sign(
            Command("a1.1", "8charsid", "eager", 1, "m" * 5000, "1", "production", now, now + 30),
            KEY,
        )
