"""Views for programs: the OpenAPI document, which needs no key, and the deploy gate."""

import hashlib

import msgspec
from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response
from django.views.decorators.http import require_safe

from dashboard.api.gate import evaluate_gate
from dashboard.api.key_auth import with_key
from dashboard.api.openapi import build_document
from dashboard.common.http import error_response, json_response
from dashboard.common.unicode_safety import visible_name
from dashboard.projects.key_auth import VerifiedKey

GATE_PARAMETERS = ("model", "version", "environment")
MAX_NAME_CHARS = 200


@require_safe
def openapi(request: HttpRequest) -> HttpResponse:
    """Serves the OpenAPI document of every interface for programs."""
    return json_response(msgspec.json.encode(build_document()))


@require_safe
@with_key("api")
def gate(request: HttpRequest, key: VerifiedKey) -> HttpResponse:
    """Evaluates the deploy gate for a version. Equal answers have equal ETags."""
    asked = {
        "environment": "production",
        **{name: request.GET[name] for name in GATE_PARAMETERS if name in request.GET},
    }
    wrong = [
        name
        for name in GATE_PARAMETERS
        if not 0 < len(asked.get(name, "")) <= MAX_NAME_CHARS or "\0" in asked[name]
    ]
    if wrong or (more := sorted(set(request.GET) - set(GATE_PARAMETERS))):
        detail = (
            f"{' and '.join(wrong)}: expected 1 to {MAX_NAME_CHARS} characters."
            if wrong
            else f"{more[0]}: unknown parameter."
        )
        return error_response(400, "bad_request", detail)
    # Names are stored as they are shown, while CI sends the name that its job reported.
    names = {name: visible_name(text) for name, text in asked.items()}
    answer = json_response(
        msgspec.json.encode(evaluate_gate(project_id=key.project_id, **names).as_dict(asked))
    )
    answer["Cache-Control"] = "private, no-cache"
    answer["ETag"] = f'"{hashlib.blake2b(answer.content, digest_size=16).hexdigest()}"'
    return get_conditional_response(request, etag=answer["ETag"], response=answer) or answer
