"""Under a path of its own, beside other programs of one name: whether a proxy took the path off or
left it, the same is served."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


class PrefixMiddleware:
    """Takes the path off where it still stands; what the answers link to has it, by Django's
    FORCE_SCRIPT_NAME."""

    def __init__(self, application: Application, prefix: str) -> None:
        self._application, self._prefix = application, prefix

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == self._prefix or path.startswith(f"{self._prefix}/"):
            environ["PATH_INFO"] = path.removeprefix(self._prefix) or "/"
        return self._application(environ, start_response)


def mount_under_prefix(application: Application, prefix: str) -> Application:
    """The application itself where there is no prefix: reports pass here thousands of times a
    second."""
    return PrefixMiddleware(application, prefix) if prefix else application
