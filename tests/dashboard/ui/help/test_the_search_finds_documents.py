"""Search of the help: headings first, then text; part of the search of a project, without
queries."""

from __future__ import annotations

import re

from django.test import Client

from dashboard.alerts.models import Alert
from dashboard.projects.models import Project
from dashboard.ui.pages.help.pages import DECISIONS
from dashboard.ui.pages.help.search import search_help

ADDRESS = "/p/ranking/search/"
HITS = re.compile(r'<a href="(/help/[^"]+)"')


def found(client: Client, text: str, address: str = ADDRESS) -> list[str]:
    return HITS.findall(client.get(address, {"q": text}).content.decode().split("<main", 1)[1])


def test_a_heading_is_found_with_its_place_in_the_document(
    signed_in: Client, project: Project
) -> None:
    assert "/help/dashboard/pages/#s-kill-switch" in found(signed_in, "KILL switch")
    assert found(signed_in, "calibration")[0] == "/help/dashboard/judge/calibration/"


def test_a_setting_is_found_in_a_text(signed_in: Client, project: Project) -> None:
    assert any(
        link.startswith("/help/dashboard/operations/settings/")
        for link in found(signed_in, "COMPILEWATCH_OIDC_URL")
    )


def test_the_words_of_a_title_and_a_heading_are_found_together(
    signed_in: Client, project: Project
) -> None:
    assert "/help/dashboard/pages/#s-roles" in found(signed_in, "roles pages")


def test_every_word_must_be_in_the_section(signed_in: Client, project: Project) -> None:
    assert found(signed_in, "calibration nowhere-to-be-found") == []


def test_a_project_shows_at_most_five_results_and_reports_more(
    signed_in: Client, project: Project
) -> None:
    html = signed_in.get(ADDRESS, {"q": "version"}).content.decode()
    assert len(HITS.findall(html.split("<main", 1)[1].split("<footer", 1)[0])) == 5
    assert "More results exist" in html
    assert len(found(signed_in, "version", "/help/")) > 5


def test_decisions_come_after_other_documents() -> None:
    results, _ = search_help(["retention"], 100)
    late = [result.key.startswith(DECISIONS) for result in results]
    assert late == sorted(late) and True in late and False in late


def test_a_decision_is_one_result() -> None:
    keys = [result.key for result in search_help(["decision"], 1000)[0]]
    decisions = [key for key in keys if key.startswith(f"{DECISIONS}/")]
    assert decisions and len(decisions) == len(set(decisions))


def test_short_words_match_headings_only() -> None:
    assert search_help(["2"], 5) == ([], False)
    assert all("ci" in result.title.lower() for result in search_help(["ci"], 1000)[0])


def test_results_of_the_project_come_first_and_a_single_one_is_opened(
    signed_in: Client, alert: Alert
) -> None:
    name = alert.deployment.model.name
    html = signed_in.get(ADDRESS, {"q": name}).content.decode()
    assert html.index("Models</h3>") < html.index("Help</h3>")
    version = alert.deployment.version
    query = {"q": f"{name} {version.name}", "go": "1"}
    answer = signed_in.get(ADDRESS, query)
    assert answer.status_code in (200, 302)
    assert not answer.get("Location", "").startswith("/help/")


def test_a_help_result_shows_no_time(signed_in: Client, project: Project) -> None:
    html = signed_in.get("/help/", {"q": "calibration"}).content.decode()
    hits = html.split('class="hits"', 1)[1].split("</section>", 1)[0]
    assert "<time" not in hits and "nowrap" not in hits


def test_the_index_reports_an_empty_result(signed_in: Client) -> None:
    html = signed_in.get("/help/", {"q": "<b>nowhere-to-be-found"}).content.decode()
    assert "No document contains all of these words" in html
    assert "&lt;b&gt;nowhere" in html and "<b>nowhere" not in html
