"""`manage.py check --deploy` has no findings for the full stack behind its proxy, and reports wrong
settings."""

from __future__ import annotations

import os
import subprocess
import sys

from dashboard.environment.settings import ROOT
from tests.dashboard.test_a_wrong_setting_is_one_sentence import FULL

CHECK = (sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING")
DOCTOR = (
    "import django; django.setup(); from dashboard.api.doctor import settings_check; "
    "print(settings_check().sentence)"
)


def check(*words: str, **changed: str) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("COMPILEWATCH_")
    }
    secrets = {"COMPILEWATCH_SECRET_KEY": "".join(chr(48 + place % 75) for place in range(60))}
    full = environment | FULL | secrets | changed
    return subprocess.run(
        words or CHECK, cwd=ROOT, env=full, capture_output=True, text=True, timeout=120
    )


def test_the_full_stack_has_no_findings() -> None:
    done = check()
    assert (done.returncode, "no issues" in done.stdout) == (0, True), done.stderr


def test_the_doctor_has_no_findings_either() -> None:
    done = check(sys.executable, "-c", DOCTOR, DJANGO_SETTINGS_MODULE="dashboard.settings")
    assert done.stdout == "The settings are safe for a server that other machines can reach.\n", (
        done
    )


def test_a_wrong_setting_is_named() -> None:
    done = check(COMPILEWATCH_DEBUG="1")
    assert done.returncode != 0 and "security.W018" in done.stderr


def test_allowed_plain_http_is_a_warning_of_every_page_and_no_finding() -> None:
    done = check(COMPILEWATCH_BASE_URL="http://cw.example.com", COMPILEWATCH_ALLOW_HTTP="1")
    assert (done.returncode, "no issues" in done.stdout) == (0, True), done.stderr


def test_hsts_covers_only_the_dashboards_own_host() -> None:
    words = (
        "import django; django.setup(); from dashboard.ingest.wsgi_router import "
        "ReportsRouter; print(dict(ReportsRouter(None)._always))"
    )
    said = check(sys.executable, "-c", words, DJANGO_SETTINGS_MODULE="dashboard.settings").stdout
    assert "'Strict-Transport-Security': 'max-age=31536000'" in said
    settings = check(
        sys.executable,
        "-c",
        "import dashboard.settings as s; print(s.SECURE_HSTS_INCLUDE_SUBDOMAINS, "
        "s.SECURE_HSTS_PRELOAD)",
    )
    assert settings.stdout == "False False\n"
