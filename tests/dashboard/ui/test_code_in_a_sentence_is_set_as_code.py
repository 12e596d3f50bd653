"""Sentences name frames between backticks: they are set as code, and stay text."""

import pytest

from dashboard.ui.templatetags.say import prose


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("`score_batch` reached its limit", "<code>score_batch</code> reached its limit"),
        ("a `<b>` here", "a <code>&lt;b&gt;</code> here"),
        ("a lone ` tick <i>", "a lone ` tick &lt;i&gt;"),
        ("nothing & more", "nothing &amp; more"),
        ("\u202ex\u2066: 31 % slower", "x: 31 % slower"),
    ],
)
def test_code_in_a_sentence(text: str, html: str) -> None:
    assert prose(text) == html
