"""Starts the provider, and acts as the browser in which the only person grants or denies access."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path

import httpx
from jwcrypto.jwk import JWK

REPOSITORY = Path(__file__).resolve().parents[4]
CLIENT, SECRET, PASSWORD = "compilewatch", "s" * 40, "a password of the provider"
PERSON = {
    "username": "mara",
    "email": "mara@example.com",
    "first_name": "Mara",
    "last_name": "Vogel",
}
KEY = JWK.generate(kty="RSA", size=2048)
_HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)"(?: value="([^"]*)")?')


@contextmanager
def provider_run(folder: Path, redirect: str) -> Iterator[str]:
    """The issuer URL of a provider that runs inside the context and redirects browsers to
    `redirect`."""
    command = [sys.executable, "-m", "tests.dashboard.accounts.openid.serve", redirect]
    settings = {
        "DJANGO_SETTINGS_MODULE": "tests.dashboard.accounts.openid.settings",
        "OPENID_DATABASE": str(folder / "provider.sqlite3"),
        "OPENID_KEY": KEY.export_to_pem(private_key=True, password=None).decode(),
    }
    log = folder / "provider.log"
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env=os.environ | settings,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout
            port = process.stdout.readline().strip()
            assert port, log.read_text()
            yield f"http://localhost:{port}/o"
        finally:
            process.kill()


def answered(asked: str, *, allow: bool = True) -> str:
    """The URL to which the provider redirects a browser with this authorization request, after the
    person has signed in and granted or denied access."""
    with httpx.Client(follow_redirects=True, timeout=60) as browser:
        page = browser.get(asked)
        page = browser.post(
            page.url,
            data=_hidden(page.text) | {"username": PERSON["username"], "password": PASSWORD},
        )
        assert 'name="allow"' in page.text, page.text
        page = browser.post(
            page.url,
            data=_hidden(page.text) | ({"allow": "Authorize"} if allow else {}),
            follow_redirects=False,
        )
        return page.headers["Location"]


def _hidden(page: str) -> dict[str, str]:
    return {name: unescape(value) for name, value in _HIDDEN.findall(page)}
