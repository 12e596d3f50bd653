"""One bad report in a request is refused with its own code; the good report next to it is
stored."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from compilewatch.wire.ack import REJECTED_CODES
from compilewatch.wire.codec import encode
from compilewatch.wire.messages import Request

from dashboard.ingest.batch import report_read
from dashboard.ingest.models import InboxRow
from tests.dashboard.ingest.conftest import Endpoint

pytestmark = pytest.mark.django_db(transaction=True)
Make = Callable[..., Request]
Change = Callable[[dict[str, Any], float], Any]

DAY = 86400.0


def region(**fields: Any) -> Change:
    return lambda report, now: report["regions"][0].update(fields)


def sketch(**fields: Any) -> Change:
    return lambda report, now: report["regions"][0]["latency"].update(fields)


def report(**fields: Any) -> Change:
    return lambda report, now: report.update(fields)


def ending(seconds: float, length: float = 10.0) -> Change:
    return lambda report, now: report.update(window=[now + seconds - length, now + seconds])


def compiled(**fields: Any) -> dict[str, Any]:
    return {"at": 1.7e9, "id": "0/0", "kind": "first", "outcome": "ok", **fields}


BAD: dict[str, tuple[str, Change]] = {
    "no window": ("invalid_report", lambda report, now: report.pop("window")),
    "calls missing": ("invalid_report", lambda report, now: report["regions"][0].pop("calls")),
    "name missing": ("invalid_report", lambda report, now: report["regions"][0].pop("name")),
    "calls is text": ("invalid_report", region(calls="7")),
    "calls is true": ("invalid_report", region(calls=True)),
    "calls is 1.5": ("invalid_report", region(calls=1.5)),
    "calls is negative": ("invalid_report", region(calls=-1)),
    "calls is 2^53": ("invalid_report", region(calls=1 << 53)),
    "calls is 2^64": ("invalid_report", region(calls=1 << 64)),
    "calls has 4,300 digits": ("invalid_report", region(calls=10**4299)),
    "eager count is negative": ("invalid_report", region(eager_by={"limit": -1})),
    "name is a number": ("invalid_report", region(name=7)),
    "NUL": ("invalid_report", region(name="for\x00ward")),
    "regions is an object": ("invalid_report", report(regions={})),
    "items is negative": ("invalid_report", region(items=-1)),
    "201 compiles": ("invalid_report", report(compiles=[compiled()] * 201)),
    "201 findings": ("invalid_report", report(findings=[{"kind": "guard", "text": "x"}] * 201)),
    "compile in the year 9999": ("invalid_report", report(compiles=[compiled(at=253402300799.0)])),
    "line is 2^31": ("invalid_report", report(compiles=[compiled(line=1 << 31)])),
    "phase is not finite in the sum": (
        "invalid_report",
        report(compiles=[compiled(seconds={"total": 1e308})]),
    ),
    "peak is negative": ("invalid_report", report(compiles=[compiled(new_peak=-1)])),
    "finding count is negative": (
        "invalid_report",
        report(findings=[{"kind": "guard", "text": "x", "count": -1}]),
    ),
    "finding costs negative seconds": (
        "invalid_report",
        report(findings=[{"kind": "guard", "text": "x", "seconds": -1.0}]),
    ),
    "fact without a moment": ("invalid_report", report(facts=[{"kind": "mark", "at": -5.0}])),
    "device memory is negative": (
        "invalid_report",
        report(gauges={"devices": [{"index": 0, "peak": -1}]}),
    ),
    "utilisation is 7": (
        "invalid_report",
        report(gauges={"devices": [{"index": 0, "utilisation": 7.0}]}),
    ),
    "losses are negative": ("invalid_report", report(losses={"merged_windows": -1})),
    "seq 0": ("invalid_seq", report(seq=[0, 0])),
    "seq backwards": ("invalid_seq", report(seq=[9, 8])),
    "seq is 2^63": ("invalid_seq", report(seq=[1 << 63, 1 << 63])),
    "seq of three": ("invalid_report", report(seq=[5, 6, 7])),
    "window ends before it starts": ("invalid_window", ending(0.0, -5.0)),
    "window in milliseconds": (
        "invalid_window",
        lambda report, now: report.update(window=[now * 1e3 - 1e4, now * 1e3]),
    ),
    "window in the year 292278994": ("invalid_window", report(window=[9.2e15, 9.2e15])),
    "window before 1970": ("invalid_window", report(window=[-10.0, -1.0])),
    "window in 1970": ("too_old", report(window=[1.0, 2.0])),
    "window of 8 days ago": ("too_old", ending(-8 * DAY)),
    "10 minutes ahead": ("in_future", ending(600)),
    "a year ahead": ("in_future", ending(365 * DAY)),
    "window is text": (
        "invalid_report",
        report(window=["2026-11-20T10:00:00Z", "2026-11-20T10:00:60Z"]),
    ),
    "another scale": ("invalid_sketch", sketch(scale=4)),
    "2,049 bins": ("invalid_sketch", sketch(bins=[1] * 2049, count=2049)),
    "bins out of reach": ("invalid_sketch", sketch(offset=10**9)),
    "bins out of reach below": ("invalid_sketch", sketch(offset=-(10**9))),
    "no bins but an offset out of reach": (
        "invalid_sketch",
        sketch(bins=[], count=0, offset=10**30),
    ),
    "count is not the sum": ("invalid_sketch", sketch(count=7)),
    "negative bin": ("invalid_sketch", sketch(bins=[101, -1], count=100)),
    "min above max": ("invalid_sketch", sketch(min=9.0)),
    "max outside the last bin": ("invalid_sketch", sketch(max=1e9)),
    "everything in the last bin, 2^62 times": (
        "invalid_sketch",
        sketch(bins=[1 << 62], offset=1023, count=1 << 62, max=4.2e9, min=4.2e9),
    ),
    "sum is 1e300": ("invalid_sketch", sketch(sum=1e300)),
}


@pytest.fixture
def pair(make_request: Make) -> dict[str, Any]:
    """A request of two reports."""
    return encode(make_request(minutes=2, first_seq=101))


def test_each_bad_report_has_its_code(endpoint: Endpoint, pair: dict[str, Any]) -> None:
    text, wrong = json.dumps(pair), {}
    for name, (code, change) in BAD.items():
        data = json.loads(text)
        change(data["reports"][0], data["sent"])
        answer = endpoint.send_json(json.dumps(data))
        rejected = answer.json.get("rejected", [])
        if (
            answer.status != 200
            or answer.json["acked"] != [[102, 102]]
            or [entry["code"] for entry in rejected] != [code]
        ):
            wrong[name] = answer.body[:300]
        assert code in REJECTED_CODES
    assert wrong == {}
    assert [(row.seq_first, row.seq_last) for row in InboxRow.objects.all()] == [(102, 102)]


def test_the_answer_names_the_report_and_the_field(
    endpoint: Endpoint, pair: dict[str, Any]
) -> None:
    pair["reports"][0]["regions"][0]["calls"] = "many"
    [rejected] = endpoint.send_json(json.dumps(pair)).json["rejected"]
    assert rejected == {
        "seq": [101, 101],
        "code": "invalid_report",
        "detail": "regions[0].calls: expected `int`, got `str`",
    }


def test_malformed_json_refuses_the_request(endpoint: Endpoint, pair: dict[str, Any]) -> None:
    pair["reports"][0]["regions"][0]["items"] = "HERE"
    for literal in ("NaN", "Infinity", "-Infinity", '"\\ud800"', '"\\udc00\\ud800"'):
        assert endpoint.send_json(json.dumps(pair).replace('"HERE"', literal)).outcome == (
            400,
            "not_json",
        ), literal
    assert not InboxRow.objects.exists()


def test_a_number_too_large_for_a_float_refuses_its_report(
    endpoint: Endpoint, pair: dict[str, Any]
) -> None:
    pair["reports"][0]["regions"][0]["items"] = "HERE"
    for literal in ("1e400", "1e100000", "1" * 5000):
        answer = endpoint.send_json(json.dumps(pair).replace('"HERE"', literal))
        assert (
            answer.json["acked"] == [[102, 102]]
            and answer.json["rejected"][0]["code"] == "invalid_report"
        )


HOSTILE = [
    "\u202egnp.exe\u2066",
    "e\u0301" * 100 + "\u0301" * 300,
    "\x1b[31mred",
    "two\r\nlines",
    "<script>alert(1)</script>",
    "<!channel> <@U1> ```",
    "=cmd|' /C calc'!A0",
    "../../etc/passwd",
    "C:\\Windows\\x",
    "\\\\host\\share",
    "{{7*7}} %s%n {0.__class__}",
    "'; DROP TABLE ingest_inbox; --",
    "a" * 400 + "!",
    "\\u0000 written out",
    "\\\\u0000",
]


def test_text_of_any_kind_is_stored_unchanged(endpoint: Endpoint, pair: dict[str, Any]) -> None:
    for number, text in enumerate(HOSTILE):
        pair["reports"][0].update(seq=[number + 1, number + 1])
        pair["reports"][0]["regions"][0]["name"] = text
        assert endpoint.send_json(json.dumps(pair)).json["acked"][0] == [number + 1, number + 1]
    stored = [
        report_read(bytes(row.report)).regions[0].name
        for row in InboxRow.objects.filter(seq_first__lt=100).order_by("seq_first")
    ]
    assert stored == HOSTILE


def test_legal_edge_values_are_accepted(endpoint: Endpoint, pair: dict[str, Any]) -> None:
    now = pair["sent"]
    legal = [
        report(window=[now, now]),
        report(window=[now - 30 * DAY, now]),
        ending(-7 * DAY + 60),
        ending(60),
        region(items=-0.0),
        region(items=5e-324),
        report(seq=[10**9, 10**9]),
        report(losses={"merged_windows": 1 << 40}),
        report(findings=[{"kind": "unheard-of", "text": ""}]),
        report(compiles=[compiled(kind="unheard-of", saved=-1e-9)] * 200),
    ]
    for number, change in enumerate(legal):
        data = json.loads(json.dumps(pair))
        data["reports"] = data["reports"][:1]
        data["reports"][0]["seq"] = [number + 1, number + 1]
        change(data["reports"][0], now)
        assert endpoint.send_json(json.dumps(data)).json["acked"] == [data["reports"][0]["seq"]], (
            number
        )
