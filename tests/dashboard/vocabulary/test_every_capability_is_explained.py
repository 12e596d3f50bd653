"""The dashboard explains every capability that a process reports, and explains no other."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from compilewatch.sources import SOURCES

from dashboard.ingest.otlp import convert
from dashboard.ingest.scrapers.metric_names import SGLANG, VLLM
from dashboard.ingest.scrapers.to_report import build_capabilities
from dashboard.ui.pages.instances.capabilities import explain_capabilities
from dashboard.vocabulary.capabilities import (
    CAPABILITY_MEANINGS,
    LATENCY_OF,
    explain_capability,
)
from tests.architecture.tree import REPOSITORY

AGENT = REPOSITORY / "agents" / "compilewatch"


def written_keys(tree: ast.AST) -> Iterator[str]:
    """Constant keys that code writes into variables called `capabilities`."""
    for node in ast.walk(tree):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if (
                isinstance(target, ast.Subscript)
                and called(target.value)
                and isinstance(target.slice, ast.Constant)
            ):
                yield str(target.slice.value)
            elif (
                called(target) and isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
            ):
                yield from (
                    str(key.value) for key in node.value.keys if isinstance(key, ast.Constant)
                )


def called(node: ast.expr) -> bool:
    name = (
        node.attr
        if isinstance(node, ast.Attribute)
        else node.id
        if isinstance(node, ast.Name)
        else ""
    )
    return name.lower() == "capabilities"


def keys_of_agents() -> set[str]:
    written = {
        key for path in AGENT.rglob("*.py") for key in written_keys(ast.parse(path.read_text()))
    }
    assert {"spool", "switch", "import_trace"} <= written
    return {key for _, key, _ in SOURCES} | written


def keys_of_readers() -> set[str]:
    """Capability keys of scraped engines and of OpenTelemetry reports."""
    engines = {key for one in (VLLM, SGLANG) for key in build_capabilities(one, {})}
    return {key for key in engines if not key.startswith(LATENCY_OF)} | {
        *convert.UNREPORTED_CAPABILITIES,
        "latency",
    }


def test_each_key_has_an_explanation() -> None:
    assert sorted((keys_of_agents() | keys_of_readers()) - set(CAPABILITY_MEANINGS)) == []


def test_each_explanation_has_a_key() -> None:
    assert sorted(set(CAPABILITY_MEANINGS) - keys_of_agents() - keys_of_readers()) == []


def test_a_region_of_an_engine_is_explained_by_the_kind_of_its_key() -> None:
    regions = {
        key
        for one in (VLLM, SGLANG)
        for key in build_capabilities(one, {})
        if key.startswith(LATENCY_OF)
    }
    assert regions and all(explain_capability(key) for key in regions)


def test_a_key_of_a_newer_agent_is_shown_without_an_explanation() -> None:
    [one] = explain_capabilities({"of_tomorrow": ["partly", "why"]})
    assert (one.name, one.means, one.answer, one.why) == ("of tomorrow", "", "partly", "why")
