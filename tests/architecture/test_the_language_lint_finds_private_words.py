"""The language lint reads docstrings, comments, literals with a space, Markdown and templates, and
ignores code."""

from pathlib import Path

import pytest

from tests.lint.language import check_file, find_words

SENTENCES = (
    "The agent tells the server.",
    "It was told by the process.",
    "The version says HEALTHY.",
    "The loss of which no report exists.",
    "What was compiled is sent.",
    "It keeps so many windows.",
    "A gap of 3 % is small.",
    "It costs 3ms.",
)


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize(
    "source",
    ['"""{}"""\n', "# {}\nX = 1\n", 'print("{}")\n', 'def send() -> None:\n    """{}"""\n'],
    ids=["module docstring", "comment", "literal", "function docstring"],
)
def test_each_kind_of_prose_in_python_is_read(sentence: str, source: str, tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(source.format(sentence))
    assert len(list(check_file(file))) == 1


@pytest.mark.parametrize("sentence", SENTENCES)
def test_prose_in_markdown_is_read(sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text(f"# Title\n\n{sentence}\n")
    assert [found.split(":")[1] for found in check_file(file)] == ["3"]


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize(
    "source",
    [
        "<p>{}</p>",
        "{{# {} #}}",
        "{{% comment %}}{}{{% endcomment %}}",
        "<!-- {} -->",
        '<a href="/" title="{}"></a>',
        '<img src="a.webp" alt="{}">',
        '<button aria-label="{}"></button>',
        '<input placeholder="{}">',
        '{{% include "part.html" with note="{}" %}}',
        "<a title=\"{{{{ name|default:'{}' }}}}\"></a>",
    ],
    ids=[
        "text",
        "template comment",
        "comment block",
        "HTML comment",
        "title",
        "alt",
        "aria-label",
        "placeholder",
        "literal of a tag",
        "literal of a value",
    ],
)
def test_each_kind_of_prose_in_html_templates_is_read(
    sentence: str, source: str, tmp_path: Path
) -> None:
    file = tmp_path / "page.html"
    file.write_text(f"{{% if name %}}\n{source.format(sentence)}\n{{% endif %}}\n")
    assert [found.split(":")[1] for found in check_file(file)] == ["2"]


def test_text_templates_are_read_and_other_text_files_are_not(tmp_path: Path) -> None:
    for folder in ("templates", "data"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mail.txt").write_text(
            "{% if told %}\nNobody answered.\n{% endif %}\n"
        )
    (found,) = find_words(tmp_path)
    assert found.startswith(f"{tmp_path}/templates/mail.txt:2: 'Nobody'")


def test_a_space_between_a_value_and_its_percent_sign_is_found(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text("<p>{{ share }} %</p>\n")
    assert len(list(check_file(file))) == 1


@pytest.mark.parametrize(
    "heading", ["## What does it cost?", "## A sentence.", "# Who reads this?"]
)
def test_a_heading_that_is_a_sentence_is_found(heading: str, tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text(heading + "\n")
    assert list(check_file(file))


@pytest.mark.parametrize(
    ("name", "source"),
    [
        (
            "module.py",
            'told = {"told": 1}\n\n\ndef tell() -> None:\n    """Send `told` at once."""\n',
        ),
        (
            "page.html",
            '{% if told == "told" or says == "says" %}<p class="beside">{{ told|default:"told" }}\n'
            "<code>it says nobody</code><script>it says nobody</script></p>{% endif %}\n",
        ),
        ("page.md", "# Title\n\n`told` is a field. [Link](told.md)\n\n```\nit says nobody\n```\n"),
    ],
)
def test_identifiers_and_code_are_left_alone(name: str, source: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(source)
    assert not list(check_file(file))


def test_a_violation_names_file_line_words_and_replacement(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# Title\n\nIt is shown beside the baseline.\n")
    (found,) = find_words(tmp_path)
    assert (
        found == f"{tmp_path}/page.md:3: 'beside': write compared with, next to, alongside, in "
        "addition to"
    )


def test_the_name_of_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "test_a_miss_is_told.py").touch()
    (tmp_path / "test_a_miss_is_reported.py").touch()
    [found] = find_words(tmp_path)
    assert "test_a_miss_is_told.py: 'told' in the name" in found
