"""Messages of earlier agents and servers are read completely, and written identically today."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from compilewatch.wire.ack import Ack
from compilewatch.wire.codec import decode, encode
from compilewatch.wire.errors import Error
from compilewatch.wire.messages import Request

FOLDER = Path(__file__).parent.parent / "data" / "wire" / "v1"
CLASSES: dict[str, type] = {"request": Request, "ack": Ack, "error": Error}
FILES = sorted(FOLDER.glob("*.json"))


def test_there_is_a_file_for_every_kind_of_message() -> None:
    assert {path.stem.split("-")[0] for path in FILES} == set(CLASSES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_golden_file_is_read_and_written_back_as_it_is(path: Path) -> None:
    data = json.loads(path.read_text())
    message: object = decode(CLASSES[path.stem.split("-")[0]], data)
    assert encode(message) == data


def test_the_full_request_contains_every_field() -> None:
    request = decode(Request, json.loads((FOLDER / "request-full.json").read_text()))
    first = request.reports[0]
    assert (first.seq, first.regions[0].name, first.regions[0].eager_by) == (
        (41, 57),
        "forward",
        {"limit": 20, "stance": 1},
    )
    assert first.regions[0].latency is not None and first.regions[0].latency.problem() is None
    assert first.compiles[0].seconds["inductor"] == 2.6
    assert first.gauges.devices[1].allocated is None
    assert first.losses.merged_windows == 16
