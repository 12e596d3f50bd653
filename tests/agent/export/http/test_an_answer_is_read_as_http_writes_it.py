"""HTTP responses: the agent reads every form of HTTP/1.1 and refuses every other sequence of
bytes."""

from __future__ import annotations

import random
import socket
import time
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from compilewatch.export.http.connection import BoundedSocket
from compilewatch.export.http.response import ResponseError, read_response
from compilewatch.export.sender import _retry_after_seconds as seconds_until

OK = b"HTTP/1.1 200 OK\r\n"
WHOLE = {
    "a length": b"Content-Length: 4\r\n\r\nbodyrest",
    "no length": b"\r\nbody",
    "a length that is not a number": b"Content-Length: four\r\n\r\nbody",
    "a negative length": b"Content-Length: -4\r\n\r\nbody",
    "chunks": b"Transfer-Encoding: Chunked\r\n\r\n1\r\nb\r\n3;name=value\r\nody\r\n0\r\nTrailer: x\r\n\r\n",
    "chunks and a length": b"content-length: 99\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
    "bare line feeds": b"Content-Length:4\n\nbody",
    "a header twice": b"Content-Length: 4\r\nContent-Length: 9\r\n\r\nbody",
    "a line that is not a header": b"words\r\nContent-Length: 4\r\n\r\nbody",
}
BROKEN = {
    "nothing": b"",
    "another protocol": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "another version": b"HTTP/2 200 OK\r\n\r\n",
    "a status of two digits": b"HTTP/1.1 20 OK\r\n\r\n",
    "a status cut off": b"HTTP/1.1 200",
    "headers cut off": OK + b"Content-Length: 4\r\n",
    "a line cut off": OK + b"Content-Len",
    "101 headers": OK + b"A: b\r\n" * 101 + b"\r\n",
    "a body cut off": OK + b"Content-Length: 4\r\n\r\nbod",
    "a chunk cut off": OK + b"Transfer-Encoding: chunked\r\n\r\n4\r\nbod",
    "no last chunk": OK + b"Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n",
    "a chunk without a size": OK + b"Transfer-Encoding: chunked\r\n\r\nbody",
    "a chunk of negative size": OK + b"Transfer-Encoding: chunked\r\n\r\n-4\r\nbody",
    "a chunk of size -1": OK + b"Transfer-Encoding: chunked\r\n\r\n-1\r\nbody",
    "a chunk longer than its size": OK
    + b"Transfer-Encoding: chunked\r\n\r\n3\r\nbody\r\n0\r\n\r\n",
    "a length of 5,000 digits and a short body": OK
    + b"Content-Length: "
    + b"9" * 4000
    + b"\r\n\r\nbody",
}


def read(data: bytes) -> tuple[int, bytes]:
    """Reads the response from a real socket."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(data)
        theirs.shutdown(socket.SHUT_WR)
        response = read_response(BoundedSocket(ours, time.monotonic() + 60.0))
    return response.status, response.body


@pytest.mark.parametrize("rest", WHOLE.values(), ids=WHOLE.keys())
def test_a_body_arrives_whole(rest: bytes) -> None:
    assert read(OK + rest) == (200, b"body")


@pytest.mark.parametrize("status", [b"100 Continue", b"102 Processing", b"103 Early Hints"])
def test_an_interim_response_is_skipped(status: bytes) -> None:
    interim = b"HTTP/1.1 %b\r\nLink: x\r\nContent-Length: 2\r\n\r\n" % status
    assert read(2 * interim + OK + b"Content-Length: 4\r\n\r\nbody") == (200, b"body")
    with pytest.raises(ResponseError):
        read(interim)


@pytest.mark.parametrize("status", [101, 204, 304])
def test_some_responses_have_no_body(status: int) -> None:
    assert read(b"HTTP/1.1 %d\r\nContent-Length: 4\r\n\r\n" % status) == (status, b"")


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN.keys())
def test_an_incomplete_or_malformed_response_is_an_error(data: bytes) -> None:
    with pytest.raises(ResponseError):
        read(data)


def test_header_names_are_in_lower_case_and_the_first_value_counts() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(OK + b"Retry-After:  7 \r\nRETRY-AFTER: 9\r\nContent-Length: 0\r\n\r\n")
        headers = read_response(BoundedSocket(ours, time.monotonic() + 60.0)).headers
    assert headers == {"retry-after": "7", "content-length": "0"}


def test_a_date_is_a_time_from_now() -> None:
    chance = random.Random(1)
    for _ in range(1000):
        moment = chance.randrange(4_000_000_000)
        seconds = seconds_until(format_datetime(datetime.fromtimestamp(moment, UTC), usegmt=True))
        assert seconds is not None and abs(seconds - (moment - time.time())) < 60.0
    leap = seconds_until("Thu, 29 Feb 2024 00:00:00 -0000")
    assert (
        leap is not None
        and abs(leap - (datetime(2024, 2, 29, tzinfo=UTC).timestamp() - time.time())) < 60.0
    )
    assert [
        seconds_until(text)
        for text in ("", "soon", "Sun, 06 Nov 10000 08:49:37 GMT", "Sunday", "-1")
    ] == [None] * 5
