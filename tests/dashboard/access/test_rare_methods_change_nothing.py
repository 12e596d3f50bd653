"""HEAD, OPTIONS, TRACE and a method that does not exist, on every address: no failure, and nothing
is written."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.dashboard.access.test_who_may_ask_what import Asked, asked_of, callers, guest, ids

__all__ = ["callers", "guest", "ids"]
pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE", "PROPFIND"])
def test_a_rare_method_writes_nothing(
    method: str, ids: dict[str, Any], callers: dict[str, Client]
) -> None:
    wrong = []
    for name, path, _line in asked_of(ids):
        got = Asked(callers["admin"], method, path)
        if got.said.startswith("5") or got.written:
            wrong.append(f"{name}: {method} is answered {got.said}; written: {got.written}")
    assert not wrong, "\n" + "\n".join(wrong)
