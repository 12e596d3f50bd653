"""The visible top level is fixed, every setting is documented, and every response of the endpoint
is explained."""

import re

from compilewatch.wire.ack import REJECTED_CODES
from compilewatch.wire.errors import ERROR_CODES

from tests.architecture.tree import REPOSITORY, tracked

TOP_LEVEL = {
    "manage.py",
    "Makefile",
    "README.md",
    "requirements.txt",
    "agents",
    "dashboard",
    "docker",
    "tests",
}


def test_the_visible_top_level_is_fixed() -> None:
    visible = {path.split("/")[0] for path in tracked() if not path.startswith(".")}
    assert visible == TOP_LEVEL


def test_every_setting_of_the_dashboard_is_in_env_example() -> None:
    files = (
        "dashboard/environment/settings.py",
        "dashboard/environment/groups.py",
        "dashboard/environment/parsers.py",
        "docker/entrypoint",
    )
    read = set(
        re.findall(
            r"COMPILEWATCH_[A-Z_]+", "".join((REPOSITORY / file).read_text() for file in files)
        )
    )
    documented = set(
        re.findall(
            r"^#? ?(COMPILEWATCH_[A-Z_]+)=",
            (REPOSITORY / "docker/env.example").read_text(),
            re.MULTILINE,
        )
    )
    read.discard("COMPILEWATCH_")
    assert read == documented


def test_every_setting_of_env_example_is_on_the_page_of_settings() -> None:
    documented = re.findall(
        r"^#? ?(COMPILEWATCH_[A-Z_]+)=",
        (REPOSITORY / "docker/env.example").read_text(),
        re.MULTILINE,
    )
    page = (REPOSITORY / "dashboard/docs/operations/settings.md").read_text()
    explained = re.findall(r"^\| `(COMPILEWATCH_[A-Z_]+)` \|", page, re.MULTILINE)
    assert sorted(explained) == sorted(documented)


def test_every_error_of_the_endpoint_is_documented() -> None:
    text = (REPOSITORY / "agents/docs/reference/responses.md").read_text()
    missing = [code for code in (*ERROR_CODES, *REJECTED_CODES) if f"`{code}`" not in text]
    assert not missing


def test_no_address_of_a_registry_and_no_path_of_a_machine_is_in_the_tree() -> None:
    hosts = [
        "py" + "pi.org",
        "python" + "hosted",
        "registry." + "npmjs",
        "deb." + "debian",
        "download." + "pytorch",
        "/wo" + "rk/",
        "/tmp/" + "bash_jobs",
    ]
    found = []
    for path in tracked():
        data = (REPOSITORY / path).read_bytes()
        found += [f"{path}: {host}" for host in hosts if host.encode() in data]
    assert not found


def test_the_pages_load_nothing_from_another_host() -> None:
    found = []
    for path in tracked():
        if path.startswith("dashboard/ui/") and path.endswith((".html", ".css", ".js")):
            text = (REPOSITORY / path).read_text()
            found += [
                f"{path}: {match}"
                for match in re.findall(
                    r"""(?:src|href|url\()\s*=?\s*["']?(https?://[^\s"')]+)""", text
                )
            ]
    assert not found
