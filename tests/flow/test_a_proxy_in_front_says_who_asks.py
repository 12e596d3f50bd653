"""Behind a proxy that the settings name, the record holds the address of whoever asked: in one process as with web on its own."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.environment import DATABASE
from tests.flow.stack import Stack

pytestmark = pytest.mark.timeout(600)


def test_the_entry_of_our_own_proxy_is_believed(tmp_path: Path) -> None:
    stack = Stack(database=DATABASE, folder=tmp_path, outbound="127.0.0.1:9")
    stack.environment["COMPILEWATCH_TRUSTED_PROXIES"] = "1"
    try:
        stack.start(channel="http://127.0.0.1:9/none")
        address = f"http://127.0.0.1:{stack.port}/api/v1/reports?key={stack.key}"
        asked = urllib.request.Request(address, b"{}", {"X-Forwarded-For": "198.51.100.1, 203.0.113.7"})
        with pytest.raises(urllib.error.HTTPError, match="400"):
            urllib.request.urlopen(asked, timeout=60)
        [(noted,)] = stack.rows("SELECT address FROM audit_entry WHERE action = 'key.exposed'")
        assert str(noted) == "203.0.113.7"
    finally:
        stack.close()
