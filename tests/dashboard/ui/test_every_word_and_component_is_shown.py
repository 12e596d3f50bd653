"""The glossary and the page of components: both are complete, and components are for developers
only."""

import pytest
from django.test import Client, override_settings
from django.utils.html import escape

from dashboard.accounts.models import User
from dashboard.regressions.models import VerdictKind
from dashboard.ui.layout.navigation import SECTIONS, build_navigation
from dashboard.ui.pages.help.glossary import GLOSSARY
from dashboard.ui.urls import urlpatterns


def test_the_glossary_explains_every_term_of_a_column_head(signed_in: Client) -> None:
    html = signed_in.get("/numbers/").content.decode()
    assert all(
        escape(entry.text) in html and f'id="{key}"' in html for key, entry in GLOSSARY.items()
    )


@override_settings(EMBEDDED=False, DEBUG=False)
def test_components_are_for_staff_only(signed_in: Client) -> None:
    assert signed_in.get("/ui/components").status_code == 403
    User.objects.update(is_staff=True)
    assert signed_in.get("/ui/components").status_code == 200
    assert Client().get("/ui/components").status_code == 302


@override_settings(DEBUG=True)
def test_components_show_every_verdict_in_both_themes(signed_in: Client) -> None:
    html = signed_in.get("/ui/components?sort=name&page=2").content.decode()
    for kind in VerdictKind:
        assert html.count(kind.label) >= 4
    assert html.count('data-theme="light"') == html.count('data-theme="dark"') == 1
    assert 'aria-sort="ascending"' in html
    ids = [part.split('"', 1)[0] for part in html.split(' id="')[1:]]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    "name",
    [pattern.name for pattern in urlpatterns if str(pattern.pattern).startswith("p/<slug:slug>/")],
)
def test_every_address_of_a_project_belongs_to_one_section(name: str) -> None:
    inside = [section.label for section in SECTIONS if name.startswith(section.names)]
    assert len(inside) == 1 or name == "search", inside


def test_keyboard_shortcuts_of_sections_are_unique() -> None:
    letters = [section.key for section in SECTIONS]
    assert len(set(letters)) == len(letters)
    assert [link.current for link in build_navigation("ranking", "compare") if link.current] == [
        "true"
    ]
