"""Read access: a key that reads, or a session. Each reader sees its own projects, at a limited
rate."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest
from ninja.security.base import AuthBase

from dashboard.accounts.models import User
from dashboard.ingest.admission import TokenBucket
from dashboard.ingest.body_decoder import RefusalError
from dashboard.ingest.request_checks import key_require
from dashboard.projects.key_format import KEY_SEARCH_PATTERN
from dashboard.projects.models import Project
from dashboard.projects.selectors import get_project_or_404, list_projects
from dashboard.vocabulary.numbers import significant

MAX_READS_PER_SECOND = 20.0
"""Reads per second of one key or user and web process; the bucket allows twice that at once."""
MAX_READERS = 4096
_PATH_CONVERTER_PATTERN = re.compile(r"<(?:[^:>]+:)?([^>]+)>")


@dataclass(frozen=True)
class Reader:
    """The client of a request: a key with its project, or a user with their projects."""

    name: str
    project_id: int = 0
    user: User | None = None

    def project(self, slug: str) -> Project:
        """The project with this slug. Raises Http404 if the reader may not read the project."""
        if self.user is not None:
            return get_project_or_404(self.user, slug)
        project = Project.objects.filter(pk=self.project_id, slug=slug).first()
        if project is None:
            raise Http404("Project not found.")
        return project

    def projects(self) -> list[Project]:
        """Every project that the reader may read, by name."""
        rows = (
            list_projects(self.user)
            if self.user is not None
            else Project.objects.filter(pk=self.project_id)
        )
        return list(rows)


class ReadRequest(HttpRequest):
    """A request that passed `ReadAccess`."""

    auth: Reader


_buckets: dict[str, TokenBucket] = {}


class ReadAccess(AuthBase):
    """Authentication by a key in the Authorization header or by a session. A key takes
    precedence."""

    openapi_type = "http"
    openapi_scheme = "bearer"
    openapi_description = (
        "A project's key that begins with cw_api_; pages of the dashboard use the session of the "
        "signed-in user."
    )

    def __init__(self, described: Callable[[], dict[str, Any]]) -> None:
        super().__init__()
        self._described = described

    def __call__(self, request: HttpRequest) -> Reader:
        """Identifies the reader, limits the rate and checks the parameters. Raises RefusalError."""
        reader = _identify_reader(request)
        _limit_rate(reader)
        parameters_check(request, self._described())
        return reader


def _identify_reader(request: HttpRequest) -> Reader:
    sent = "HTTP_AUTHORIZATION" in request.META or KEY_SEARCH_PATTERN.search(
        request.META.get("QUERY_STRING", "")
    )
    if request.user.is_authenticated and not sent:
        return Reader(f"user {request.user.pk}", user=request.user)
    key = key_require(request.META, "api")
    return Reader(f"key {key.id}", project_id=key.project_id)


def _limit_rate(reader: Reader) -> None:
    if len(_buckets) >= MAX_READERS:
        _buckets.clear()
    bucket = _buckets.setdefault(reader.name, TokenBucket(MAX_READS_PER_SECOND))
    if (wait := bucket.wait()) > 0:
        detail = (
            f"This key or user reads more than {significant(MAX_READS_PER_SECOND)} times a second."
        )
        raise RefusalError("too_many", detail, retry_after=int(wait) + 1)
    bucket.charge(1)


def reset_read_rates() -> None:
    """Clears the rate limits of every reader."""
    _buckets.clear()


def parameters_check(request: HttpRequest, document: dict[str, Any]) -> None:
    """Refuses a parameter that the OpenAPI document does not list: a typo would otherwise have no
    visible effect. Raises RefusalError."""
    match = request.resolver_match
    path = "/" + _PATH_CONVERTER_PATTERN.sub(r"{\1}", match.route if match else "")
    operation: dict[str, Any] = document["paths"].get(path, {}).get("get", {})
    known = {one["name"] for one in operation.get("parameters", []) if one["in"] == "query"}
    for name in request.GET:
        if name not in known:
            raise RefusalError(
                "bad_request",
                f"{name[:60]}: unknown parameter, expected {_format_choices(known)}.",
            )
        if any("\0" in text for text in request.GET.getlist(name)):
            raise RefusalError("bad_request", f"{name}: contains the character U+0000; remove it.")


def _format_choices(known: set[str]) -> str:
    return f"one of {', '.join(sorted(known))}" if known else "none"
