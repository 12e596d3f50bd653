"""Addresses that lead into the internal network are refused, and a listener there receives
nothing."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from pytest_django import Settings

from dashboard.common.outbound import url
from dashboard.common.outbound.client import (
    UNREACHABLE,
    OutboundError,
    OutboundRefusal,
    outbound_post,
)
from dashboard.common.outbound.resolver import resolve_name
from tests.dashboard.common.wire_server import WireServer, answering, wire_server

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

# Answers of a hostile name server.
NAMES = {
    "loopback.example": ["127.0.0.1"],
    "loopback6.example": ["::1"],
    "any.example": ["0.0.0.0"],
    "any6.example": ["::"],
    "ten.example": ["10.0.0.1"],
    "mixed.example": ["93.184.215.14", "127.0.0.1"],
    "mixed6.example": ["2606:2800:21f:cb07:6820:80da:af6b:8b2c", "::1"],
    "mapped.example": ["::ffff:127.0.0.1"],
    "mapped-ten.example": ["::ffff:10.1.2.3"],
    "nat64.example": ["64:ff9b::7f00:1"],
    "nat64-local.example": ["64:ff9b:1::7f00:1"],
    "sixtofour.example": ["2002:7f00:1::1"],
    "teredo.example": ["2001:0:4136:e378:8000:63bf:80ff:fffe"],
    "compatible.example": ["::127.0.0.1"],
    "cgnat.example": ["100.64.0.1"],
    "aliyun.example": ["100.100.100.200"],
    "benchmark.example": ["198.18.0.1"],
    "reserved.example": ["240.0.0.1"],
    "broadcast.example": ["255.255.255.255"],
    "protocol.example": ["192.0.0.192"],
    "multicast.example": ["224.0.0.1"],
    "multicast6.example": ["ff02::1"],
    "mapped-multicast.example": ["::ffff:239.1.1.1"],
    "link.example": ["169.254.169.254"],
    "link6.example": ["fe80::1"],
    "scoped.example": ["fe80::1%lo"],
    "scoped-public.example": ["2606:4700::1%lo"],
    "site.example": ["fec0::1"],
    "unique-local.example": ["fd00:ec2::254"],
    "documentation.example": ["192.0.2.1"],
    "documentation6.example": ["2001:db8::1"],
    "documentation-new.example": ["3fff::1"],
    "relay.example": ["192.88.99.1"],
    "agent.example": ["168.63.129.16"],
    "discard.example": ["100::1"],
    "orchid.example": ["2001:20::1"],
    "segment.example": ["5f00::1"],
    "name-again.example": ["localhost"],
    "nothing.example": [],
}

LITERAL = [
    "https://127.0.0.1:{port}/",
    "https://127.1.2.3:{port}/",
    "https://[::1]:{port}/",
    "https://[::]:{port}/",
    "https://0.0.0.0:{port}/",
    "https://[::ffff:127.0.0.1]:{port}/",
    "https://[::ffff:7f00:1]:{port}/",
    "https://[64:ff9b::127.0.0.1]:{port}/",
    "https://[2002:7f00:1::]:{port}/",
    "https://10.0.0.1:{port}/",
    "https://172.16.0.1:{port}/",
    "https://192.168.0.1:{port}/",
    "https://169.254.169.254:{port}/latest/meta-data/",
    "https://[fd00:ec2::254]:{port}/",
    "https://localhost:{port}/",
    "https://LOCALHOST:{port}/",
    "https://localhost.:{port}/",
    "https://127.0.0.1.:{port}/",
    "https://127.1:{port}/",
    "https://0:{port}/",
    "https://2130706433:{port}/",
    "https://0x7f000001:{port}/",
    "https://0x7f.0.0.1:{port}/",
    "https://0177.0.0.1:{port}/",
    "https://127.0.0.0x1:{port}/",
    "https://[::1%25lo]:{port}/",
    "https://[v1.x]:{port}/",
    "https://user@127.0.0.1:{port}/",
    "https://hooks.slack.com@127.0.0.1:{port}/",
    "https://hooks.slack.com:443@127.0.0.1:{port}/",
    "https://@127.0.0.1:{port}/",
    "https://hooks.slack.com\\@127.0.0.1:{port}/",
    "https://127.0.0.1\\.hooks.slack.com:{port}/",
    "https://127.0.0.1:{port}\t/",
    "https://127.0.0.1\n:{port}/",
    "https://127.0.0.1:{port}/ HTTP/1.1\r\nX: y",
    "https://１２７.０.０.１:{port}/",
    "https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:{port}/",
    "https://bücher.example:{port}/",
    "https://loop%62ack.example:{port}/",
    "https://-loopback.example:{port}/",
    "https://.loopback.example:{port}/",
    "http://127.0.0.1:{port}/",
    "http://mixed.example:{port}/",
    "ftp://127.0.0.1:{port}/",
    "gopher://127.0.0.1:{port}/_x",
    "file:///etc/passwd",
    "//127.0.0.1:{port}/",
    "127.0.0.1:{port}",
    "https:127.0.0.1:{port}/",
    "https:///127.0.0.1:{port}/",
    "https://:{port}/",
    "https://loopback.example:22/",
    "https://loopback.example:0/",
    "https://loopback.example:99999/",
    "https://loopback.example:x/",
    "",
]
HOSTILE = LITERAL + [f"https://{name}:{{port}}/hook" for name in NAMES]


def resolve(host: str, port: int, seconds: float) -> list[str]:
    return NAMES[host] if host in NAMES else resolve_name(host, port, seconds)


@pytest.fixture
def canary(monkeypatch: pytest.MonkeyPatch) -> Iterator[WireServer]:
    """Listens on every address of this machine, on a port that the client accepts as a usual
    one."""
    with wire_server(answering(OK), "::") as server:
        monkeypatch.setattr(url, "ALLOWED_PORTS", (443, 8443, server.port))
        yield server


@pytest.mark.parametrize("url", HOSTILE)
def test_a_hostile_address_is_refused_and_the_canary_receives_nothing(
    url: str, canary: WireServer
) -> None:
    with pytest.raises(OutboundRefusal):
        outbound_post(url=url.format(port=canary.port), body=b"{}", headers={}, resolver=resolve)
    assert canary.connections == 0


@pytest.mark.parametrize("address", ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"])
def test_the_canary_receives_connections_without_the_guard(
    address: str, canary: WireServer, settings: Settings
) -> None:
    assert len(set(HOSTILE)) >= 60
    settings.OUTBOUND_ALLOW = (f"loopback.example:{canary.port}",)
    url = f"http://loopback.example:{canary.port}/"
    assert (
        outbound_post(url=url, body=b"{}", headers={}, resolver=lambda *_: [address]).status == 200
    )
    assert canary.connections == 1


def test_a_redirect_to_a_private_address_is_an_ordinary_response(
    canary: WireServer, settings: Settings
) -> None:
    answer = (
        f"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{canary.port}/\r\nContent-Length: "
        "0\r\n\r\n".encode()
    )
    with wire_server(answering(answer)) as server:
        settings.OUTBOUND_ALLOW = (*server.allow, f"127.0.0.1:{canary.port}")
        assert outbound_post(url=server.url, body=b"{}", headers={}).status == 302
    assert canary.connections == 0


def test_a_name_that_changes_its_address_is_resolved_once(
    canary: WireServer, settings: Settings
) -> None:
    asked: list[str] = []

    def rebinding(host: str, port: int, seconds: float) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

    with wire_server(answering(OK)) as server:
        settings.OUTBOUND_ALLOW = (f"hooks.example:{server.port}",)
        url = f"http://hooks.example:{server.port}/"
        assert outbound_post(url=url, body=b"{}", headers={}, resolver=rebinding).status == 200
        assert (asked, server.connections) == (["hooks.example"], 1)


def test_proxies_of_the_environment_are_not_used(
    canary: WireServer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
    ):
        monkeypatch.setenv(name, f"http://127.0.0.1:{canary.port}")
    with wire_server(answering(OK)) as server:
        settings.OUTBOUND_ALLOW = server.allow
        assert outbound_post(url=server.url, body=b"{}", headers={}).text == "ok"
    assert canary.connections == 0


def test_private_and_unreachable_addresses_get_the_same_message(settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    settings.OUTBOUND_ALLOW = (f"127.0.0.1:{port}",)
    said = {
        _refusal(f"http://127.0.0.1:{port}/"),
        _refusal("https://ten.example/"),
        _refusal("https://nothing.example/"),
    }
    assert said == {(OutboundRefusal, UNREACHABLE)}


def test_an_exception_of_the_operator_applies_to_exactly_that_port_and_host(
    canary: WireServer, settings: Settings
) -> None:
    settings.OUTBOUND_ALLOW = (
        f"127.0.0.1:{canary.port + 1}",
        f"localhost:{canary.port}",
        f"xloopback.example:{canary.port}",
    )
    for host in ("127.0.0.1", "loopback.example"):
        assert _refusal(f"https://{host}:{canary.port}/")[0] is OutboundRefusal
    assert canary.connections == 0


def _refusal(url: str) -> tuple[type[OutboundError], str]:
    with pytest.raises(OutboundError) as caught:
        outbound_post(url=url, body=b"{}", headers={}, resolver=resolve)
    return caught.type, str(caught.value)
