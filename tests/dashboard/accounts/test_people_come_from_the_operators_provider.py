"""Sign-in at an OpenID Connect provider: the tests run a real provider, and the dashboard verifies
its answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from allauth.socialaccount.models import SocialAccount
from django.conf import LazySettings
from django.test import Client

from dashboard.accounts.models import AuditEntry, User
from dashboard.environment.settings import SettingError, env_read
from dashboard.projects.models import Project, Role
from tests.dashboard.accounts.openid.provider import PERSON, provider_run
from tests.dashboard.accounts.openid.way_in import BACK, NAME, START, callback, configure
from tests.dashboard.conftest import PASSWORD


def test_a_person_verified_by_the_provider_gets_an_account_without_projects(
    client: Client, provider: str, project: Project
) -> None:
    page = client.get("/accounts/login/?next=/p/ranking/").content.decode()
    assert f"Sign in with {NAME}" in page
    back = client.get(callback(client, start=f"{START}?next=/p/ranking/"))
    assert back.headers["Location"] == "/p/ranking/"
    mara = User.objects.get(username="mara")
    assert not mara.has_usable_password() and not mara.is_staff
    assert (mara.email, mara.first_name, mara.last_name) == (PERSON["email"], "Mara", "Vogel")
    assert client.get("/p/ranking/").status_code == 404
    assert "not a member of a project yet" in client.get("/").content.decode()
    assert client.session.get_expire_at_browser_close()
    assert (
        AuditEntry.objects.filter(
            action="user.sign_in", actor=mara, after={"by": "provider"}
        ).count()
        == 1
    )
    again = Client()
    again.get(callback(again))
    assert User.objects.filter(username__startswith="mara").count() == 1
    assert (
        "Your account has no password"
        in again.get("/accounts/password/change/", follow=True).content.decode()
    )


def test_a_name_that_is_taken_here_gives_no_access_to_that_account(
    client: Client, provider: str, project: Project, make_user: Callable[..., User]
) -> None:
    local = make_user("mara", project, Role.ADMIN)
    local.email = PERSON["email"]
    local.save()
    client.get(callback(client))
    assert client.get("/p/ranking/").status_code == 404
    assert SocialAccount.objects.get().user != local


def test_an_answer_for_another_browser_is_refused(
    client: Client, provider: str, project: Project
) -> None:
    path = callback(client)
    victim = Client()
    assert "Sign-in failed" in victim.get(path).content.decode()
    assert "_auth_user_id" not in victim.session and not User.objects.exists()


def test_a_person_who_denies_access_at_the_provider_is_not_signed_in(
    client: Client, provider: str, project: Project
) -> None:
    back = callback(client, allow=False)
    assert "error=access_denied" in back
    assert "sign-in cancelled" in client.get(back, follow=True).content.decode().lower()
    assert "_auth_user_id" not in client.session and not User.objects.exists()


def test_a_code_of_another_provider_is_refused(
    client: Client, provider: str, project: Project, tmp_path: Path, settings: LazySettings
) -> None:
    with provider_run(tmp_path, BACK) as other:
        configure(settings, other)
        path = callback(client)
        configure(settings, provider)
        client.get(path, follow=True)
    assert "_auth_user_id" not in client.session and not User.objects.exists()


@pytest.mark.parametrize("what", ["code=forged&state={state}", "error=access_denied&state={state}"])
def test_a_forged_code_or_an_error_is_refused(
    client: Client, provider: str, project: Project, what: str
) -> None:
    path = callback(client)
    state = path.partition("state=")[2].partition("&")[0]
    answer = client.get(f"{START}callback/?{what.format(state=state)}", follow=True)
    assert (
        "sign-in cancelled" in answer.content.decode().lower()
        or "Sign-in failed" in answer.content.decode()
    )
    assert "_auth_user_id" not in client.session and not User.objects.exists()


def test_a_provider_that_does_not_answer_is_one_sentence(
    client: Client, settings: LazySettings, db: None
) -> None:
    configure(settings, "http://127.0.0.1:9")
    answer = client.post(START)
    assert answer.status_code < 500 and "Sign-in failed" in answer.content.decode()


def test_a_person_connects_the_provider_to_an_existing_account(
    client: Client, provider: str, project: Project, user: User
) -> None:
    client.post("/accounts/login/", {"login": "ada", "password": PASSWORD})
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    client.get(callback(client, start=f"{START}?process=connect"))
    other = Client()
    other.get(callback(other))
    assert other.get("/p/ranking/").status_code == 200
    assert AuditEntry.objects.filter(action="user.provider", actor=user).count() == 1


def test_a_sensitive_action_sends_a_person_without_a_password_to_the_provider_again(
    client: Client, provider: str, project: Project
) -> None:
    from dashboard.projects.services import member_add

    client.get(callback(client))
    member_add(project=project, user=User.objects.get(), role=Role.ADMIN)
    keys = "/p/ranking/settings/keys/"
    assert client.post(f"{keys}add/", {"kind": "ing", "expires": ""}).status_code == 200
    session = client.session
    session["account_authentication_methods"][-1]["at"] -= 3600
    session.save()
    led = client.post(
        f"{keys}add/",
        {"kind": "ing", "expires": ""},
        headers={"referer": f"http://testserver{keys}"},
    )
    assert led.headers["Location"].startswith("/accounts/login/?next=")
    assert client.get(keys).status_code == 302


def test_without_a_provider_there_is_no_button_and_no_route(client: Client, db: None) -> None:
    assert "oidc" not in client.get("/accounts/login/").content.decode()
    assert client.post(START).status_code == 404


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"URL": "https://login.example.com"}, "CLIENT_ID"),
        ({"CLIENT_ID": "x"}, "COMPILEWATCH_OIDC_URL is missing"),
        (
            {"URL": "http://login.example.com", "CLIENT_ID": "x", "CLIENT_SECRET": "y"},
            "expected https",
        ),
        ({"URL": "login", "CLIENT_ID": "x", "CLIENT_SECRET": "y"}, "issuer's URL"),
    ],
)
def test_an_incomplete_provider_configuration_is_one_sentence(
    tmp_path: Path, given: dict[str, str], said: str
) -> None:
    environ = {f"COMPILEWATCH_OIDC_{name}": value for name, value in given.items()}
    with pytest.raises(SettingError, match=said):
        env_read({"COMPILEWATCH_DATA": str(tmp_path), **environ})


def test_the_secret_may_come_from_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("from the file\n")
    given = {
        "URL": "https://login.example.com/",
        "CLIENT_ID": "x",
        "CLIENT_SECRET_FILE": str(secret),
    }
    env = env_read(
        {
            "COMPILEWATCH_DATA": str(tmp_path),
            **{f"COMPILEWATCH_OIDC_{name}": value for name, value in given.items()},
        }
    )
    assert env.oidc and (env.oidc.url, env.oidc.secret, env.oidc.name) == (
        "https://login.example.com",
        "from the file",
        "single sign-on",
    )
