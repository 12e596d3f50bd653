"""Router of the read API: addresses, one error shape, and an ETag on every answer."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from typing import Any

from compilewatch.wire.errors import ERROR_CODES
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response, patch_vary_headers
from ninja import NinjaAPI
from ninja.errors import ValidationError

from dashboard.api.read import findings_instances, models_versions, timeseries, verdicts_alerts
from dashboard.api.read.auth import ReadAccess
from dashboard.common.http import API_HEADERS, error_response
from dashboard.ingest.body_decoder import RefusalError

__all__ = ["API", "read_document"]


class ReadApi(NinjaAPI):
    """NinjaAPI with the headers of every JSON response and an ETag of the content."""

    def create_response(
        self,
        request: HttpRequest,
        data: Any,
        *,
        status: int | None = None,
        temporal_response: HttpResponse | None = None,
    ) -> HttpResponse:
        """The response of an operation, or 304 if the ETag matches."""
        answer = super().create_response(
            request, data, status=status, temporal_response=temporal_response
        )
        for name, value in API_HEADERS.items():
            answer[name] = value
        answer["Cache-Control"] = "private, no-cache"
        answer["Content-Length"] = str(len(answer.content))
        patch_vary_headers(answer, ["Authorization", "Cookie"])
        answer["ETag"] = f'"{hashlib.blake2b(answer.content, digest_size=16).hexdigest()}"'
        conditional = get_conditional_response(request, etag=answer["ETag"], response=answer)
        return conditional if isinstance(conditional, HttpResponse) else answer


def _get_document() -> dict[str, Any]:
    return read_document()


API = ReadApi(
    title="compilewatch",
    version="1",
    urls_namespace="read",
    auth=ReadAccess(_get_document),
    openapi_url=None,
    docs_url=None,
)
for _module in (models_versions, timeseries, findings_instances, verdicts_alerts):
    API.add_router("", _module.router)


def _answer_refusal(
    request: HttpRequest, refused: RefusalError | type[RefusalError]
) -> HttpResponse:
    assert isinstance(refused, RefusalError)
    answer = error_response(
        ERROR_CODES[refused.code][0], refused.code, refused.detail, refused.retry_after
    )
    if answer.status_code == 401:
        answer["WWW-Authenticate"] = "Bearer"
    return answer


def _answer_validation_error(
    request: HttpRequest, error: ValidationError | type[ValidationError]
) -> HttpResponse:
    """Answers 400 with each wrong field and the expected value."""
    assert isinstance(error, ValidationError)
    said = []
    for one in error.errors:
        names = [
            part
            for part in one["loc"]
            if isinstance(part, str) and part not in ("query", "path", "asked")
        ]
        said.append(
            f"{names[-1] if names else 'the request'}: {one['msg'][:1].lower()}{one['msg'][1:]}."
        )
    return error_response(400, "bad_request", " ".join(said))


def _answer_not_found(request: HttpRequest, error: Http404 | type[Http404]) -> HttpResponse:
    return error_response(404, "not_found", str(error) or "There is no resource at this address.")


API.add_exception_handler(RefusalError, _answer_refusal)
API.add_exception_handler(ValidationError, _answer_validation_error)
API.add_exception_handler(Http404, _answer_not_found)


@cache
def read_document() -> dict[str, Any]:
    """The OpenAPI document of the read API as plain JSON values, built once per process."""
    document: dict[str, Any] = json.loads(json.dumps(API.get_openapi_schema(path_prefix="api/v1/")))
    for operations in document["paths"].values():
        operations.pop("head", None)
    return document
