"""The recipe of the image copies every document of the help pages to its place below the
dashboard's folder."""

from __future__ import annotations

import posixpath

from dashboard.ui.pages.help.documents import load_documents
from tests.image.recipe import instructions
from tests.image.test_the_deployed_manifests_are_valid import DOCKER

BUILD_FOLDER = "/build/"
APP_FOLDER = "/app/"


def copied_to_the_app() -> list[str]:
    """Paths of the repository that the last stage has at the same place."""
    lines = list(instructions((DOCKER / "Dockerfile").read_text()))
    last = max(place for place, (word, _) in enumerate(lines) if word == "FROM")
    copies = [rest.split() for word, rest in lines[last:] if word == "COPY"]
    found = []
    for *sources, target in copies:
        place = posixpath.normpath(posixpath.join(APP_FOLDER, target))
        for source in sources:
            path = source.removeprefix(BUILD_FOLDER)
            if place == posixpath.normpath(posixpath.join(APP_FOLDER, path)):
                found.append(path)
    return found


def test_every_document_is_copied() -> None:
    copied = copied_to_the_app()
    missing = [
        document.source
        for document in load_documents().values()
        if not any(f"{document.source}/".startswith(f"{path}/") for path in copied)
    ]
    assert missing == []
    assert "agents/docs" in copied and "agents/tests" not in copied
