"""What several environment variables say together: the database, the mail server, the provider of sign-ins."""

from __future__ import annotations

from dataclasses import dataclass


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
