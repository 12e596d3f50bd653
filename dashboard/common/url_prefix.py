"""URL prefix: serves the dashboard below a path, next to other programs of the same host name. The
proxy may strip the prefix or keep it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


class PrefixMiddleware:
    """Middleware that strips the prefix if it is present. Links in responses contain the prefix
    through Django's FORCE_SCRIPT_NAME."""

    def __init__(self, application: Application, prefix: str) -> None:
        self._application, self._prefix = application, prefix

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == self._prefix or path.startswith(f"{self._prefix}/"):
            environ["PATH_INFO"] = path.removeprefix(self._prefix) or "/"
        return self._application(environ, start_response)


def mount_under_prefix(application: Application, prefix: str) -> Application:
    """Wraps the application; without a prefix, returns it unchanged: thousands of reports a second
    pass here."""
    return PrefixMiddleware(application, prefix) if prefix else application
