"""Bodies with broken, hostile or unexpected JSON: the whole request is refused, nothing is stored,
and the next request is accepted."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from compilewatch.wire.codec import dumps, encode
from compilewatch.wire.messages import Request

from dashboard.ingest.models import InboxRow, Sender
from tests.dashboard.ingest.conftest import Endpoint

pytestmark = pytest.mark.django_db(transaction=True)
Make = Callable[..., Request]
Text = str | bytes

NOT_JSON, BAD_REQUEST = (400, "not_json"), (400, "bad_request")

BROKEN: dict[str, tuple[Text, tuple[int, str]]] = {
    "blank": (" ", NOT_JSON),
    "null": ("null", BAD_REQUEST),
    "a list": ("[]", BAD_REQUEST),
    "a text": ('"x"', BAD_REQUEST),
    "an empty object": ("{}", BAD_REQUEST),
    "single quotes": ("{'v': 1}", NOT_JSON),
    "a comment": ('{"v": 1 /* one */}', NOT_JSON),
    "a trailing comma": ('{"v": 1,}', NOT_JSON),
    "a byte order mark": (b'\xef\xbb\xbf{"v": 1}', NOT_JSON),
    "utf-16": ('{"v": 1}'.encode("utf-16"), NOT_JSON),
    "not utf-8": (b'{"v": 1, "x": "\xff"}', NOT_JSON),
    "overlong utf-8": (b'{"v": 1, "x": "\xc0\xaf"}', NOT_JSON),
    "a surrogate in utf-8": (b'{"v": 1, "x": "\xed\xa0\x80"}', NOT_JSON),
    "a control character": (b'{"v": 1, "x": "\x00"}', NOT_JSON),
    "an open bracket": ('{"v": [1}', BAD_REQUEST),
    "1 MiB of lists": ("[" + "[]," * 349_000 + "[]]", BAD_REQUEST),
    "1 MiB of objects": ("[" + "{}," * 349_000 + "{}]", BAD_REQUEST),
    "100,000 levels": ("[" * 100_000 + "]" * 100_000, BAD_REQUEST),
    "100,000 open brackets": ("[" * 100_000, BAD_REQUEST),
    "500,000 empty strings": ("[" + '"",' * 340_000 + '""]', BAD_REQUEST),
}


def test_a_body_that_is_no_json_object(endpoint: Endpoint, make_request: Make) -> None:
    got = {name: endpoint.send_json(body).outcome for name, (body, _) in BROKEN.items()}
    assert got == {name: wanted for name, (_, wanted) in BROKEN.items()}
    good = dumps(make_request())
    assert endpoint.send_json(good[:-1]).status == 400
    assert endpoint.send_json(good + good).outcome == NOT_JSON
    assert not InboxRow.objects.exists()
    assert endpoint.send_json(good).status == 200


def test_an_invalid_time_of_sending(endpoint: Endpoint, make_request: Make) -> None:
    data = encode(make_request())
    data["sent"] = "HERE"
    for literal in (
        "NaN",
        "Infinity",
        "-Infinity",
        "1e400",
        "1e100000",
        "1" * 4301,
        "true",
        '"1"',
        "null",
    ):
        assert endpoint.send_json(json.dumps(data).replace('"HERE"', literal)).status == 400, (
            literal
        )
    assert not InboxRow.objects.exists()


def changed(make_request: Make, change: Callable[[dict[str, Any]], Any]) -> str:
    data = encode(make_request())
    change(data)
    return json.dumps(data)


def setting(**fields: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda data: data.update(fields)


def without(field: str) -> Callable[[dict[str, Any]], Any]:
    return lambda data: data.pop(field)


def in_identity(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda data: change(data["instance"])


def test_another_version_is_426_even_if_the_rest_is_not_understood(
    endpoint: Endpoint, make_request: Make
) -> None:
    for other in (0, 2, 99, -1):
        assert endpoint.send_json(changed(make_request, setting(v=other))).outcome == (
            426,
            "wrong_version",
        )
    assert endpoint.send_json('{"v": 2, "reports": {"of": "another kind"}}').outcome == (
        426,
        "wrong_version",
    )
    for no_version in (True, 1.0, "1", None):
        assert (
            endpoint.send_json(changed(make_request, setting(v=no_version))).outcome == BAD_REQUEST
        )
    assert endpoint.report(make_request()).status == 200


IDENTITIES: dict[str, dict[str, Any]] = {
    "no id": {"id": None},
    "short id": {"id": "0" * 25},
    "long id": {"id": "0" * 27},
    "upper-case id": {"id": "A" * 26},
    "id with other letters": {"id": "é" * 26},
    "empty model": {"model": ""},
    "blank version": {"version": "  "},
    "model is a number": {"model": 7},
    "NUL in a name": {"model": "rank\x00er"},
    "negative rank": {"rank": -1},
    "huge world": {"world_size": 1 << 63},
    "rank is true": {"rank": True},
    "started in milliseconds": {"started": 1.79e12},
    "started before time": {"started": -1.0},
    "started is text": {"started": "2026-11-20T10:00:00Z"},
    "capabilities of one": {"capabilities": {"x": ["yes"]}},
}


def test_an_invalid_identity(endpoint: Endpoint, make_request: Make) -> None:
    for name, fields in IDENTITIES.items():
        answer = endpoint.send_json(changed(make_request, in_identity(setting(**fields))))
        assert answer.outcome == BAD_REQUEST, name
    for field in ("id", "model", "version", "started"):
        answer = endpoint.send_json(changed(make_request, in_identity(without(field))))
        assert answer.outcome == BAD_REQUEST and field in answer.json["detail"]
    for text in ("\ud800", "\udc00\ud800"):
        assert (
            endpoint.send_json(changed(make_request, in_identity(setting(version=text)))).outcome
            == NOT_JSON
        )
    assert not InboxRow.objects.exists() and not Sender.objects.exists()


def test_each_missing_field_is_named(endpoint: Endpoint, make_request: Make) -> None:
    for field in ("v", "sent", "instance", "reports"):
        for change in (without(field), setting(**{field: "x"})):
            answer = endpoint.send_json(changed(make_request, change))
            assert answer.outcome == BAD_REQUEST and answer.json["detail"].startswith(field)


def test_33_reports_are_too_many(endpoint: Endpoint, make_request: Make) -> None:
    assert endpoint.report(make_request(minutes=33)).outcome == BAD_REQUEST
    assert not InboxRow.objects.exists()
    assert len(endpoint.report(make_request(minutes=32)).json["acked"]) == 32


def test_depth_16_is_allowed_and_17_is_not(endpoint: Endpoint, make_request: Make) -> None:
    def nest(data: dict[str, Any], depth: int) -> None:
        data["unknown"] = json.loads("[" * depth + "]" * depth)

    assert (
        endpoint.send_json(changed(make_request, lambda data: nest(data, 16))).outcome
        == BAD_REQUEST
    )
    assert endpoint.send_json(changed(make_request, lambda data: nest(data, 15))).status == 200


def test_brackets_and_quotes_inside_text_are_text(endpoint: Endpoint, make_request: Make) -> None:
    request = make_request(host="[" * 200 + '\\"]{{' + "\\" * 7)
    assert endpoint.report(request).status == 200


def test_unknown_fields_and_hostile_keys_are_ignored(
    endpoint: Endpoint, make_request: Make
) -> None:
    extra: dict[str, Any] = {
        "__proto__": {"x": 1},
        "constructor": [],
        "": None,
        **{f"k{n}": n for n in range(20_000)},
    }
    assert (
        endpoint.send_json(
            changed(
                make_request, lambda data: (data.update(extra), data["reports"][0].update(extra))
            )
        ).status
        == 200
    )


def test_the_last_of_two_equal_keys_counts(endpoint: Endpoint, make_request: Make) -> None:
    text = json.dumps(encode(make_request())).replace(
        '"seq": [1, 1]', '"seq": [7, 7], "seq": [3, 3]'
    )
    assert endpoint.send_json(text).json["acked"] == [[3, 3]]
    assert InboxRow.objects.get().seq_first == 3
