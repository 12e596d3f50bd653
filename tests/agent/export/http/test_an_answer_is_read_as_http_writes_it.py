"""An answer in any of the ways in which HTTP/1.1 lets a server write it, and what is none."""

from __future__ import annotations

import io
import random
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from compilewatch.export.http.response import AnswerError, body_read, head_read, unix_of

OK = b"HTTP/1.1 200 OK\r\n"
WHOLE = {
    "a length": b"Content-Length: 4\r\n\r\nbodyrest",
    "no length": b"\r\nbody",
    "a length that is no number": b"Content-Length: four\r\n\r\nbody",
    "chunks": b"Transfer-Encoding: Chunked\r\n\r\n1\r\nb\r\n3;name=value\r\nody\r\n0\r\nTrailer: x\r\n\r\n",
    "chunks and a length": b"content-length: 99\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
    "bare line feeds": b"Content-Length:4\n\nbody",
    "a header twice": b"Content-Length: 4\r\nContent-Length: 9\r\n\r\nbody",
    "a header that is none": b"words\r\nContent-Length: 4\r\n\r\nbody",
}
BROKEN = {
    "nothing": b"",
    "another protocol": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "a status without meaning": b"HTTP/1.1 20 OK\r\n\r\n",
    "headers cut off": OK + b"Content-Length: 4\r\n",
    "a line cut off": OK + b"Content-Len",
    "a body cut off": OK + b"Content-Length: 4\r\n\r\nbod",
    "a chunk cut off": OK + b"Transfer-Encoding: chunked\r\n\r\n4\r\nbod",
    "no last chunk": OK + b"Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n",
    "a chunk without a size": OK + b"Transfer-Encoding: chunked\r\n\r\nbody",
    "a chunk of less than nothing": OK + b"Transfer-Encoding: chunked\r\n\r\n-4\r\nbody",
    "a chunk longer than it says": OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nbody\r\n0\r\n\r\n",
}


def read(data: bytes) -> tuple[int, bytes]:
    reader = io.BufferedReader(io.BytesIO(data))  # type: ignore[arg-type]
    answer = head_read(reader)
    return answer.status, body_read(reader, answer)


@pytest.mark.parametrize("rest", WHOLE.values(), ids=WHOLE.keys())
def test_a_body_arrives_whole(rest: bytes) -> None:
    assert read(OK + rest) == (200, b"body")


def test_an_interim_answer_is_passed_over() -> None:
    assert read(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK + b"Content-Length: 4\r\n\r\nbody") == (200, b"body")
    assert read(b"HTTP/1.1 100 Continue\r\nA: b\r\n\r\n" + OK + b"Content-Length: 4\r\n\r\nbody") == (200, b"body")


@pytest.mark.parametrize("status", [101, 204, 304])
def test_some_answers_have_no_body(status: int) -> None:
    assert read(b"HTTP/1.1 %d\r\nContent-Length: 4\r\n\r\n" % status) == (status, b"")


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN.keys())
def test_what_is_no_whole_answer_is_an_error(data: bytes) -> None:
    with pytest.raises(AnswerError):
        read(data)


def test_a_date_is_a_moment() -> None:
    chance = random.Random(1)
    for _ in range(1000):
        moment = chance.randrange(4_000_000_000)
        assert unix_of(format_datetime(datetime.fromtimestamp(moment, UTC), usegmt=True)) == moment
    assert unix_of("Thu, 29 Feb 2024 00:00:00 +0000") == datetime(2024, 2, 29, tzinfo=UTC).timestamp()
    assert [unix_of(text) for text in ("", "soon", "Sun, 06 Nov 1994 08:49:37 +0200", "Sunday")] == [None] * 4
