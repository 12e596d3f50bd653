"""A query that each request needs is compiled once per process and answered for each value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import QuerySet

from dashboard.accounts.models import User
from dashboard.common.raw_queries import fetch_compiled
from dashboard.projects.models import Project


@pytest.mark.django_db
def test_each_value_has_its_own_rows(make_user: Callable[..., User], project: Project) -> None:
    built = []

    def build(value: Any) -> QuerySet[Any, Any]:
        built.append(value)
        return User.objects.filter(pk=value).values_list("pk", "is_active", "date_joined")

    people = [make_user(name, project) for name in ("one", "two")]
    for person in people:
        [(pk, active, joined)] = fetch_compiled(build, person.pk)
        assert (pk, bool(active), joined) == (person.pk, True, person.date_joined)
    assert fetch_compiled(build, 0) == []
    assert len(built) == 1
