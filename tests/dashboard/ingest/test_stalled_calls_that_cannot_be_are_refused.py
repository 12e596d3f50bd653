"""More stalled calls than calls, and negative or absurd durations, are refused with the name of the
field, and add nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from compilewatch.wire.codec import encode
from compilewatch.wire.messages import Request
from compilewatch.wire.sketch import Sketch

from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import RegionMinute
from dashboard.ingest.models import InboxRow
from tests.dashboard.ingest.conftest import Endpoint

pytestmark = pytest.mark.django_db(transaction=True)


def plain(sketch: Sketch, **changed: Any) -> dict[str, Any]:
    fields = ("scale", "count", "sum", "min", "max", "zero", "offset", "bins")
    return {name: getattr(sketch, name) for name in fields} | changed


WAITED = Sketch.of([0.5] * 3)
WRONG: list[tuple[dict[str, Any], int, str]] = [
    (plain(WAITED), 2, "regions[0].stalled: expected at most the number of calls (2), got 3"),
    (plain(WAITED, sum=-1.0), 9, "regions[0].stalled: sum and max must lie between 0 and 1e15"),
    (plain(WAITED, min=-0.5), 9, "regions[0].stalled: min must be between 0 and max"),
    (plain(WAITED, count=-3), 9, "regions[0].stalled: count, zero and bins must not be negative"),
    (plain(WAITED, count=5), 9, "regions[0].stalled: count is 5, but zero and bins hold 3"),
    (plain(Sketch.of([1e6] * 3)), 9, "regions[0].stalled.max: expected at most 604800 seconds"),
]


def test_each_invalid_value_is_refused_by_name_and_adds_nothing(
    endpoint: Endpoint, make_request: Callable[..., Request]
) -> None:
    text = json.dumps(encode(make_request(minutes=2, first_seq=101)))
    for stalled, calls, detail in WRONG:
        request = json.loads(text)
        request["reports"][0]["regions"][0].update(calls=calls, stalled=stalled)
        answer = endpoint.send_json(json.dumps(request))
        assert [one["detail"] for one in answer.json["rejected"]] == [detail]
        assert answer.json["acked"] == [[102, 102]]
    assert InboxRow.objects.count() == 1
    fold_all()
    assert set(RegionMinute.objects.values_list("stalled_count", flat=True)) == {None}, (
        "absent is not zero"
    )
