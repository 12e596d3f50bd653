"""Frame names between backticks in sentences are formatted as code and escaped."""

import pytest

from dashboard.ui.templatetags.format_filters import code_breaks, prose


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("`score_batch` reached its limit", "<code>score_batch</code> reached its limit"),
        ("a `<b>` here", "a <code>&lt;b&gt;</code> here"),
        ("a lone ` tick <i>", "a lone ` tick &lt;i&gt;"),
        ("nothing & more", "nothing &amp; more"),
        ("\u202ex\u2066: 31% slower", "x: 31% slower"),
    ],
)
def test_code_in_a_sentence_is_formatted_as_code(text: str, html: str) -> None:
    assert prose(text) == html


@pytest.mark.parametrize(
    ("code", "html"),
    [
        ("candidates.size(0) == 64", "candidates.<wbr>size(0) == 64"),
        ("ranker/score.py:118", "ranker/<wbr>score.<wbr>py:118"),
        ("<b>.x", "&lt;b&gt;.<wbr>x"),
    ],
)
def test_code_can_break_between_names(code: str, html: str) -> None:
    assert code_breaks(code) == html
