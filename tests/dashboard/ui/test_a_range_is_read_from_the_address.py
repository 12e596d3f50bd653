"""Time ranges: relative, absolute and since the deployment; an invalid range is explained in words
and never breaks a page."""

import pytest
from django.http import QueryDict
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.common import clock
from dashboard.projects.models import Project
from dashboard.ui.http.time_range import (
    MAX_BINS,
    MAX_RANGE_MINUTES,
    build_range_picker,
    read_time_range,
)
from tests.dashboard.ui.charts_factory import HEALTHY, WORSE, charted
from tests.dashboard.ui.factory import now_minute

NOW = 29_000_000


def at(minute: int) -> str:
    return clock.at_minute(minute).strftime("%Y-%m-%dT%H:%M")


@pytest.mark.parametrize(
    ("query", "key", "first", "last"),
    [
        ("", "6h", NOW - 360, NOW),
        ("range=30d", "30d", NOW - 43_200, NOW),
        ("range=nonsense", "6h", NOW - 360, NOW),
        ("range=deployment", "deployment", NOW - 777, NOW),
        (f"range=1h&until={NOW - 100}", "1h", NOW - 160, NOW - 100),
        (f"from={at(NOW - 90)}&to={at(NOW - 30)}", "custom", NOW - 90, NOW - 30),
        (f"from={at(NOW - 90)}", "custom", NOW - 90, NOW),
        (f"from={at(NOW - 90)}&to={at(NOW + 9999)}", "custom", NOW - 90, NOW),
        (f"from={at(NOW - 10 * 525_960)}", "custom", NOW - MAX_RANGE_MINUTES, NOW),
    ],
)
def test_the_address_defines_the_time_range(query: str, key: str, first: int, last: int) -> None:
    chosen = read_time_range(QueryDict(query), now=NOW, since=NOW - 777)
    assert (chosen.key, chosen.first, chosen.last) == (key, first, last)


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("from=yesterday", "from"),
        ("to=2026-01-01", "from"),
        (f"from={at(NOW - 9)}&to=%00", "to"),
        (f"from={at(NOW + 9)}", "from"),
        (f"from={at(NOW - 9)}&to={at(NOW - 99)}", "from"),
        ("from=0001-01-01T00:00&to=0001-01-02T00:00", "to"),
        ("from=9999-12-31T23:59%2B23:59", "from"),
        ("from=99999999999999", "from"),
    ],
)
def test_an_invalid_range_is_named_and_the_default_range_is_shown(query: str, name: str) -> None:
    chosen = read_time_range(QueryDict(query), now=NOW)
    assert chosen.note.startswith(f"{name}: ")
    assert (chosen.first, chosen.last) == (NOW - 360, NOW)


@settings(max_examples=60)
@given(st.integers(1, MAX_RANGE_MINUTES), st.integers(0, MAX_RANGE_MINUTES), st.integers(0, NOW))
def test_no_range_has_more_bins_than_a_chart_can_show(
    length: int, back: int, minutes_from: int
) -> None:
    first = max(NOW - MAX_RANGE_MINUTES, NOW - back - length)
    chosen = read_time_range(QueryDict(f"from={first}&to={max(first + 1, NOW - back)}"), now=NOW)
    window = chosen.bins(minutes_from=minutes_from)
    assert 1 <= window.count <= MAX_BINS
    assert window.first <= chosen.first and window.last >= chosen.last
    assert window.first >= minutes_from or window.step % 60 == 0


def test_a_link_of_the_picker_keeps_the_filters_and_drops_the_old_range() -> None:
    query = QueryDict(f"env=production&from={NOW - 9}&to={NOW}&page=3")
    picker = build_range_picker(query, read_time_range(query, now=NOW), deployed=True)
    assert {label for label, *_ in picker.links} == {
        "1\u00a0h",
        "6\u00a0h",
        "24\u00a0h",
        "7\u00a0d",
        "30\u00a0d",
        "Since deployment",
    }
    assert all(
        "from" not in QueryDict(url[1:]) and QueryDict(url[1:])["env"] == "production"
        for _, url, _ in picker.links
    )
    assert picker.kept == [("env", "production")]


def test_a_page_shows_a_range_of_ten_years_one_of_the_future_and_one_without_data(
    signed_in: Client, project: Project
) -> None:
    made, now = charted(project, HEALTHY, WORSE), now_minute()
    for query, said in (
        (f"from={at(now - 10 * 525_960)}", "the maximum retention"),
        (f"from={at(now + 500)}", "is in the future"),
        (f"from={at(now - 50_000)}&to={at(now - 49_000)}", "No report in the selected range"),
        ("range=deployment", "Since deployment"),
    ):
        answer = signed_in.get(made.url(f"?{query}"))
        assert answer.status_code == 200
        assert said in answer.content.decode()


def test_each_chart_has_its_own_file(signed_in: Client, project: Project) -> None:
    made = charted(project, HEALTHY, WORSE)
    p99 = (
        signed_in.get(made.url("").rstrip("/") + ".csv?range=1h&chart=p99")
        .content.decode()
        .splitlines()
    )
    bounds = ('"95% CI low, sampling error of calls"', '"95% CI high, sampling error of calls"')
    assert p99[0] == ",".join(("version,time", '"p99 (ms, wall time)"', *bounds))
    version, _, value, low, high = next(
        cells for line in reversed(p99[1:]) if all(cells := line.split(","))
    )
    assert version in (HEALTHY.name, WORSE.name) and float(low) <= float(value) <= float(high)
    starts = (
        signed_in.get(made.url("").rstrip("/") + ".csv?range=6h&chart=cold_start")
        .content.decode()
        .splitlines()
    )
    assert (
        starts[0] == "version,time,instance,cold start (s)"
        and len(starts) == 1 + 2 * WORSE.per_gpu * 2
    )


def test_unchanged_numbers_are_not_sent_again(signed_in: Client, project: Project) -> None:
    made = charted(project, HEALTHY, WORSE)
    address = (
        made.url("").rstrip("/") + f".json?from={at(now_minute() - 100)}&to={at(now_minute() - 20)}"
    )
    first = signed_in.get(address)
    again = signed_in.get(address, headers={"If-None-Match": first["ETag"]})
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
