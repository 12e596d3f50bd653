"""Sampled live calls on the Version page: speed-up and error of shadow calls, NaN and infinities,
excluded calls, and older agents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from compilewatch.wire.numerics import Parity, parity_data
from django.test import Client

from dashboard.projects.models import Project
from tests.dashboard.requests import region_make
from tests.dashboard.ui.version_story import Story, part, shown, tab_of, url_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def story(store_reports: Callable[..., object]) -> Story:
    return Story(store_reports)


def shadow(state: Any = "passed", region: str = "forward", **fields: Any) -> dict[str, Any]:
    if state != "not compared":
        fields = {
            "where": "output",
            "error": 1e-6,
            "tolerance": 1e-4,
            "relative": 2e-6,
            "samples": 101,
            "timed": 100,
            **fields,
        }
        fields = {"compiled_seconds": 0.002, "eager_seconds": 0.005, **fields}
    return parity_data(
        Parity(
            f"shadow calls of {region}",
            state,
            region=region,
            kind="shadow",
            reference="eager",
            **fields,
        )
    )


def finite(beyond: int, samples: int = 500) -> dict[str, Any]:
    state: Any = "failed" if beyond else "passed"
    fields: dict[str, Any] = {
        "region": "forward",
        "kind": "finite",
        "where": "output",
        "nonfinite": beyond,
    }
    return parity_data(Parity("values of forward", state, samples=samples, beyond=beyond, **fields))


def card(client: Client, project: Project, version: str = "2") -> str:
    return part(shown(client, project, version), "parity")


def test_without_live_calls_there_is_no_table(
    story: Story, signed_in: Client, project: Project
) -> None:
    story.start("2")
    story.fold()
    text = card(signed_in, project)
    assert "No golden batch" in text and "Speed-up" not in text


def test_the_table_shows_speed_up_error_samples_and_age(
    story: Story, signed_in: Client, project: Project
) -> None:
    story.start("2", parities=[shadow()])
    story.start(
        "2",
        parities=[
            shadow(
                compiled_seconds=0.004, eager_seconds=0.005, samples=301, timed=300, relative=3e-5
            )
        ],
    )
    story.start("2")
    story.fold()
    text = card(signed_in, project)
    assert "1.43 times as fast" in text and "3.5 ms compiled, 5 ms eager on average" in text
    assert "402" in text and "2 of 3 processes, newest" in text
    assert (
        "402 sampled calls agree; output is off by at most 1e-06, with a tolerance of 0.0001 against eager"
        in text
    )
    assert "largest error: 0.003% of the magnitude of its output" in text
    assert "No golden batch" in text, "a shadow call is not a golden batch"
    (one,) = signed_in.get(url_of(project, "2", ".json")).json()["live_calls"]
    assert (one["kind"], one["samples"], one["beyond"]) == ("shadow", 402, 0)
    assert one["speed_up"] == pytest.approx(5.0 / 3.5)


def test_slower_compiled_calls_are_reported_as_slower(
    story: Story, signed_in: Client, project: Project
) -> None:
    story.start("2", parities=[shadow(compiled_seconds=0.005, eager_seconds=0.002)])
    story.fold()
    assert "2.5 times as slow" in card(signed_in, project)


def test_short_calls_on_a_cpu_give_no_speed_up_because_the_second_call_benefits_from_warm_caches(
    story: Story, signed_in: Client, project: Project
) -> None:
    story.start(
        "2", parities=[shadow(compiled_seconds=0.003, eager_seconds=0.0015)], identity={"gpu": ""}
    )
    story.fold()
    text = card(signed_in, project)
    assert "times as" not in text and "not known" in text
    assert (
        "3 ms compiled, 1.5 ms eager on average; the second of two short calls benefits from warm CPU caches"
        in text
    )
    assert signed_in.get(url_of(project, "2", ".json")).json()["live_calls"][0]["speed_up"] is None


def test_longer_calls_on_a_cpu_give_a_speed_up(
    story: Story, signed_in: Client, project: Project
) -> None:
    story.start(
        "2", parities=[shadow(compiled_seconds=0.02, eager_seconds=0.05)], identity={"gpu": ""}
    )
    story.fold()
    assert "2.5 times as fast" in card(signed_in, project)


def test_calls_compared_before_the_region_was_excluded_have_their_error(
    story: Story, signed_in: Client, project: Project
) -> None:
    why = "a shadow call ran out of memory: shadow calls are off in this process"
    told = parity_data(Parity("shadow calls of forward", "not compared", why=why, region="forward", where="output", error=1e-6,
                              tolerance=1e-4, reference="eager", kind="shadow", samples=73))  # fmt: skip
    story.start("2", parities=[told])
    story.fold()
    text = card(signed_in, project)
    assert (
        "73 sampled calls agree; output is off by at most 1e-06, with a tolerance of 0.0001 against eager"
        in text
    )
    assert text.count(why) == 1 and f"skipped: {why} (1 process)" in text


def test_an_excluded_region_states_the_reason_and_makes_no_claim(
    story: Story, signed_in: Client, project: Project
) -> None:
    story.start("2", parities=[shadow("not compared", why="it draws random numbers")])
    story.fold()
    text = card(signed_in, project)
    assert (
        "skipped: it draws random numbers (1 process)" in text
        and "no call compared" in text
        and "not known" in text
    )
    assert "times as" not in text


def test_nan_is_compared_with_the_nan_of_the_baseline(
    story: Story, signed_in: Client, project: Project
) -> None:
    story.start("1", ago=100, parities=[finite(0, 900)])
    story.start("2", parities=[finite(12)])
    story.fold()
    text = card(signed_in, project)
    assert "12 of 500 results contain NaN or infinite values" in text
    assert "1: 0 of 900 contain NaN or infinite values" in text and "not measured" in text
    assert "no NaN or infinite values" in card(signed_in, project, "1")


def test_the_payback_states_that_it_is_estimated_from_shadow_calls(
    story: Story, signed_in: Client, project: Project
) -> None:
    measured = region_make(calls=50, p50=0.05, runtime="eager", compiled=0, outermost=False)
    story.start(
        "1",
        calls=1000,
        p50=0.01,
        ago=30,
        beside=[measured],
        parities=[shadow(samples=51, timed=50)],
    )
    story.fold()
    assert "estimated from 50 shadow calls of 1" in part(shown(signed_in, project, "1"), "pay")
    story.start(
        "1",
        calls=1000,
        p50=0.01,
        ago=20,
        beside=[region_make(calls=450, p50=0.05, runtime="eager", compiled=0, outermost=False)],
    )
    story.fold()
    assert "estimated from 500 eager calls of 1, 50 of them shadow calls" in part(
        shown(signed_in, project, "1"), "pay"
    )


def test_the_payback_on_a_cpu_states_that_shadow_calls_ran_second(
    story: Story, signed_in: Client, project: Project
) -> None:
    measured = region_make(calls=50, p50=0.0014, runtime="eager", compiled=0, outermost=False)
    told = [shadow(samples=51, timed=50)]
    story.start(
        "1", calls=1000, p50=0.001, ago=30, beside=[measured], parities=told, identity={"gpu": ""}
    )
    story.fold()
    text = part(shown(signed_in, project, "1"), "pay")
    assert (
        "50 shadow calls of 1, each right after the compiled call; on a CPU, short eager calls benefit from warm caches"
        in text
    )
    assert "estimate, 0." in text, "the bounds have the precision of the value"


def test_reported_text_stays_text(story: Story, signed_in: Client, project: Project) -> None:
    odd = "<script>alert(1)</script>"
    told = {
        "name": odd,
        "state": "failed",
        "why": odd,
        "region": odd,
        "kind": "shadow",
        "samples": 1 << 80,
        "eager_seconds": odd,
    }
    story.start("2", parities=[told, {**told, "name": "x", "kind": odd}])
    story.fold()
    raw = signed_in.get(tab_of(project, "2", "compiles")).content.decode()
    assert odd not in raw and "&lt;script&gt;alert(1)" in raw
