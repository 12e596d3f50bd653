"""What programs read: the description of the report endpoint, which holds nothing of any project and needs no key."""

import msgspec
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dashboard.common.http import json_answer
from dashboard.ingest.schema import openapi_document


@require_safe
def openapi(request: HttpRequest) -> HttpResponse:
    """The OpenAPI document of what agents send."""
    return json_answer(msgspec.json.encode(openapi_document()))
