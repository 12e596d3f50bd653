"""Files have at most 400 lines (the agent's also 14,000 characters) and functions at most 42; an
exception is listed with its reason."""

import ast

from tests.architecture import long_code
from tests.architecture.tree import REPOSITORY, python_files, tracked

MAX_FILE, MAX_FUNCTION, MAX_CHARACTERS = 400, 42, 14_000
LONG_FILES: dict[str, str] = dict.fromkeys(long_code.FILES, long_code.REASON)
LONG_FUNCTIONS: dict[str, str] = {
    "agents/compilewatch/instrument/hotpath.py:build_wrapper": "holds the next one",
    "agents/compilewatch/instrument/hotpath.py:wrap": "holds the next one",
    "agents/compilewatch/instrument/hotpath.py:call_watched": "every call of a job runs this "
    "code, and a helper would cost more than its code",
} | {
    f"{file}:{name}": long_code.REASON
    for file, names in long_code.FUNCTIONS.items()
    for name in names
}
FOLDERS = ("agents", "dashboard", "tests")


def test_files_stay_short() -> None:
    found = {}
    for folder in FOLDERS:
        for file in python_files(REPOSITORY / folder):
            name, lines = str(file.relative_to(REPOSITORY)), len(file.read_text().splitlines())
            if lines > MAX_FILE and name not in LONG_FILES:
                found[name] = lines
    assert not found


def test_texts_of_the_agent_stay_short() -> None:
    texts = [
        REPOSITORY / path
        for path in tracked()
        if path.startswith("agents/") and path.endswith((".py", ".md"))
    ]
    assert len(texts) > 100
    names = {str(file.relative_to(REPOSITORY)): len(file.read_text()) for file in texts}
    assert not {
        name: characters
        for name, characters in names.items()
        if characters > MAX_CHARACTERS and name not in LONG_FILES
    }


def test_functions_stay_short() -> None:
    found = {}
    for folder in FOLDERS:
        for file in python_files(REPOSITORY / folder):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    lines = (node.end_lineno or node.lineno) - node.lineno + 1
                    name = f"{file.relative_to(REPOSITORY)}:{node.name}"
                    if lines > MAX_FUNCTION and name not in LONG_FUNCTIONS:
                        found[name] = lines
    assert not found


def test_every_exception_is_needed() -> None:
    lengths: dict[str, int] = {}
    for file in {name.split(":")[0] for name in LONG_FUNCTIONS}:
        for node in ast.walk(ast.parse((REPOSITORY / file).read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                name = f"{file}:{node.name}"
                lengths[name] = max(lines, lengths.get(name, 0))
    assert [name for name in LONG_FUNCTIONS if lengths.get(name, 0) <= MAX_FUNCTION] == []
    files = {name: len((REPOSITORY / name).read_text().splitlines()) for name in LONG_FILES}
    assert [name for name, lines in files.items() if lines <= MAX_FILE] == []


def test_every_module_has_a_docstring() -> None:
    silent = [
        str(file.relative_to(REPOSITORY))
        for folder in FOLDERS
        for file in python_files(REPOSITORY / folder)
        if file.read_text().strip() and not ast.get_docstring(ast.parse(file.read_text()))
    ]
    assert not silent
