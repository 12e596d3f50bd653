"""Where our own address has a path, whether a proxy takes it off or not the same is served, and
cookies are for that path alone."""

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

SAID = """
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
told = default_storage(asked)
told.add(messages.INFO, "Saved.")
told.update(answer)
print(len(told), len(asked.session), len(answer.cookies))
"""

KEPT = ["1", "1", "0"]
"""A message is kept in the session; it has no cookie of its own."""


def said(address: str) -> list[str]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("COMPILEWATCH_")
    }
    served = {
        "COMPILEWATCH_BASE_URL": address,
        "COMPILEWATCH_HOSTS": "cw.example.com, tools.example.com",
    }
    environment |= FULL | served | {"DJANGO_SETTINGS_MODULE": "dashboard.settings"}
    done = subprocess.run(
        [sys.executable, "-c", SAID],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout.split()


def test_cookies_links_and_files_have_the_path() -> None:
    # A browser refuses __Host- with any path but /: the name promises only what is true.
    cookies = ["__Secure-cw_session", "/ops/cw", "__Secure-cw_csrf", "/ops/cw"]
    told = KEPT
    assert said("https://tools.example.com/ops/cw/") == [
        *cookies,
        "https://tools.example.com",
        "/ops/cw/",
        "/ops/cw/static/ui/app.css",
        *told,
    ]


def test_without_a_path_they_are_of_the_whole_host() -> None:
    cookies = ["__Host-cw_session", "/", "__Host-cw_csrf", "/"]
    told = KEPT
    assert said("https://cw.example.com") == [
        *cookies,
        "https://cw.example.com",
        "/",
        "/static/ui/app.css",
        *told,
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
def test_the_path_is_taken_off_where_it_still_stands(asked: str, served: str) -> None:
    heard: list[dict[str, Any]] = []

    def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        heard.append(environ)
        return []

    list(mount_under_prefix(application, "/cw")({"PATH_INFO": asked}, None))
    assert heard == [{"PATH_INFO": served}]
    assert mount_under_prefix(application, "") is application


def first_words(patterns: list[URLPattern | URLResolver], before: str = "") -> set[str]:
    """How the paths of the dashboard begin, as its addresses stand in the code."""
    found: set[str] = set()
    for one in patterns:
        path = before + str(one.pattern)
        found |= (
            first_words(one.url_patterns, path)
            if isinstance(one, URLResolver) and not path
            else {path.split("/")[0]}
        )
    return found - {""}


def test_no_path_of_ours_can_be_taken_for_the_prefix() -> None:
    assert first_words(get_resolver().url_patterns) | {"static"} == RESERVED_PATHS
