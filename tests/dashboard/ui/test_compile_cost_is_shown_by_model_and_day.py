"""Compile cost: the part of the Fleet page, its page and files, and the price of a GPU-hour."""

from __future__ import annotations

import csv
import io
from datetime import timedelta

import pytest
from django.test import Client

from dashboard.accounts.models import User
from dashboard.alerts.models import Alert
from dashboard.common import clock
from dashboard.fleet.models import CompileEvent, Instance, VersionHour, VersionProcessHour
from dashboard.projects.models import Member, Project, Role
from dashboard.vocabulary.numbers import number
from tests.dashboard.ui import factory

ADDRESS = "/p/ranking/compile-cost/"


@pytest.fixture
def compiled(project: Project) -> None:
    """A model with 7,200 s of compilation today, a third of it missed by a cache."""
    factory.model(project, "ranker", [factory.Shape("1", 0.01, 60, 300, instances=1)], every=60)
    VersionProcessHour.objects.update(compile_seconds=0.0)
    row = VersionProcessHour.objects.order_by("-hour").first()
    assert row is not None
    VersionProcessHour.objects.filter(version_id=row.version_id, hour=row.hour).update(
        compile_seconds=7200.0
    )
    CompileEvent.objects.create(
        project_id=project.pk,
        day=row.day,
        instance_id=Instance.objects.get().pk,
        seq=1,
        number=0,
        version_id=row.version_id,
        environment="production",
        at=clock.now() - timedelta(minutes=1),
        compile_id="0/0",
        frame="forward",
        file="model.py",
        line=1,
        kind="compile",
        outcome="ok",
        total=2400.0,
        cache_fx="miss",
        miss="cache folder is new or was emptied",
    )


def test_the_hours_of_each_class_are_shown(signed_in: Client, compiled: None) -> None:
    html = signed_in.get(ADDRESS, headers={"HX-Request": "true"}).content.decode()
    assert "<b>2 GPU-hours</b>" in html
    hours = f"compiling {number(4 / 3)}, eager 0, cache misses {number(2 / 3)}"
    assert hours in " ".join(html.split())
    assert "Keep the compile cache between starts." in html or "No finding." in html


def test_the_page_works_without_scripts(signed_in: Client, compiled: None) -> None:
    html = signed_in.get(ADDRESS).content.decode()
    assert "<h1>Compile cost</h1>" in html and "Fix first" in html
    fleet = signed_in.get("/p/ranking/").content.decode()
    assert f'href="{ADDRESS}"' in fleet


def test_the_files_have_gpu_seconds_by_model_and_day(signed_in: Client, compiled: None) -> None:
    [row] = signed_in.get("/p/ranking/compile-cost.json").json()["rows"]
    assert (row["model"], row["compiling_gpu_seconds"], row["cache_misses_gpu_seconds"]) == (
        "ranker",
        4800.0,
        2400.0,
    )
    text = signed_in.get("/p/ranking/compile-cost.csv").content.decode()
    [line] = csv.DictReader(io.StringIO(text))
    assert float(line["compiling_gpu_seconds"]) == 4800.0


def test_eager_calls_without_an_eager_run_are_not_known(signed_in: Client, compiled: None) -> None:
    VersionHour.objects.update(eager_limit=20, compiled=40)
    html = signed_in.get(ADDRESS).content.decode()
    assert "eager not known" in html and "eager 0" not in html.split("<svg")[0]
    [row] = signed_in.get("/p/ranking/compile-cost.json").json()["rows"]
    assert row["eager_gpu_seconds"] is None


def test_a_fleet_without_compilations_says_so(signed_in: Client, alert: Alert) -> None:
    assert "No compile cost" in signed_in.get(ADDRESS).content.decode()


def test_an_admin_sets_the_price_and_others_do_not(
    signed_in: Client, compiled: None, project: Project, user: User
) -> None:
    Member.objects.filter(user=user).update(role=Role.ADMIN)
    signed_in.post(f"{ADDRESS}price/", {"price": "2.5"})
    html = signed_in.get(ADDRESS).content.decode()
    assert "5 at 2.5 per GPU-hour" in " ".join(html.split())
    for wrong in ("-1", "nan", "inf", "much"):
        signed_in.post(f"{ADDRESS}price/", {"price": wrong})
    project.refresh_from_db()
    assert project.settings["gpu_hour_price"] == 2.5
    Member.objects.filter(user=user).update(role=Role.VIEWER)
    assert signed_in.post(f"{ADDRESS}price/", {"price": "9"}).status_code == 403


def test_the_page_needs_a_fixed_number_of_queries(
    signed_in: Client, compiled: None, project: Project, django_assert_max_num_queries: object
) -> None:
    for place in range(4):
        factory.model(project, f"m{place}", [factory.Shape("1", 0.01, 60, 300)], every=60)
    with django_assert_max_num_queries(11):  # type: ignore[operator]
        assert signed_in.get(ADDRESS).status_code == 200
