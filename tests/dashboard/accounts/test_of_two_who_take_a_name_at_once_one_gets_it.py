"""Two people who take one name in the same moment, in another case: one gets it, and the other is
told."""

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
def test_one_of_the_two(names: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    record = services.audit_write

    def slowly(**columns: Any) -> Any:
        time.sleep(0.5)  # stored, and not yet for everybody to see
        return record(**columns)

    monkeypatch.setattr(services, "audit_write", slowly)
    with ThreadPoolExecutor(2) as two:
        assert sorted(two.map(taken, names)) == [False, True]
    assert User.objects.count() == 1
