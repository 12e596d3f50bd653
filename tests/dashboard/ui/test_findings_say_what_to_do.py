"""A finding on the Model page comes with what to do about it, and with torch's own page where torch
has an id for the break."""

from __future__ import annotations

from html import unescape

from django.test import Client

from dashboard.projects.models import Project
from tests.dashboard.ui.charts_factory import Plan, charted
from tests.dashboard.ui.charts_story import finding


def test_the_hint_stands_under_the_finding(signed_in: Client, project: Project) -> None:
    made = charted(project, Plan("1", start=30))
    finding(
        made,
        "graph_break",
        "GB0124 Unsupported Tensor.item() call",
        "ranker/features.py:61",
        {"1": 4},
    )
    finding(
        made, "cudagraph_rerecord", "recorded for another input size", "ranker/score.py:9", {"1": 2}
    )
    text = unescape(signed_in.get(made.url()).content.decode())
    assert "torch._dynamo.config.capture_scalar_outputs = True" in text
    assert 'href="https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0124.html"' in text
    assert "CUDA graph recorded again" in text and "each size is another CUDA graph" in text


def test_a_finding_nobody_knows_has_none(signed_in: Client, project: Project) -> None:
    made = charted(project, Plan("1", start=30))
    finding(
        made,
        "cudagraph_skip",
        "skipped for a reason of a later torch",
        "ranker/features.py:61",
        {"1": 1},
    )
    text = signed_in.get(made.url()).content.decode()
    assert "a reason of a later torch" in text and '<p class="hint">' not in text
