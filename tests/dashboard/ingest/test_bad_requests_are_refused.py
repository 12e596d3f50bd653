"""Requests that are wrong before their JSON is parsed: exact status and code, nothing stored, and
the next good report accepted."""

import gzip
import zlib
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest
from compilewatch.wire.codec import deflate, dumps, dumps_request
from compilewatch.wire.messages import MAX_WIRE_BYTES, Request
from django.test import Client

from dashboard.accounts.models import AuditEntry
from dashboard.common import clock
from dashboard.ingest.models import InboxRow
from dashboard.projects.key_auth import clear_key_cache
from dashboard.projects.key_format import key_text_generate
from dashboard.projects.models import Key, Project
from dashboard.projects.services import key_create, key_revoke
from tests.dashboard.ingest.conftest import PATH, Endpoint

pytestmark = pytest.mark.django_db(transaction=True)
Make = Callable[..., Request]

BAD_KEY, BAD_REQUEST, NOT_JSON, TOO_LARGE, WRONG_TYPE = (
    (401, "bad_key"),
    (400, "bad_request"),
    (400, "not_json"),
    (413, "too_large"),
    (415, "wrong_type"),
)


def outcomes(
    endpoint: Endpoint, cases: Mapping[str, tuple[dict[str, Any], tuple[int, str]]], good: bytes
) -> dict[str, tuple[int, str]]:
    """The cases with an unexpected outcome, and those outcomes."""
    wrong = {}
    for name, (call, wanted) in cases.items():
        got = endpoint.send(**{"body": good, **call}).outcome
        if got != wanted:
            wrong[name] = got
    return wrong


def check(
    endpoint: Endpoint,
    make_request: Make,
    cases: Mapping[str, tuple[dict[str, Any], tuple[int, str]]],
) -> None:
    request = make_request()
    assert outcomes(endpoint, cases, dumps_request(request)) == {}
    assert not InboxRow.objects.exists()
    assert endpoint.report(request).json["acked"] == [[1, 1]]


def bearer(text: str | None) -> dict[str, Any]:
    return {"headers": {"Authorization": text}}


def test_a_wrong_key_is_401(endpoint: Endpoint, make_request: Make, project: Project) -> None:
    revoked, expired = (
        key_create(project=project),
        key_create(project=project, expires_at=clock.now() - timedelta(seconds=1)),
    )
    key_revoke(key=revoked[0])
    mistyped = endpoint.key[:-1] + ("a" if endpoint.key[-1] != "a" else "b")
    cases = {
        "no key": bearer(None),
        "empty": bearer(""),
        "another scheme": bearer(f"Basic {endpoint.key}"),
        "mistyped": bearer(f"Bearer {mistyped}"),
        "unknown": bearer(f"Bearer {key_text_generate('ing').text}"),
        "revoked": bearer(f"Bearer {revoked[1]}"),
        "expired": bearer(f"Bearer {expired[1]}"),
        "4 KiB long": bearer("Bearer " + "k" * 4096),
        "not ASCII": bearer("Bearer cw_ing_schlüssel"),
        "two in one header": bearer(f"Bearer {endpoint.key}, Bearer {endpoint.key}"),
    }
    check(endpoint, make_request, {name: (call, BAD_KEY) for name, call in cases.items()})
    assert (
        endpoint.send(b"", headers={"Authorization": None}).headers["WWW-Authenticate"] == "Bearer"
    )


def test_a_key_that_reads_may_not_send(
    endpoint: Endpoint, make_request: Make, api_key: str
) -> None:
    check(
        endpoint, make_request, {"reading key": (bearer(f"Bearer {api_key}"), (403, "wrong_scope"))}
    )


def test_a_key_in_the_url_is_refused_marked_and_recorded_once_a_minute(
    endpoint: Endpoint, make_request: Make
) -> None:
    call = {"path": f"{PATH}?key={endpoint.key}"}
    check(
        endpoint,
        make_request,
        {"with a header too": (call, (400, "key_in_url")), "again": (call, (400, "key_in_url"))},
    )
    entry = AuditEntry.objects.get(action="key.exposed")
    assert (
        entry.after == {"where": "URL"}
        and entry.address == "127.0.0.1"
        and endpoint.key not in entry.subject
    )
    assert Key.objects.get(lookup=endpoint.key[7:15]).exposed_at is not None


@pytest.mark.parametrize("quoted", ["%5F", "%5f", "%255F"])
def test_a_key_with_percent_encoded_underscores_is_a_key_in_the_url(
    quoted: str, endpoint: Endpoint, make_request: Make
) -> None:
    text = endpoint.key.replace("_", quoted)
    check(endpoint, make_request, {quoted: ({"path": f"{PATH}?key={text}"}, (400, "key_in_url"))})
    assert Key.objects.get(lookup=endpoint.key[7:15]).exposed_at is not None


def test_a_revoked_key_stops_working_within_a_second(
    endpoint: Endpoint, make_request: Make
) -> None:
    assert endpoint.report(make_request()).status == 200
    key_revoke(key=Key.objects.get(kind="ing"))
    clear_key_cache()
    assert endpoint.report(make_request(first_seq=2)).outcome == BAD_KEY
    assert InboxRow.objects.count() == 1


def test_only_post_with_a_length_and_a_type(endpoint: Endpoint, make_request: Make) -> None:
    def typed(content_type: str | None) -> dict[str, Any]:
        return {"headers": {"Content-Type": content_type}}

    cases: dict[str, tuple[dict[str, Any], tuple[int, str]]] = {
        **{
            method: ({"method": method}, (405, "wrong_method"))
            for method in ("GET", "PUT", "DELETE", "PATCH", "OPTIONS")
        },
        "no body": ({"body": b""}, BAD_REQUEST),
        "text": (typed("text/plain"), WRONG_TYPE),
        "a form": (typed("multipart/form-data; boundary=x"), WRONG_TYPE),
        "utf-16": (typed("application/json; charset=utf-16"), WRONG_TYPE),
        "no type": (typed(None), WRONG_TYPE),
        "a host of others": ({"headers": {"Host": "elsewhere.example"}}, BAD_REQUEST),
        **{
            coding: ({"headers": {"Content-Encoding": coding}}, WRONG_TYPE)
            for coding in ("deflate", "br", "zstd", "gzip, gzip")
        },
        "one byte too long": ({"body": b" " * (MAX_WIRE_BYTES + 1)}, TOO_LARGE),
    }
    check(endpoint, make_request, cases)


def test_a_body_that_is_not_one_gzip_member_of_bounded_size(
    endpoint: Endpoint, make_request: Make
) -> None:
    text = dumps(make_request())
    good = deflate(text)
    bomb = zlib.compressobj(9, wbits=31)
    bomb_bytes = b"".join(bomb.compress(bytes(1 << 20)) for _ in range(64)) + bomb.flush()
    cases = {
        "64 MiB in 64 KiB": (bomb_bytes, TOO_LARGE),
        "5 MiB in less than 1 MiB": (
            gzip.compress(bytes(n * 7919 >> 7 & 63 for n in range(5 << 20))),
            TOO_LARGE,
        ),
        "ratio of 1,000 below the size limit": (gzip.compress(bytes(1 << 20)), TOO_LARGE),
        "gzip of gzip": (deflate(good), NOT_JSON),
        "cut off": (good[:-20], BAD_REQUEST),
        "wrong checksum": (good[:-8] + b"\0\0\0\0" + good[-4:], BAD_REQUEST),
        "more after the member": (good + b"x", BAD_REQUEST),
        "two members": (good + good, BAD_REQUEST),
        "10,000 empty members": (gzip.compress(b"") * 10_000, BAD_REQUEST),
        "not gzip": (text, BAD_REQUEST),
    }
    check(
        endpoint,
        make_request,
        {name: ({"body": body}, wanted) for name, (body, wanted) in cases.items()},
    )
    plain = endpoint.send(good, headers={"Content-Encoding": None})
    assert plain.outcome == NOT_JSON


def test_a_body_shorter_than_its_length_is_not_stored(
    endpoint: Endpoint, make_request: Make
) -> None:
    body = dumps_request(make_request())
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer "
        f"{endpoint.key}\r\nContent-Type: application/json\r\n"
    )
    endpoint.exchange_bytes(
        f"{head}Content-Encoding: gzip\r\nContent-Length: {len(body) + 9}\r\n\r\n".encode() + body
    )
    for length in ("-1", "+5", "0x10", "five"):
        assert b" 200 " not in endpoint.exchange_bytes(
            f"{head}Content-Length: {length}\r\n\r\n".encode() + body
        )
    assert not InboxRow.objects.exists()
    assert endpoint.report(make_request()).status == 200


def test_plain_http_is_refused_except_from_loopback(
    client: Client, ingest_key: str, make_request: Make, settings: Any, transactional_db: None
) -> None:
    settings.ALLOW_HTTP = False

    def send(**meta: Any) -> Any:
        body = dumps_request(make_request())
        headers: dict[str, Any] = {
            "HTTP_AUTHORIZATION": f"Bearer {ingest_key}",
            "HTTP_CONTENT_ENCODING": "gzip",
        }
        return client.post(PATH, body, content_type="application/json", **headers, **meta)

    for meta in (
        {"REMOTE_ADDR": "192.0.2.7"},
        {"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": "192.0.2.7"},
        {"REMOTE_ADDR": ""},
    ):
        answer = send(**meta)
        assert (answer.status_code, answer.json()["code"]) == (403, "plain_http")
    assert AuditEntry.objects.get(action="key.exposed").after == {"where": "plain http"}
    assert not InboxRow.objects.exists()
    assert send(REMOTE_ADDR="127.0.0.1").status_code == 200
    assert send(REMOTE_ADDR="192.0.2.7", **{"wsgi.url_scheme": "https"}).status_code == 200


def test_a_session_cookie_is_ignored(
    endpoint: Endpoint, make_request: Make, signed_in: Client, settings: Any
) -> None:
    cookie = (
        f"{settings.SESSION_COOKIE_NAME}={signed_in.cookies[settings.SESSION_COOKIE_NAME].value}"
    )
    body = dumps_request(make_request())
    assert endpoint.send(body, headers={"Cookie": cookie}).status == 200
    assert endpoint.send(body, headers={"Cookie": cookie, "Authorization": None}).outcome == BAD_KEY


def test_every_address_under_api_answers_errors_in_the_one_shape(endpoint: Endpoint) -> None:
    assert endpoint.send(b"", method="GET", path="/api/v1/nothing-here").outcome == (
        404,
        "not_found",
    )
    assert endpoint.send(b"", method="GET", path="/api/").outcome == (404, "not_found")
