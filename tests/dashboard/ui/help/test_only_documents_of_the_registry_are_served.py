"""Addresses below /help/: a key of the registry or 404, never a file path."""

from collections.abc import Callable

import pytest
from django.test import Client

from dashboard.accounts.models import User
from dashboard.ui.pages.help.documents import REPOSITORY, load_documents
from tests.dashboard.conftest import sign_in


@pytest.mark.parametrize(
    "path",
    [
        "dashboard/../../README",
        "dashboard/docs/../settings",
        "../README",
        "%2e%2e/README",
        "dashboard/%2e%2e/%2e%2e/README",
        "..%2f..%2fetc%2fpasswd",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "dashboard/judge/overview.md",
        "dashboard/docs/judge/overview",
        "dashboard/judge/./overview",
        "dashboard//judge/overview",
        "dashboard/judge/overview%00",
        "dashboard\\judge\\overview",
        "DASHBOARD/judge/overview",
        "README",
        "CHANGELOG",
        "dashboard/CHANGELOG",
        "docker/README",
        "nowhere",
    ],
)
def test_a_path_outside_the_registry_is_not_found(signed_in: Client, path: str) -> None:
    assert signed_in.get(f"/help/{path}/").status_code == 404


def test_a_document_of_the_registry_is_found(signed_in: Client) -> None:
    assert signed_in.get("/help/dashboard/judge/overview/").status_code == 200


def test_every_document_is_in_a_documentation_folder() -> None:
    folders = [REPOSITORY / "dashboard/docs", REPOSITORY / "agents/docs"]
    for document in load_documents().values():
        file = (REPOSITORY / document.source).resolve()
        assert file == REPOSITORY / "agents/README.md" or any(
            file.is_relative_to(folder) for folder in folders
        )


@pytest.mark.parametrize("address", ["/help/", "/help/dashboard/api/", "/help/nowhere/"])
def test_the_help_requires_the_same_sign_in_as_the_glossary(db: None, address: str) -> None:
    answers = [Client().get(one) for one in (address, "/numbers/")]
    assert [answer.status_code for answer in answers] == [302, 302]
    way_in = [answer["Location"].partition("?")[0] for answer in answers]
    assert way_in[0] == way_in[1] == "/accounts/login/"


def test_a_member_of_no_project_reads_the_help(make_user: Callable[..., User]) -> None:
    client = sign_in(Client(), make_user("grace"))
    assert client.get("/help/dashboard/api/").status_code == 200
