"""Two people request one name at the same moment, in different case: one gets the name, the other
gets an error."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connection

from dashboard.accounts import services
from dashboard.accounts.models import User
from tests.dashboard.conftest import PASSWORD


def taken(name: str) -> bool:
    try:
        services.user_create(username=name, password=PASSWORD)
    except ValidationError:
        return False
    finally:
        connection.close()
    return True


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("names", [("ada", "ADA"), ("ada", "ada")])
def test_one_of_two_concurrent_requests_gets_the_name(
    names: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record = services.audit_write

    def slowly(**columns: Any) -> Any:
        time.sleep(0.5)  # stored, and not yet visible to other connections
        return record(**columns)

    monkeypatch.setattr(services, "audit_write", slowly)
    with ThreadPoolExecutor(2) as two:
        assert sorted(two.map(taken, names)) == [False, True]
    assert User.objects.count() == 1
