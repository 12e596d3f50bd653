"""The Findings tab of a model: new and gone findings of the version, or all as a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.fleet.models import WatchedModel
from dashboard.fleet.selectors.findings.finding_list import read_finding_list
from dashboard.fleet.selectors.findings.findings import list_version_findings
from dashboard.fleet.selectors.instances.instances import list_version_instances
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.paging import read_page_number
from dashboard.ui.http.partials import mark_uncached
from dashboard.ui.http.time_range import replace_query
from dashboard.ui.pages.findings.columns import KINDS, findings_columns, list_eager_fallbacks
from dashboard.ui.pages.findings.table import COLUMNS, build_table_context, read_filter
from dashboard.ui.pages.model.header import Choice, ModelHeader, build_model_header
from dashboard.ui.pages.model.lookup import model_or_404

PAGE_SIZE = 12
TABLE_PARAMETERS = ("state", "kind", "q", "sort", "page")
TABLE_COLUMNS = tuple(column for column in COLUMNS if column.label != "Model")


@require_safe
@project_page()
def model_findings(request: ProjectRequest, model_id: int) -> HttpResponse:
    """The tab. Without a baseline, there is only the table."""
    query, model = request.GET, model_or_404(request, model_id)
    header = build_model_header(request, model, active="findings", spans=())
    paired = header.standing.baseline is not None
    whole = not paired or query.get("view") == "all" or any(map(query.get, TABLE_PARAMETERS))
    emptied = dict.fromkeys(TABLE_PARAMETERS, "")
    context = {
        "model": model,
        "header": header,
        "standing": header.standing,
        "whole": whole,
        "views": [
            Choice("Version vs baseline", replace_query(query, view="", **emptied), not whole),
            Choice("All findings", replace_query(query, view="all", **emptied), whole),
        ]
        if paired
        else [],
    }
    read = _read_table if whole else _read_columns
    return mark_uncached(
        render(request, "ui/model/findings.html", context | read(request, model, header))
    )


def _read_table(
    request: ProjectRequest, model: WatchedModel, header: ModelHeader
) -> dict[str, Any]:
    query, environment = request.GET, header.standing.environment
    judged = header.standing.judged
    wanted = replace(
        read_filter(query),
        model_id=model.pk,
        environment=environment,
        version_id=judged.version_id if judged and query.get("version") else None,
    )
    found = read_finding_list(
        project_id=model.project_id,
        wanted=wanted,
        page=read_page_number(query),
        size=PAGE_SIZE,
        with_models=False,
    )
    kept = {
        name: text
        for name, text in query.items()
        if text and name not in ("model", *TABLE_PARAMETERS)
    }
    return build_table_context(query, wanted, found, TABLE_COLUMNS, PAGE_SIZE) | {
        "kept": kept,
        "filtered": any((wanted.kind, wanted.state, wanted.text)),
        "clear_url": replace_query(query, **dict.fromkeys(TABLE_PARAMETERS, "")),
        "version": judged.version.name if judged and wanted.version_id else "",
    }


def _read_columns(
    request: ProjectRequest, model: WatchedModel, header: ModelHeader
) -> dict[str, Any]:
    standing = header.standing
    drawn = standing.drawn([id for id in standing.pair if id is not None])
    ids = [version.id for version in drawn]
    project, environment = model.project_id, standing.environment
    judged, baseline = (
        next(((one.id, one.name) for one in drawn if one.slot == slot), None) for slot in (2, 1)
    )
    columns = findings_columns(
        list_version_findings(
            project_id=project, model_id=model.pk, version_ids=ids, environment=environment
        ),
        judged=judged,
        baseline=baseline,
    )
    named = {line.kind for column in columns for line in column.lines}
    return {
        "drawn": drawn,
        "columns": columns,
        # A frame that runs eager until restart is usually a finding, too.
        "latched": []
        if KINDS["latched_eager"] in named
        else list_eager_fallbacks(
            list_version_instances(project_id=project, version_ids=ids, environment=environment),
            ids,
        ),
    }
