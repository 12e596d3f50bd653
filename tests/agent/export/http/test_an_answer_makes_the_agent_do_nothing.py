"""An answer that asks the agent to open a file, contact another address or unpack a bomb
acknowledges nothing, and the agent does none of it."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path

import pytest
from compilewatch.export.http.response import MAX_RESPONSE_BYTES
from compilewatch.export.transport import HttpTransport

from tests.dashboard.common.wire_server import answering, wire_server

BODY = b'{"v":1,"reports":[]}'
ACK = {"cw": 1, "acked": [[1, 1]], "next_seq": 2}
ROOM = 4 << 20
PLACES = (
    "file://{file}",
    "file:{file}",
    "{file}",
    "//127.0.0.1:{port}/x",
    "http://127.0.0.1:{port}/x",
    "ftp://127.0.0.1:{port}/x",
    "\\\\{file}",
)


@pytest.mark.parametrize("status", [200, 201, 300, 302, 307, 308])
@pytest.mark.parametrize("place", PLACES)
def test_no_place_that_an_answer_names_is_accessed(place: str, status: int, tmp_path: Path) -> None:
    target = tmp_path / "answer.json"
    target.write_text(json.dumps(ACK))
    with wire_server(lambda connection: None) as canary:
        there = place.format(file=target, port=canary.port).encode()
        headers = (
            b"Location: %b\r\nRefresh: 0; url=%b\r\nLink: <%b>; rel=preload\r\nContent-Location: %b"
            % (there, there, there, there)
        )
        with wire_server(
            answering(
                b"HTTP/1.1 %d Elsewhere\r\n%b\r\nContent-Length: 0\r\n\r\n" % (status, headers)
            )
        ) as server:
            answer = HttpTransport(f"http://127.0.0.1:{server.port}", "k").send(BODY)
            assert (answer.status, answer.ack, answer.final) == (status, None, False)
            assert server.connections == 1
        assert canary.connections == 0


@pytest.mark.parametrize(
    "header",
    ["Content-Encoding: gzip", "Transfer-Encoding: gzip", "Content-Encoding: deflate, gzip"],
)
def test_a_compressed_answer_is_not_unpacked(header: str) -> None:
    bomb = gzip.compress(json.dumps(ACK).encode() + b" " * (60 << 20))
    assert len(bomb) < MAX_RESPONSE_BYTES
    head = f"HTTP/1.1 200 OK\r\n{header}\r\nContent-Length: {len(bomb)}\r\n\r\n".encode()
    with wire_server(answering(head, bomb)) as server:
        transport = HttpTransport(f"http://127.0.0.1:{server.port}", "k")
        tracemalloc.start()
        try:
            answer = transport.send(BODY)
            used = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert (answer.ack, answer.problem) == (None, "HTTP 200, but not from a compilewatch dashboard")
    assert used < ROOM
