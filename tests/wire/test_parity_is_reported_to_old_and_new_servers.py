"""The data of a parity fact comes back unchanged, is understood by servers without states, and may
come from any agent."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from compilewatch.wire.codec import decode, encode
from compilewatch.wire.messages import Fact
from compilewatch.wire.numerics import (
    KINDS,
    MAX_ERROR,
    MAX_NAME,
    STATES,
    Parity,
    parity_data,
    parity_of,
    parity_words,
)
from hypothesis import given
from hypothesis import strategies as st

numbers = st.none() | st.floats(0, 1e300)
counts = st.integers(0, 1 << 40)
parities = st.builds(
    Parity,
    name=st.text("abc", min_size=1, max_size=20),
    state=st.sampled_from(STATES),
    why=st.text("abc "),
    where=st.text("abc", max_size=20),
    error=numbers,
    eager_error=numbers,
    tolerance=numbers,
    outputs=counts,
    nonfinite=counts,
    eager_nonfinite=counts,
    last=st.sampled_from(("", "same", "differs")),
    last_change=numbers,
    kind=st.sampled_from(KINDS),
    samples=counts,
    beyond=counts,
    timed=counts,
    relative=numbers,
    compiled_seconds=numbers,
    eager_seconds=numbers,
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3),
)


@given(parities)
def test_it_comes_back_through_json(told: Parity) -> None:
    fact = Fact("parity", 1.0, parity_data(told))
    back = decode(Fact, json.loads(json.dumps(encode(fact), allow_nan=False)))
    assert parity_of(back.data) == told


def test_an_old_server_receives_a_failure_only_if_there_is_one() -> None:
    ok = {state: parity_data(Parity("g", state))["ok"] for state in STATES}
    assert ok == {"passed": True, "failed": False, "not compared": True}
    failed = parity_data(
        Parity(
            "g",
            "failed",
            where="output",
            error=0.2,
            eager_error=1e-3,
            tolerance=2e-3,
            reference="float64",
        )
    )
    assert (
        failed["text"]
        == "output is off by 0.2, 100 times the tolerance of 0.002 (eager's own error is 0.001)"
    )


def test_shadow_calls_and_values_reach_a_server_that_knows_only_golden_batches() -> None:
    shadow = parity_data(
        Parity(
            "shadow calls of f",
            "passed",
            kind="shadow",
            where="output",
            error=1e-6,
            tolerance=1e-4,
            samples=1200,
        )
    )
    assert (shadow["ok"], shadow["name"]) == (True, "shadow calls of f")
    assert (
        shadow["text"]
        == "1,200 sampled calls agree; output is off by at most 1e-06, with a tolerance of "
        "0.0001 against eager"
    )
    values = Parity(
        "values of f", "failed", kind="finite", where="output['x']", samples=500, beyond=3
    )
    assert (
        parity_words(values) == "output['x'] holds NaN or infinite values in 3 of 500 sampled calls"
    )
    assert (
        parity_words(Parity("values of f", "passed", kind="finite", samples=1))
        == "none in 1 sampled call"
    )
    left = Parity("shadow calls of f", "not compared", kind="shadow", why="it draws random numbers")
    assert parity_data(left)["ok"] is True and parity_words(left) == "it draws random numbers"


def test_an_old_agent_reports_only_golden_batches() -> None:
    old = parity_of(
        {"name": "g", "state": "passed", "error": 1e-3, "tolerance": 2e-3, "reference": "float64"}
    )
    assert (old.kind, old.samples, old.timed, old.eager_seconds) == ("", 0, 0, None)
    assert parity_of({"name": "g", "state": "passed", "kind": "another"}).kind == ""


def test_an_old_agent_is_understood_by_its_ok() -> None:
    assert parity_of({"name": "g", "ok": True}).state == "passed"
    old = parity_of({"name": "g", "ok": False, "text": "off by 0.2"})
    assert (old.state, parity_words(old)) == ("failed", "off by 0.2")
    assert parity_of({}) == Parity("the compiled model", "failed")


@given(st.dictionaries(st.sampled_from([*Parity.__dataclass_fields__, "ok", "text"]), anything))
def test_any_data_of_a_foreign_agent_can_be_read_and_described(data: dict[str, Any]) -> None:
    told = parity_of(data)
    assert told.state in STATES and len(told.name) <= MAX_NAME and parity_words(told)
    assert all(
        value is None or 0.0 <= value <= MAX_ERROR
        for value in (told.error, told.tolerance, told.times, told.last_change)
    )


@pytest.mark.parametrize("error", [math.inf, math.nan])
def test_an_error_without_end_has_a_number(error: float) -> None:
    told = parity_of(
        json.loads(
            json.dumps(
                parity_data(Parity("g", "failed", error=error, tolerance=1e-3)), allow_nan=False
            )
        )
    )
    assert told.error == MAX_ERROR and told.times == MAX_ERROR


@pytest.mark.parametrize(
    ("error", "says"),
    [(1.5, "1.5 times"), (122345.0, "122,000 times"), (1e9, "over a million times")],
)
def test_a_multiple_is_formatted_for_people(error: float, says: str) -> None:
    assert f", {says} the tolerance of 1 (against eager)" in parity_words(
        Parity("g", "failed", where="output", error=error, tolerance=1.0)
    )


@pytest.mark.parametrize(
    ("error", "tolerance", "times"), [(0.0, 0.0, 0.0), (1.0, 0.0, MAX_ERROR), (3.0, 2.0, 1.5)]
)
def test_the_error_is_a_multiple_of_the_tolerance(
    error: float, tolerance: float, times: float
) -> None:
    assert Parity("g", "passed", error=error, tolerance=tolerance).times == times
