"""Markdown of a document, handled as untrusted input: no raw HTML, scripts, styles or images;
tables and code have names."""

from __future__ import annotations

import re

import pytest

from dashboard.ui.pages.help.documents import Document, load_documents, resolve_link
from dashboard.ui.pages.help.markdown import render_markdown
from dashboard.ui.pages.help.pages import build_page

TEXT_TAGS = {"a", "blockquote", "br", "code", "em", "hr", "li", "ol", "p", "strong", "ul"}
PART_TAGS = {"button", "div", "h2", "h3", "h4", "pre", "span"}
TABLE_TAGS = {"table", "tbody", "td", "th", "thead", "tr"}
TAGS = TEXT_TAGS | PART_TAGS | TABLE_TAGS


def rendered(text: str) -> str:
    document = Document("dashboard/page", "dashboard/docs/page.md", f"# Page\n\n{text}\n")
    parts = render_markdown(
        document.text, document.sections, lambda href: resolve_link(document, href)
    )
    return parts.title_html + parts.body_html


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "a <b onclick=alert(1)>b</b>",
        "<img src=x onerror=alert(1)>",
        "<!-- a comment -->",
        "<style>body{}</style>",
        "`<i>`",
        "```\n</pre><script>alert(1)</script>\n```",
        '``` "><script>alert(1)</script>\ncode\n```',
        '## "><script>alert(1)</script>\n\n```\ncode\n```',
        "| <i>a</i> | b |\n|---|---|\n| <i>c</i> | d |",
        "![<i>a</i>](picture.webp)",
        '[a](https://example.com "<i>")',
    ],
)
def test_raw_html_stays_text(text: str) -> None:
    html = rendered(text)
    assert set(re.findall(r"<([a-zA-Z!][a-zA-Z0-9]*)", html)) <= TAGS
    assert not re.search(r"<[^>]*\son\w+=", html)


def test_a_title_is_escaped() -> None:
    document = Document("k", "dashboard/docs/k.md", "# <i>Title</i>\n")
    assert "&lt;i&gt;" in render_markdown(document.text, document.sections, str).title_html


@pytest.mark.parametrize(
    "href",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "data:text/html,x",
        "data:image/png;base64,AA==",
        "vbscript:x",
        "file:///etc/passwd",
        "//example.com/",
        "mailto:ada@example.com",
        "/etc/passwd",
        "../../settings.py",
        "../../tests/dashboard/test_x.py",
        "../ui/pictures/fleet.webp",
        "%2e%2e/%2e%2e/README.md",
        "nowhere.md",
        "#nowhere",
    ],
)
def test_a_link_outside_the_documents_is_plain_text(href: str) -> None:
    html = rendered(f"see [its **words**]({href}) here")
    assert "<a" not in html
    assert "its <strong>words</strong>" in html or "[its" in html


def test_a_link_to_another_host_keeps_its_address_and_sends_no_referrer() -> None:
    html = rendered("[a](https://example.com/x) and [b](nowhere.md) and [c](api.md)")
    assert html.count("<a ") == 2
    assert '<a href="https://example.com/x" rel="noopener noreferrer">a</a>' in html
    assert '<a href="../api/">c</a>' in html


def test_an_image_is_its_alternative_text() -> None:
    assert "<p>a picture</p>" in rendered("![a picture](../ui/pictures/fleet.webp)")


def test_a_table_scrolls_and_has_the_name_of_its_section() -> None:
    html = rendered("## Values\n\n| | b |\n|---|--:|\n| c | d |\n\n| e |\n|---|\n| f |")
    region = '<div class="scroll" tabindex="0" role="region" aria-label="Table: Values"><table>'
    assert region in html and 'aria-label="Table: Values, 2"' in html
    assert '<th class="r" scope="col">b</th>' in html
    assert "<td></td>" in html, "an empty head is no head"
    assert "style=" not in html


def test_code_scrolls_and_can_be_copied() -> None:
    html = rendered("## Start\n\n```sh\nmake demo\n```")
    name = 'role="group" aria-label="Code: Start" id="code-1"'
    assert f'<pre tabindex="0" {name}>make demo\n</pre>' in html
    assert 'data-copy="code-1"' in html


def test_equal_headings_have_different_anchors() -> None:
    html = rendered("## A `b`\n\n```\n# no heading\n```\n\n## A b")
    assert re.findall(r'<h2 id="([^"]+)"', html) == ["s-a-b", "s-a-b-1"]


def test_every_document_has_only_allowed_tags_and_unique_ids() -> None:
    for key, document in load_documents().items():
        page = build_page(key)
        assert page is not None
        assert set(re.findall(r"<([a-zA-Z!][a-zA-Z0-9]*)", page.body_html)) <= TAGS, key
        assert "style=" not in page.body_html and "&lt;!--" not in page.body_html, key
        ids = re.findall(r' id="([^"]+)"', page.body_html)
        assert len(ids) == len(set(ids)), key
        headings = [one for one in ids if not one.startswith("code-")]
        assert headings == [one.anchor for one in document.sections[1:]], key
        labels = re.findall(r'aria-label="([^"]+)"', page.body_html)
        assert len(labels) == len(set(labels)), key
