"""The deployment lane: spans in percent of the range, labels that fit, and one sentence."""

from __future__ import annotations

from django.template.loader import render_to_string
from hypothesis import given
from hypothesis import strategies as st

from dashboard.ui.charts.deployment_lane import (
    MAX_TICKS,
    STATES,
    LaneRow,
    LaneSpan,
    build_deployment_lane,
)
from dashboard.vocabulary.numbers import plural

START = 29_400_000 // 1440 * 1440 + 22 * 60
END = START + 312
RANKER = LaneRow(
    "ranker",
    [
        LaneSpan(START - 900, START + 261, "baseline", "2026.11.2"),
        LaneSpan(START + 261, START + 271, "not_enough_data", "2026.11.3"),
        LaneSpan(START + 271, START + 286, "watch", "2026.11.3"),
        LaneSpan(START + 286, END, "roll_back", "2026.11.3"),
    ],
    href="/p/one/models/1/",
    alerts=[(START + 286, "roll_back"), (START - 5, "watch")],
)
SPANS = st.lists(
    st.builds(
        LaneSpan,
        st.integers(START - 400, END + 400),
        st.integers(START - 400, END + 400),
        st.sampled_from([*STATES, "unknown"]),
        st.text(max_size=200),
    ),
    max_size=8,
)


def test_spans_are_cut_to_the_range_and_meet_each_other() -> None:
    row = build_deployment_lane([RANKER], START, END, "model").rows[0]
    assert [(span.x, span.width, span.css) for span in row.spans] == [
        ("0.00", "83.65", "base"),
        ("83.65", "3.21", "nodata"),
        ("86.86", "4.81", "watch"),
        ("91.67", "8.33", "rollback"),
    ]


def test_a_label_that_does_not_fit_is_shortened_to_its_last_part_or_omitted() -> None:
    row = build_deployment_lane([RANKER], START, END, "model").rows[0]
    assert [(span.wide, span.narrow) for span in row.spans] == [
        ("2026.11.2", "2026.11.2"),
        ("", ""),
        ("", ""),
        (".3", ""),
    ]


def test_the_sentence_names_the_newest_roll_back_and_watch() -> None:
    sentence = build_deployment_lane([RANKER], START, END, "model").sentence
    assert sentence.startswith(f"Deployments and verdicts of {plural(1, 'model')}, between ")
    assert sentence.endswith(
        "; ranker became ROLL BACK at 2025-11-25 02:46 UTC"
        "; ranker became WATCH at 2025-11-25 02:31 UTC."
    )


def test_a_quiet_lane_says_so() -> None:
    rows = [LaneRow("one", [LaneSpan(START, END, "healthy", "v1")])]
    assert build_deployment_lane(rows, START, END, "version").sentence.endswith(
        "; no ROLL BACK or WATCH."
    )


def test_an_alert_outside_of_the_range_is_not_drawn() -> None:
    row = build_deployment_lane([RANKER], START, END, "model").rows[0]
    assert row.alerts == [("91.67", "rollback")]


def test_ticks_are_round_and_end_with_the_end_of_the_range() -> None:
    ticks = build_deployment_lane([RANKER], START, END, "model").ticks
    assert [tick.text for tick in ticks] == ["23:00", "00:00", "01:00", "02:00", "03:12"]


def test_ticks_of_weeks_are_dates_without_a_time_of_day() -> None:
    ticks = build_deployment_lane([], START, START + 28 * 1440, "model").ticks
    assert all(tick.at is None and ":" not in tick.text for tick in ticks[:-1])
    assert 3 <= len(ticks) <= MAX_TICKS + 1


@given(SPANS, st.integers(1, 400 * 1440))
def test_every_span_lies_within_the_lane(spans: list[LaneSpan], length: int) -> None:
    lane = build_deployment_lane([LaneRow("one", spans)], START, START + length, "model")
    for span in lane.rows[0].spans:
        assert float(span.x) >= 0 and float(span.x) + float(span.width) <= 100.02
    assert len(lane.ticks) <= MAX_TICKS + 2


def test_names_of_models_and_versions_stay_text() -> None:
    hostile = '<script>alert("1")</script>'
    rows = [LaneRow(hostile, [LaneSpan(START, END, "watch", hostile)])]
    lane = build_deployment_lane(rows, START, END, "model")
    page = render_to_string("ui/parts/deployment_lane.html", {"lane": lane})
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert 'class="lnh"' in page
