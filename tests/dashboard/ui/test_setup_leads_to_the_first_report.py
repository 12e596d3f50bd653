"""The Setup page: a key that is shown once, the first report, and channels."""

import html as markup
import json
import re
from collections.abc import Callable
from datetime import timedelta

from compilewatch.wire.messages import Request
from django.conf import LazySettings, settings
from django.test import Client

from dashboard.accounts.models import AuditEntry
from dashboard.common import clock
from dashboard.fleet.models import Instance
from dashboard.projects.command_key import command_key_create, derive_command_key, list_public_keys
from dashboard.projects.models import Key, Project, Role
from dashboard.projects.services import key_create
from tests.dashboard.ui.factory import Shape, model

SETUP = "/p/ranking/setup/"


def test_a_new_key_is_shown_once_and_not_stored(signed_in: Client, project: Project) -> None:
    made = signed_in.post(SETUP + "keys/add/", {"name": "ranker in production"})
    found = re.search(r'<code id="key">(cw_ing_\w+)</code>', made.content.decode())
    assert found
    assert made["Cache-Control"] == "no-store"
    assert f"COMPILEWATCH_API_KEY={found[1]}" in made.content.decode()
    assert made.content.decode().count(found[1]) >= 4, (
        "the key itself, the variables, Docker and Kubernetes"
    )
    again = signed_in.get(SETUP).content.decode()
    assert found[1] not in again
    assert f"cw_ing_{Key.objects.get(project=project).lookup}_" in again
    assert "ranker in production" in again


def test_plain_http_is_stated_on_every_page_and_in_the_settings_of_jobs(
    signed_in: Client, project: Project, settings: LazySettings
) -> None:
    said, told = "Reports are accepted over plain HTTP", "COMPILEWATCH_ALLOW_HTTP=1"
    settings.ALLOW_HTTP, settings.PLAIN_HTTP, settings.BASE_URL = (
        False,
        False,
        "http://watch.internal",
    )
    page = signed_in.get(SETUP).content.decode()
    assert said not in page and told not in page
    settings.ALLOW_HTTP = settings.PLAIN_HTTP = True
    for path in ("/p/ranking/", "/numbers/", SETUP):
        assert said in signed_in.get(path).content.decode()
    assert said not in Client().get("/accounts/login/").content.decode()
    page = markup.unescape(signed_in.get(SETUP).content.decode())
    assert (
        f"export {told}" in page
        and f"-e {told}" in page
        and '- name: COMPILEWATCH_ALLOW_HTTP\n    value: "1"' in page
    )
    settings.BASE_URL = "http://127.0.0.1:8000"
    assert told not in signed_in.get(SETUP).content.decode()


def test_the_last_use_of_a_key_appears_without_a_reload(
    signed_in: Client, project: Project
) -> None:
    key, _ = key_create(project=project, name="ranker")
    page = signed_in.get(SETUP).content.decode()
    assert f'hx-get="{SETUP}keys/"' in page and ">never<" in page
    shown = re.search(r'hx-get="/p/ranking/setup/keys/"[^>]*data-etag="([^"]+)"', page)
    assert shown
    asked = {"If-None-Match": markup.unescape(shown[1]), "HX-Request": "true"}
    assert signed_in.get(SETUP + "keys/", headers=asked).status_code == 304
    Key.objects.filter(pk=key.pk).update(last_used_at=clock.now())
    used = signed_in.get(SETUP + "keys/", headers=asked)
    assert (
        used.status_code == 200
        and ">never<" not in used.content.decode()
        and "ago</time>" in used.content.decode()
    )


def test_old_reports_do_not_count_as_arriving(signed_in: Client, project: Project) -> None:
    model(project, "ranker", [Shape("7", 0.01, 100, 30, instances=1)], every=10)
    assert "Receiving reports." in signed_in.get(SETUP + "arrival/").content.decode()
    Instance.objects.update(last_seen_at=clock.now() - timedelta(hours=7))
    late = signed_in.get(SETUP + "arrival/").content.decode()
    assert (
        "No recent reports." in late
        and "7 h ago" in late.replace("\u00a0", " ")
        and "Receiving reports." not in late
    )


def test_the_snippets_contain_the_address_of_this_server(
    signed_in: Client, project: Project
) -> None:
    html = signed_in.get(SETUP).content.decode()
    assert f"export COMPILEWATCH_ENDPOINT={settings.BASE_URL}" in html
    for words in (
        "compilewatch.init(",
        "compilewatch run -- python serve.py",
        "file:/tmp/reports.jsonl",
        "train_step",
    ):
        assert words in html


def test_the_snippets_of_containers_set_the_node(signed_in: Client, project: Project) -> None:
    html = markup.unescape(signed_in.get(SETUP).content.decode())
    assert (
        "- name: COMPILEWATCH_NODE\n    valueFrom: {fieldRef: {fieldPath: spec.nodeName}}" in html
    )
    assert '-e COMPILEWATCH_NODE="$(hostname)"' in html


def test_the_page_waits_then_confirms_the_first_report_then_names_the_sender(
    signed_in: Client,
    project: Project,
    make_request: Callable[..., Request],
    store_reports: Callable[..., object],
) -> None:
    def part() -> str:
        return signed_in.get(SETUP + "arrival/").content.decode()

    assert "Waiting for the first report." in part()
    store_reports(make_request(model="ranker", version="1", minutes=1))
    assert "First report received" in part()
    model(project, "ranker", [Shape("7", 0.01, 100, 30, instances=1)], every=10)
    assert "Receiving reports." in part()
    assert "ranker 7" in part()


def test_setup_creates_and_shows_only_ingest_keys(signed_in: Client, project: Project) -> None:
    signed_in.post(SETUP + "keys/add/", {"name": "ci", "kind": "api"})
    assert Key.objects.get(project=project).kind == "ing", (
        "Setup creates an ingest key, regardless of the requested kind"
    )
    key_create(project=project, kind="dep", name="deployments from CI", actor_name="tests")
    html = signed_in.get(SETUP).content.decode()
    assert (
        "deployments from CI" not in html
        and "/revoke/" not in html
        and 'href="/p/ranking/settings/keys/"' in html.split("<main", 1)[1]
    )


def test_the_public_key_is_shown_to_every_member_with_its_settings(
    as_role: Callable[[Role], Client], project: Project
) -> None:
    viewer = as_role(Role.VIEWER)
    assert "COMPILEWATCH_COMMAND_PUBLIC_KEY" not in viewer.get(SETUP).content.decode()
    for _ in range(2):
        text = command_key_create(project=project, actor_name="tests")
    page = viewer.get(SETUP).content.decode()
    newest, before = list_public_keys(project)
    assert (
        "export COMPILEWATCH_ALLOW_REMOTE=freeze,eager\nexport "
        f"COMPILEWATCH_COMMAND_PUBLIC_KEY={newest}<" in page
    )
    assert before not in page and text not in page and "Replace command key" not in page


def test_the_symmetric_command_key_is_shown_once_and_replaced_immediately(
    signed_in: Client, project: Project
) -> None:
    texts = []
    for _ in range(2):
        made = signed_in.post(SETUP + "command-key/")
        found = re.search(r'<code id="ckey">(cw_cmd_\w+)</code>', made.content.decode())
        assert found and made["Cache-Control"] == "no-store"
        texts.append(found[1])
    project.refresh_from_db()
    assert texts[0] != texts[1] == derive_command_key(project)
    assert texts[1] not in signed_in.get(SETUP).content.decode() and texts[1] not in json.dumps(
        project.settings
    )
    assert AuditEntry.objects.filter(action="command_key.make").count() == 2
    assert texts[1] not in str(list(AuditEntry.objects.values_list("before", "after", "subject")))
