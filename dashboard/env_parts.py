"""What several environment variables say together: the database, the mail server, the provider of sign-ins, our own address."""

from __future__ import annotations

import re
from dataclasses import dataclass

OWN_PATHS = frozenset(("account", "accounts", "admin", "api", "favicon.ico", "health", "healthz", "invitations", "metrics", "numbers", "p"))
OWN_PATHS |= {"projects", "readyz", "static", "ui"}
"""How the paths of the dashboard itself begin: under such a path it could not be told whether a proxy took it off."""


@dataclass(frozen=True)
class Database:
    """Where the data lives: `sqlite` with a file, or `postgresql` with an address."""

    engine: str
    name: str
    user: str = ""
    password: str = ""
    host: str = ""
    port: str = ""


@dataclass(frozen=True)
class Mail:
    """The server that takes our mail; `tls` is starttls, tls or none."""

    host: str
    port: int
    user: str
    password: str
    tls: str
    sender: str


@dataclass(frozen=True)
class Oidc:
    """The provider at which people may sign in; `name` stands on the button."""

    url: str
    client: str
    secret: str
    name: str


def own_host(listen: str) -> str:
    """By which this machine itself reaches what listens there, as an address of a page has it: 0.0.0.0 and :: are every address."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(listen, listen)
    return f"[{host}]" if ":" in host else host


def own_url(listen: str, port: int) -> str:
    """The same with its port."""
    return f"http://{own_host(listen)}:{port}"


def path_trouble(path: str) -> str:
    """What is wrong with the path of our own address; empty if nothing is."""
    if path and not re.fullmatch(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+", path):
        return f"has the path {path!r}, which is not made of letters, digits and . _ ~ - alone"
    first = path.split("/")[1] if path else ""
    return f"has the path {path!r}, and paths of the dashboard's own begin with /{first}" if first in OWN_PATHS else ""
