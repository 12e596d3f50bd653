"""Polling: the part of a page that changes has an ETag, and an unchanged part is answered with
304."""

from django.test import Client

from dashboard.alerts.models import Alert
from dashboard.regressions.models import Verdict
from tests.dashboard.ui.test_pages_belong_to_their_members import pages

HTMX = {"HX-Request": "true"}


def test_the_part_is_not_sent_again_until_it_changes(signed_in: Client, alert: Alert) -> None:
    first = signed_in.get("/p/ranking/", headers=HTMX)
    assert first.status_code == 200
    assert b"<html" not in first.content
    again = signed_in.get("/p/ranking/", headers={**HTMX, "If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    Verdict.objects.filter(current=True, kind="roll_back").update(sentence="It is worse now.")
    changed = signed_in.get("/p/ranking/", headers={**HTMX, "If-None-Match": first["ETag"]})
    assert changed.status_code == 200
    assert b"It is worse now." in changed.content


def test_the_page_contains_the_etag_of_its_part(signed_in: Client, alert: Alert) -> None:
    for address in ("/p/ranking/", "/p/ranking/alerts/", f"/p/ranking/alerts/{alert.number}/"):
        page = signed_in.get(address)
        tag = signed_in.get(address, headers=HTMX)["ETag"]
        assert f'data-etag="{tag.replace(chr(34), "&quot;")}"' in page.content.decode()


def test_a_cache_cannot_confuse_a_page_with_its_part(signed_in: Client, alert: Alert) -> None:
    answer = signed_in.get("/p/ranking/")
    assert "HX-Request" in answer["Vary"]
    assert answer["Cache-Control"] == "private, no-cache"


def test_every_page_answers_a_request_for_its_part(signed_in: Client, alert: Alert) -> None:
    answers = {
        address: signed_in.get(address, headers=HTMX).status_code for address in pages(alert)
    }
    assert {
        address: status for address, status in answers.items() if status not in (200, 302)
    } == {}
