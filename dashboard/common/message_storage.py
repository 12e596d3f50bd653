"""What a page tells once, such as "Saved.", is kept in a cookie that is sent where the session is,
and nowhere else."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.messages.storage.cookie import CookieStorage
from django.contrib.messages.storage.fallback import FallbackStorage
from django.contrib.messages.storage.session import SessionStorage
from django.http import HttpResponse


class PathCookieStorage(CookieStorage):
    """Django's own has the whole host for its path and a name that every program in Django has."""

    cookie_name = settings.MESSAGE_COOKIE_NAME

    def _update_cookie(self, encoded_data: Any, response: HttpResponse) -> None:
        super()._update_cookie(encoded_data, response)  # type: ignore[misc]  # the stubs leave it out
        response.cookies[self.cookie_name]["path"] = settings.SESSION_COOKIE_PATH


class MessageStorage(FallbackStorage):
    """What a cookie has no room for is kept in the session."""

    storage_classes = (PathCookieStorage, SessionStorage)
