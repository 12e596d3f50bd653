"""A finding on the Model page has a remedy, and a link to torch's own page if torch has an ID for
the graph break."""

from __future__ import annotations

from html import unescape

from django.test import Client

from dashboard.projects.models import Project
from tests.dashboard.ui.charts_factory import Plan, charted
from tests.dashboard.ui.charts_story import finding


def test_the_remedy_is_below_the_finding(signed_in: Client, project: Project) -> None:
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
    text = unescape(signed_in.get(made.url("findings/")).content.decode())
    assert "torch._dynamo.config.capture_scalar_outputs = True" in text
    assert 'href="https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0124.html"' in text
    assert "CUDA graph re-recorded" in text and "each size needs another CUDA graph" in text


def test_an_unknown_finding_has_no_remedy(signed_in: Client, project: Project) -> None:
    made = charted(project, Plan("1", start=30))
    finding(
        made,
        "cudagraph_skip",
        "skipped for a reason of a later torch",
        "ranker/features.py:61",
        {"1": 1},
    )
    text = signed_in.get(made.url("findings/")).content.decode()
    assert "a reason of a later torch" in text and '<p class="hint">' not in text
