"""The published OpenAPI document and the endpoint agree: generated requests are answered as
documented, and never with a failure."""

from __future__ import annotations

import json
import os
import urllib.request

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from jsonschema import Draft202012Validator
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.hostile.target import Target

EXAMPLES = int(os.environ.get("COMPILEWATCH_TEST_EXAMPLES", "100"))
BEYOND_JSON_SCHEMA = (
    b"contains the character U+0000",
    b"expected `int`, got `float`",
    b"is nested deeper",
    b"must not be empty",
)
"""U+0000 in an unknown field; 1.0, which JSON Schema accepts as an integer; depth; a name of blanks
only."""


def document(target: Target) -> dict[str, object]:
    """The document as any client reads it."""
    with urllib.request.urlopen(
        f"http://127.0.0.1:{target.stack.port}/api/v1/openapi.json", timeout=30
    ) as answer:
        assert answer.headers["Content-Type"] == "application/json"
        found: dict[str, object] = json.load(answer)
    return found


def test_a_good_request_and_its_answer_fit_the_document(target: Target) -> None:
    found = document(target)
    for name, message in (
        ("Request", target.data()),
        ("Ack", target.post(target.data()).data),
        ("Error", target.post("no JSON").data),
    ):
        checker = Draft202012Validator(
            {"$ref": f"#/components/schemas/{name}", "components": found["components"]}
        )
        assert [error.message for error in checker.iter_errors(message)] == [], name


def test_requests_generated_from_the_document_are_answered_as_documented(target: Target) -> None:
    operation = schemathesis.openapi.from_dict(document(target))["/api/v1/reports"]["POST"]
    address, key = (
        f"http://127.0.0.1:{target.stack.port}",
        {"Authorization": f"Bearer {target.key}"},
    )
    statuses: set[int] = set()

    @given(case=operation.as_strategy())
    @settings(
        max_examples=EXAMPLES,
        database=None,
        derandomize=True,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    def send(case: schemathesis.Case) -> None:
        response = case.call(base_url=address, headers=key)
        # A request that fits the document must be accepted, except where JSON Schema cannot express
        # a rule.
        beyond = any(words in response.content for words in BEYOND_JSON_SCHEMA)
        case.validate_response(
            response, excluded_checks=[positive_data_acceptance] if beyond else None
        )
        statuses.add(response.status_code)

    send()
    assert 400 in statuses and statuses <= {200, 400, 426}
