"""A provider of sign-in for the tests that need one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.conf import LazySettings

from tests.dashboard.accounts.openid.provider import provider_run
from tests.dashboard.accounts.openid.way_in import BACK, configure


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The provider's address."""
    with provider_run(tmp_path_factory.mktemp("openid"), BACK) as address:
        yield address


@pytest.fixture
def provider(settings: LazySettings, issuer: str) -> str:
    """The same, configured as the environment would."""
    configure(settings, issuer)
    return issuer
