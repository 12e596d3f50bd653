"""The place of a notebook cell, with the number of the cell, is shown unchanged in findings, in
compilations and in the address of a finding."""

from __future__ import annotations

import time
from collections.abc import Callable
from html import unescape

import pytest
from compilewatch.wire.messages import Compile, Finding, Report
from django.test import Client

from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import CompileEvent, WatchedModel
from dashboard.fleet.models import Finding as StoredFinding
from dashboard.projects.models import Project
from tests.dashboard.requests import request_make

pytestmark = pytest.mark.django_db
PLACE = "In [3]:2 in step"


def in_a_cell(report: Report) -> None:
    report.findings.append(Finding("graph_break", "GB0124 Unsupported Tensor.item() call", PLACE))
    report.compiles.append(
        Compile(
            report.window[0] + 1.0,
            "0/0",
            "first",
            "ok",
            frame="step",
            file="In [3]",
            line=2,
            seconds={"total": 1.0},
        )
    )


def test_a_cell_is_a_place_on_every_page(
    store_reports: Callable[..., object], signed_in: Client, project: Project
) -> None:
    store_reports(request_make(end=time.time() - 20.0, change=in_a_cell))
    fold_all()
    model, finding = WatchedModel.objects.get(), StoredFinding.objects.get(kind="graph_break")
    assert finding.where == PLACE
    event = CompileEvent.objects.get()
    assert (event.file, event.line) == ("In [3]", 2)
    for address in (
        f"/p/{project.slug}/findings/",
        f"/p/{project.slug}/findings/{finding.pk}/",
        f"/p/{project.slug}/models/{model.pk}/findings/",
        f"/p/{project.slug}/models/{model.pk}/compiles/",
    ):
        answer = signed_in.get(address)
        assert answer.status_code == 200
        assert "In [3]:2" in unescape(answer.content.decode()), address
