"""A dashboard under a path prefix: responses are the same whether or not the proxy strips the
prefix, and cookies are limited to the path."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from dashboard.common.url_prefix import mount_under_prefix
from dashboard.environment.groups import RESERVED_PATHS
from dashboard.environment.settings import ROOT
from tests.dashboard.test_a_wrong_setting_is_one_sentence import FULL

PROGRAM = """
import django
django.setup()
from django.conf import settings as s
from django.contrib import messages
from django.contrib.messages.storage import default_storage
from django.http import HttpResponse
from django.test import RequestFactory
from django.templatetags.static import static
from django.urls import reverse
print(s.SESSION_COOKIE_NAME, s.SESSION_COOKIE_PATH, s.CSRF_COOKIE_NAME, s.CSRF_COOKIE_PATH, *s.CSRF_TRUSTED_ORIGINS, reverse("home"),
      static("ui/app.css"))
asked, answer = RequestFactory().get("/"), HttpResponse()
asked.session = {}
store = default_storage(asked)
store.add(messages.INFO, "Saved.")
store.update(answer)
print(len(store), len(asked.session), len(answer.cookies))
"""

KEPT = ["1", "1", "0"]
"""Messages are stored in the session and have no cookie of their own."""


def run_process(address: str) -> list[str]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("COMPILEWATCH_")
    }
    served = {
        "COMPILEWATCH_BASE_URL": address,
        "COMPILEWATCH_HOSTS": "cw.example.com, tools.example.com",
    }
    environment |= FULL | served | {"DJANGO_SETTINGS_MODULE": "dashboard.settings"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout.split()


def test_cookies_links_and_files_have_the_path() -> None:
    # Browsers refuse __Host- with any path but /, so the name has no prefix here.
    cookies = ["__Secure-cw_session", "/ops/cw", "__Secure-cw_csrf", "/ops/cw"]
    assert run_process("https://tools.example.com/ops/cw/") == [
        *cookies,
        "https://tools.example.com",
        "/ops/cw/",
        "/ops/cw/static/ui/app.css",
        *KEPT,
    ]


def test_without_a_path_cookies_apply_to_the_whole_host() -> None:
    cookies = ["__Host-cw_session", "/", "__Host-cw_csrf", "/"]
    assert run_process("https://cw.example.com") == [
        *cookies,
        "https://cw.example.com",
        "/",
        "/static/ui/app.css",
        *KEPT,
    ]


@pytest.mark.parametrize(
    ("asked", "served"),
    [
        ("/cw/api/v1/reports", "/api/v1/reports"),
        ("/api/v1/reports", "/api/v1/reports"),
        ("/cw", "/"),
        ("/cw/", "/"),
        ("/cwx/", "/cwx/"),
        ("/cw/cw/", "/cw/"),
        ("", ""),
    ],
)
def test_the_prefix_is_stripped_if_the_proxy_kept_it(asked: str, served: str) -> None:
    heard: list[dict[str, Any]] = []

    def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        heard.append(environ)
        return []

    list(mount_under_prefix(application, "/cw")({"PATH_INFO": asked}, None))
    assert heard == [{"PATH_INFO": served}]
    assert mount_under_prefix(application, "") is application


def first_words(patterns: list[URLPattern | URLResolver], before: str = "") -> set[str]:
    """The first segments of all routes of the dashboard."""
    found: set[str] = set()
    for one in patterns:
        path = before + str(one.pattern)
        found |= (
            first_words(one.url_patterns, path)
            if isinstance(one, URLResolver) and not path
            else {path.split("/")[0]}
        )
    return found - {""}


def test_no_route_begins_with_a_word_that_a_prefix_may_use() -> None:
    assert first_words(get_resolver().url_patterns) | {"static"} == RESERVED_PATHS
