"""Rows 89 to 120: fields that are missing, of a wrong type or out of range, sketches and times."""

from __future__ import annotations

import dataclasses
import time
import types
import typing
from collections.abc import Iterator
from typing import Any

from compilewatch.wire.messages import (
    MAX_REPORTS,
    Compile,
    Device,
    Fact,
    Finding,
    Gauges,
    Identity,
    Losses,
    Region,
    Report,
    Request,
)
from compilewatch.wire.sketch import Sketch

from tests.hostile.case import BAD_REQUEST, NOTHING, STORED, Case, Outcome, Send, rejected, spoil
from tests.hostile.target import Answer, Target

INVALID = rejected("invalid_report")
SKETCH = rejected("invalid_sketch")
WINDOW = rejected("invalid_window")
ANY_REJECTION = Outcome((200,), "invalid_report|invalid_seq|invalid_window|invalid_sketch")
OTHER_VERSION = Outcome((426,), "wrong_version")
HOUR, DAY, YEAR = 3600.0, 86400.0, 31_556_952.0

Path = tuple[str | int, ...]
REPORT: Path = ("reports", 0)
PLACES: dict[type, Path] = {
    Request: (),
    Identity: ("instance",),
    Report: REPORT,
    Region: (*REPORT, "regions", 0),
    Sketch: (*REPORT, "regions", 0, "latency"),
    Compile: (*REPORT, "compiles", 0),
    Finding: (*REPORT, "findings", 0),
    Fact: (*REPORT, "facts", 0),
    Gauges: (*REPORT, "gauges"),
    Device: (*REPORT, "gauges", "devices", 0),
    Losses: (*REPORT, "losses"),
}
"""The place of one message of each class in a full request."""


def full(target: Target) -> dict[str, Any]:
    """A good request in which every class of the wire occurs."""
    data = target.data()
    report = data["reports"][0]
    at = report["window"][1]
    report["compiles"] = [
        {"at": at, "id": "0/0", "kind": "first", "outcome": "ok", "seconds": {"total": 1.0}}
    ]
    report["findings"] = [{"kind": "guard", "text": "x"}]
    report["facts"] = [{"kind": "ready", "at": at}]
    report.setdefault("losses", {})
    return data


def place_of(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """The object at the path."""
    found: Any = data
    for step in path:
        found = found[step]
    return typing.cast(dict[str, Any], found)


def without(path: Path, name: str) -> Send:
    """A full request without one field."""

    def send(target: Target) -> Answer:
        data = full(target)
        place_of(data, path).pop(name, None)
        return target.post(data)

    return send


def with_value(path: Path, name: str, value: Any) -> Send:
    """A full request with another value in one field."""

    def send(target: Target) -> Answer:
        data = full(target)
        place_of(data, path)[name] = value
        return target.post(data)

    return send


def wrong_values(hint: Any) -> list[Any]:
    """Values that a field of this type must refuse; bool is not a number here, 1.5 not an integer,
    5 not text."""
    if hint is Any:
        return []
    if typing.get_origin(hint) is types.UnionType:
        of_type = wrong_values(
            next(part for part in typing.get_args(hint) if part is not type(None))
        )
        return [value for value in of_type if value is not None]
    return {
        int: [True, "1", 1.5, None, -1],
        float: [True, "1", None, [1]],
        str: [5, None, ["x"]],
        bool: [0, "true", None],
    }.get(typing.get_origin(hint) or hint, [5, "x", True])


def outcome_of(cls: type) -> Outcome:
    """The whole request is refused for an error outside a report, the report alone for an error
    inside it."""
    return BAD_REQUEST if cls in (Request, Identity) else ANY_REJECTION


def schema_cases() -> Iterator[Case]:
    """One case per field and wrong value, generated from the classes, so a new field is covered
    immediately."""
    for cls, path in PLACES.items():
        hints = typing.get_type_hints(cls)
        for item in dataclasses.fields(cls):
            name, where = item.name, f"{cls.__name__}.{item.name}"
            if item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING:
                yield Case(89, f"{where} is missing", without(path, name), outcome_of(cls))
            for value in wrong_values(hints[name]):
                negative = value == -1 and not isinstance(value, bool)
                if negative and (cls, name) in ALLOWED_BELOW_ZERO:
                    continue
                row = (
                    94
                    if negative
                    else 91
                    if value is True
                    else 92
                    if value == 5
                    else 93
                    if value == 1.5
                    else 90
                )
                wanted = (
                    OTHER_VERSION if negative and (cls, name) == (Request, "v") else outcome_of(cls)
                )
                yield Case(row, f"{where} = {value!r}", with_value(path, name, value), wanted)


ALLOWED_BELOW_ZERO = {(Sketch, "offset")}


def sketch(**fields: Any) -> Send:
    """A latency sketch with other fields."""
    return spoil(lambda data, report: report["regions"][0]["latency"].update(fields))


def window(start: float, end: float) -> Send:
    """A window that begins and ends this number of seconds from now."""

    def change(data: dict[str, Any], report: dict[str, Any]) -> None:
        now = time.time()
        report["window"] = [now + start, now + end]

    return spoil(change)


def seq(*pair: int) -> Send:
    """Another sequence range."""
    return spoil(lambda data, report: report.update(seq=list(pair)))


def instance(text: str) -> Send:
    """Another id."""
    return spoil(lambda data, report: data["instance"].update(id=text))


def foreign(target: Target) -> Answer:
    """An id that an instance of another project has; each project has its own ids."""
    target.post(target.data(), Authorization=f"Bearer {target.others['foreign']}")
    return target.post(target.data())


def empty_sketch(report: dict[str, Any]) -> None:
    report["regions"][0]["latency"] = {
        "scale": 5,
        "count": 0,
        "sum": 0.0,
        "min": 0.0,
        "max": 0.0,
        "offset": 0,
        "bins": [],
    }
    report["regions"][0] |= {"calls": 0, "compiled": 0, "sampled": 0}


CASES = (
    *schema_cases(),
    Case(95, "unknown fields everywhere", lambda target: target.post({**full(target), "x": {"y": [1]}}), STORED),
    *(Case(96, f"version {version}", spoil(lambda data, report, version=version: data.update(v=version)), OTHER_VERSION)
      for version in (0, 2, 10**9)),
    Case(97, "33 reports", spoil(lambda data, report: data.update(reports=[report] * (MAX_REPORTS + 1))), BAD_REQUEST),
    Case(98, "201 compilations", spoil(lambda data, report: report.update(
        compiles=[{"at": 1e9, "id": "0/0", "kind": "first", "outcome": "ok"}] * 201)), INVALID),
    Case(98, "201 findings", spoil(lambda data, report: report.update(findings=[{"kind": "guard", "text": "x"}] * 201)), INVALID),
    *(Case(100, f"seq {pair}", seq(*pair), rejected("invalid_seq")) for pair in ((0, 0), (-1, -1), (2, 1), (1, (1 << 53) + 1))),
    Case(100, "seq 2^63", seq(1 << 63, 1 << 63), rejected("invalid_seq")),
    Case(100, "seq that begins at 10^9", seq(10**9, 10**9), STORED),
    *(Case(101, f"id {text[:30]!r}", instance(text), BAD_REQUEST)
      for text in ("", "a" * 25, "a" * 27, "A" * 26, "ä" * 26, "a" * 25 + "/", "../" * 9)),
    Case(101, "an id of a foreign project", foreign, STORED),
    Case(102, "an empty batch", spoil(lambda data, report: data.update(reports=[])), NOTHING),
    *(Case(103, f"bins {value!r}", sketch(bins=[value]), ANY_REJECTION) for value in (None, "NaN", 1.5, -1, True)),
    Case(104, "2,049 bins", sketch(bins=[1] * 2049, count=2049, offset=-1024, zero=0), SKETCH),
    *(Case(105, f"offset {offset}", sketch(offset=offset), SKETCH) for offset in (10**9, -(10**9), 1 << 40)),
    Case(106, "count that is not the sum of the bins", sketch(count=7), SKETCH),
    Case(107, "min above max", sketch(min=2.0, max=1.0), SKETCH),
    Case(108, "bins outside min and max", sketch(min=1e-9, max=2e-9), SKETCH),
    *(Case(109, f"scale {scale}", sketch(scale=scale), SKETCH) for scale in (4, 6, 0, -5, 1 << 30)),
    Case(110, "negative minimum", sketch(min=-1.0), SKETCH),
    Case(111, "all in the outermost bin", spoil(lambda data, report: report["regions"][0].update(
        latency={"scale": 5, "count": 100, "sum": 1e12, "min": 1e10, "max": 1e10, "offset": 1023, "bins": [100]})), STORED),
    Case(112, "counts that overflow", sketch(count=1 << 62, bins=[1 << 62], zero=0), SKETCH),
    Case(112, "an endless sum", sketch(sum=1e300), SKETCH),
    Case(102, "an empty sketch", spoil(lambda data, report: empty_sketch(report)), STORED),
    Case(113, "a window that ends before it starts", window(0, -10), WINDOW),
    Case(114, "a window of no length", window(-5, -5), STORED),
    Case(115, "a window of 30 days", window(-30 * DAY, -5), STORED),
    Case(116, "the year 1970", spoil(lambda data, report: report.update(window=[0, 10])), Outcome((200,), "too_old")),
    *(Case(116, f"the year {year}", spoil(lambda data, report, year=year: report.update(window=[(year - 1970) * YEAR] * 2)), WINDOW)
      for year in (9999, 292278994)),
    *(Case(117, f"{seconds:g} s in the future", window(seconds - 10, seconds), rejected("in_future")) for seconds in (600, HOUR, YEAR)),
    Case(118, "8 days old", window(-8 * DAY - 10, -8 * DAY), Outcome((200,), "too_old")),
    *(Case(119, text, spoil(lambda data, report, text=text: report.update(window=[text, text])), INVALID)
      for text in ("2026-11-20T10:00:00+01:00", "2026-11-20T10:00:00", "2026-12-31T23:59:60Z")),
    Case(120, "milliseconds", spoil(lambda data, report: report.update(window=[moment * 1000 for moment in report["window"]])), WINDOW),
    Case(120, "a moment as text", spoil(lambda data, report: report.update(window=["1795000000", "1795000010"])), INVALID),
    Case(120, "milliseconds in sent", spoil(lambda data, report: data.update(sent=data["sent"] * 1000)), BAD_REQUEST),
)  # fmt: skip
