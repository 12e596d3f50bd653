"""Fixtures of an OpenID Connect provider."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.conf import LazySettings

from dashboard.accounts import allauth_adapters
from dashboard.accounts.session_expiry import reset_sign_in_limits
from dashboard.common.log_throttle import LogThrottle
from dashboard.projects.models import Project
from tests.dashboard.accounts.openid.front import Front, front_run
from tests.dashboard.accounts.openid.provider import provider_run
from tests.dashboard.accounts.openid.way_in import BACK, configure


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The issuer URL of the provider."""
    with provider_run(tmp_path_factory.mktemp("openid"), BACK) as address:
        yield address


@pytest.fixture
def provider(settings: LazySettings, issuer: str) -> str:
    """The issuer URL; the dashboard is configured with the provider as the environment would
    configure it."""
    configure(settings, issuer)
    return issuer


@pytest.fixture
def front(
    issuer: str, settings: LazySettings, project: Project, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Front]:
    """A proxy in front of the provider; the dashboard is configured with the proxy as its
    provider."""
    reset_sign_in_limits()
    monkeypatch.setattr(allauth_adapters, "_log_throttle", LogThrottle())
    with front_run(issuer) as front:
        configure(settings, front.address)
        yield front
