"""The image's recipe, the compose file and the manifests are valid for their tools, and the lock
satisfies requirements.txt."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from packaging.requirements import Requirement

REPOSITORY = Path(__file__).resolve().parents[2]
DOCKER = REPOSITORY / "docker"
BINARIES = Path(sys.executable).parent
KUBERNETES = "1.33"
MANIFESTS = sorted(DOCKER.glob("k8s/*.yaml"))


def run_tool(*command: str) -> tuple[int, str]:
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, timeout=120)
    return done.returncode, done.stdout + done.stderr


def test_the_recipe_passes_the_linter() -> None:
    assert run_tool(str(BINARIES / "hadolint"), "docker/Dockerfile") == (0, "")


@pytest.mark.parametrize("file", ["docker/compose.yml", "docker/compose.secrets.yml"])
def test_a_compose_file_is_valid(file: str) -> None:
    code, output = run_tool(
        str(BINARIES / "check-jsonschema"), "--builtin-schema", "vendor.compose-spec", file
    )
    assert code == 0, output


@pytest.mark.parametrize(
    "file",
    [file for file in MANIFESTS if file.name != "kustomization.yaml"],
    ids=lambda file: file.name,
)
def test_every_manifest_is_valid_for_kubernetes(file: Path) -> None:
    documents = list(yaml.safe_load_all(file.read_text()))
    assert documents
    for document in documents:
        kubernetes_validate.validate(document, KUBERNETES, strict=True)


def test_every_manifest_is_in_the_kustomization() -> None:
    listed = yaml.safe_load((DOCKER / "k8s/kustomization.yaml").read_text())["resources"]
    assert sorted(listed) == [file.name for file in MANIFESTS if file.name != "kustomization.yaml"]


def test_no_container_may_write_or_gain_privileges() -> None:
    for document in (each for file in MANIFESTS for each in yaml.safe_load_all(file.read_text())):
        pod = document.get("spec", {}).get("template", {}).get("spec")
        for container in (pod or {}).get("containers", []):
            security = container["securityContext"]
            assert (
                security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"]
            ), document["metadata"]
            assert pod["securityContext"]["runAsNonRoot"] and security["capabilities"]["drop"] == [
                "ALL"
            ]
            assert container["resources"]["limits"]["memory"]


def test_the_lock_satisfies_the_requirements() -> None:
    locked = dict(
        re.findall(
            r"^([a-z0-9-]+)==([^ ;]+)", (DOCKER / "requirements.lock").read_text(), re.MULTILINE
        )
    )
    lines = [
        line.split("#")[0].strip()
        for line in (REPOSITORY / "requirements.txt").read_text().splitlines()
    ]
    for required in (Requirement(line) for line in lines if line):
        assert locked[required.name] in required.specifier, (
            f"{required}: the lock has {locked[required.name]}; update it as its first lines describe"
        )


@pytest.mark.parametrize("lock", ["requirements.lock", "build.lock"])
def test_a_lock_names_no_url_and_has_a_hash_for_every_package(lock: str) -> None:
    text = (DOCKER / lock).read_text()
    assert "://" not in text
    for line in re.split(r"\n(?=[a-z0-9])", text):
        assert line.startswith("#") or "--hash=sha256:" in line, line


def test_the_build_context_has_every_copied_file() -> None:
    sent = {
        line[1:]
        for line in (REPOSITORY / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    copied = [
        line.split()[1:-1]
        for line in (DOCKER / "Dockerfile").read_text().splitlines()
        if line.startswith("COPY ")
    ]
    assert {
        name.removeprefix("./")
        for names in copied
        for name in names
        if not names[0].startswith("--from=")
    } == sent
