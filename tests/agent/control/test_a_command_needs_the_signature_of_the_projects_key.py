"""A job with a public key executes only commands that this key signed: no MAC, no other key, and no
key that came with the command counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from compilewatch.control.command_handler import CommandHandler
from compilewatch.control.signatures import opener_of
from compilewatch.instrument.kill_switch import KILL_SWITCH, route_function
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.command import CONTEXT, MAX_COMMAND_BYTES, REFUSALS, CommandRefused
from compilewatch.wire.messages import Report
from hypothesis import given
from hypothesis import strategies as st

from tests.agent.signed import (
    ME,
    OTHER_SECRET,
    PUBLIC,
    SECRET,
    SYMMETRIC,
    both,
    changed,
    command,
    config_of,
    public_of,
    signed,
    text_of,
    with_mac,
)

OTHER = public_of(OTHER_SECRET)
SIGNATURE = signed(command())["ed25519"][PUBLIC]
BAD: dict[str, tuple[str, Callable[[], Any]]] = {
    "a job that holds the symmetric key signs": ("not_signed", lambda: with_mac(command())),
    "it adds a signature of a key that it made": (
        "not_signed",
        lambda: both(command(), OTHER_SECRET),
    ),
    "its signature claims to be of this key": (
        "forged",
        lambda: {**both(command()), **signed(command(), OTHER_SECRET, label=PUBLIC)},
    ),
    "a good MAC with the signature of another command": (
        "forged",
        lambda: {**both(command(2)), "ed25519": {PUBLIC: SIGNATURE}},
    ),
    "a body that was changed under both signatures": (
        "forged",
        lambda: changed(both(command()), verb="freeze"),
    ),
    "signed for another project": (
        "not_signed",
        lambda: signed(command(project="otherone"), OTHER_SECRET),
    ),
    "signed in the context of the MAC": ("forged", lambda: signed(command(), context=CONTEXT)),
    "signed without a context": ("forged", lambda: signed(command(), context=b"")),
    "without signatures": ("not_signed", lambda: {**both(command()), "ed25519": {}}),
    "signatures that are not a table": (
        "not_signed",
        lambda: {**both(command()), "ed25519": [SIGNATURE]},
    ),
    "a signature that is not text": (
        "malformed",
        lambda: {**both(command()), "ed25519": {PUBLIC: 5}},
    ),
    "a signature that is not base64": (
        "malformed",
        lambda: {**both(command()), "ed25519": {PUBLIC: "eager!"}},
    ),
    "a signature that is cut": (
        "forged",
        lambda: {**both(command()), "ed25519": {PUBLIC: SIGNATURE[:84]}},
    ),
    "a signature that is too long": (
        "too_large",
        lambda: {**both(command()), "ed25519": {PUBLIC: SIGNATURE + "AAAA"}},
    ),
    "no body": ("malformed", lambda: {"ed25519": {PUBLIC: SIGNATURE}}),
    "a body that is too large": ("too_large", lambda: signed(b" " * (MAX_COMMAND_BYTES + 3))),
    "no object": ("malformed", lambda: "eager"),
    "signed, but not JSON": ("malformed", lambda: signed(b"eager")),
    "signed, but expired": ("expired", lambda: signed(command(not_before=1.0, expires=2.0))),
    "signed, but for another instance": ("wrong_target", lambda: signed(command(share=0.0))),
    "signed, but not allowed by the job": ("not_allowed", lambda: signed(command(verb="freeze"))),
}


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.binary(max_size=70).map(text_of)
)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
TABLES = ANYTHING | st.fixed_dictionaries(
    {},
    optional={
        "body": ANYTHING,
        "signed": ANYTHING,
        "ed25519": st.dictionaries(st.just(PUBLIC), ANYTHING),
    },
)


@pytest.fixture
def commands(window: Callable[[], Report]) -> Iterator[CommandHandler]:
    """The commands of a job that has both keys, as during the migration of a fleet from one key to
    the other."""
    KILL_SWITCH.is_allowed, KILL_SWITCH.route_count = True, 0
    route_function(len)
    made = CommandHandler(
        config_of(command_public_key=PUBLIC, command_key=SYMMETRIC), RECORDER, lambda: ME
    )
    yield made
    made.close()


@pytest.mark.parametrize("name", BAD)
def test_a_command_that_the_key_did_not_sign_is_refused_and_reported(
    name: str, commands: CommandHandler, window: Callable[[], Report]
) -> None:
    code, build = BAD[name]
    commands.handle([build()])
    assert KILL_SWITCH.command is None and code in REFUSALS and commands.refused == {code: 1}
    [receipt] = [fact.data for fact in window().facts if fact.kind == "command_receipt"]
    assert (receipt["state"], receipt["why"]) == ("refused", code)


@given(TABLES)
def test_every_bad_content_of_an_answer_is_refused_with_a_reason(found: Any) -> None:
    with pytest.raises(CommandRefused) as refused:
        opener_of(config_of(command_public_key=PUBLIC))(found)
    assert refused.value.code in REFUSALS


@pytest.mark.parametrize("form", [signed, both])
def test_a_command_that_the_key_signed_is_executed(
    form: Callable[..., dict[str, Any]], commands: CommandHandler
) -> None:
    commands.handle([form(command())])
    assert (
        KILL_SWITCH.command is not None
        and KILL_SWITCH.command.is_in_force()
        and not commands.refused
    )


def test_a_wrong_mac_next_to_a_good_signature_is_ignored(commands: CommandHandler) -> None:
    commands.handle([both(command(), key=f"cw_cmd_8charsid_{'o' * 49}")])
    assert KILL_SWITCH.command is not None and not commands.refused


def test_a_dashboard_that_changes_its_key_also_signs_with_the_previous_key(
    commands: CommandHandler,
) -> None:
    order = command()
    order_of_both = both(order, OTHER_SECRET)
    order_of_both["ed25519"] |= signed(order)["ed25519"]
    assert set(order_of_both["ed25519"]) == {PUBLIC, OTHER}
    commands.handle([order_of_both])
    assert KILL_SWITCH.command is not None and not commands.refused


def test_a_replayed_earlier_command_of_the_same_key_is_refused(commands: CommandHandler) -> None:
    first = signed(command(7))
    commands.handle([first])
    commands.handle([signed(command(8, verb="restore"))])
    commands.handle([first])
    assert KILL_SWITCH.command is None and commands.refused == {"replayed": 1}


def test_a_job_with_only_the_symmetric_key_accepts_its_mac_in_this_release(
    window: Callable[[], Report],
) -> None:
    KILL_SWITCH.is_allowed, KILL_SWITCH.route_count = True, 0
    route_function(len)
    made = CommandHandler(config_of(command_key=SYMMETRIC), RECORDER, lambda: ME)
    try:
        made.handle([signed(command(1), SECRET)])
        assert made.refused == {"malformed": 1} and KILL_SWITCH.command is None
        made.handle([both(command(2))])
        assert KILL_SWITCH.command is not None
    finally:
        made.close()


def test_each_job_reports_how_it_verifies_commands() -> None:
    found = {
        name: CommandHandler(config_of(**keys), RECORDER, lambda: ME).signatures
        for name, keys in {
            "public": {"command_public_key": PUBLIC, "command_key": SYMMETRIC},
            "shared": {"command_key": SYMMETRIC},
        }.items()
    }
    assert found["public"] == ("yes", "Ed25519")
    assert (
        found["shared"][0] == "partly" and "COMPILEWATCH_COMMAND_PUBLIC_KEY" in found["shared"][1]
    )
