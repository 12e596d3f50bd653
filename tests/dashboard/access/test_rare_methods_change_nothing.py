"""HEAD, OPTIONS, TRACE and an unknown method on every URL: no failure and no write."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.dashboard.access.test_who_may_ask_what import (
    Exchange,
    callers,
    guest,
    ids,
    requests_of_matrix,
)

__all__ = ["callers", "guest", "ids"]
pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE", "PROPFIND"])
def test_a_rare_method_writes_nothing(
    method: str, ids: dict[str, Any], callers: dict[str, Client]
) -> None:
    wrong = []
    for name, path, _line in requests_of_matrix(ids):
        got = Exchange(callers["admin"], method, path)
        if got.answer.startswith("5") or got.written:
            wrong.append(f"{name}: {method} gets {got.answer}; written: {got.written}")
    assert not wrong, "\n" + "\n".join(wrong)
