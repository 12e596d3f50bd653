"""Health probes may use an IP address of the process; people and agents must use a configured host
name."""

from __future__ import annotations

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_probe_is_answered_under_any_host_name(path: str) -> None:
    assert Client(headers={"host": "10.0.0.7:8000"}).get(path).status_code in (200, 503)


def test_a_page_under_a_foreign_host_name_is_refused() -> None:
    assert Client(headers={"host": "10.0.0.7:8000"}).get("/").status_code == 400
