"""`make image-check`: builds the image's recipe in a clean Debian tree, starts its roles there with
a read-only root, and sends a report through all roles. Then runs `make demo` from a clone of this
commit until its alert opens, in a tree with only python3, make and git. Before both, checks the
guide's overlay of the manifests with kubectl. Requires root, debootstrap, kubectl, PostgreSQL and
Redis as the tests do, and some minutes. `--only manifests|image|clone` runs one part."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from contextlib import closing
from pathlib import Path

import kubernetes_validate
import yaml

import tests.environment  # noqa: F401  # before the modules that read its variables
from tests.flow.stack import REPOSITORY, free_port, wait_for
from tests.image.containers import HOST, Containers, send
from tests.image.recipe import CERTIFICATES, PASSED_ON, Builder, Stage
from tests.image.test_the_deployed_manifests_are_valid import KUBERNETES

SUITE = os.environ.get("COMPILEWATCH_TEST_SUITE", "bookworm")
NEEDS = "python3,python3-venv,make,git,ca-certificates"
TREE = Path(tempfile.gettempdir(), f"compilewatch-{SUITE}-tree")
PLAIN_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def clean_tree() -> Path:
    """A Debian tree with the packages that the first page of README.md requires; kept for the next
    run."""
    if not (TREE / "usr/bin/python3").exists():
        if not shutil.which("debootstrap"):
            sys.exit("image-check: debootstrap is missing; run apt-get install debootstrap.")
        shutil.rmtree(TREE, ignore_errors=True)
        mirror = [
            word
            for word in re.findall(r"(?:^URIs: *|^deb +)(\S+)", _sources(), re.MULTILINE)
            if "security" not in word
        ][:1]
        subprocess.run(
            ["debootstrap", "--variant=minbase", f"--include={NEEDS}", SUITE, str(TREE), *mirror],
            check=True,
        )
    return TREE


def _sources() -> str:
    return "\n".join(
        file.read_text()
        for file in Path("/etc/apt").rglob("*")
        if file.suffix in (".list", ".sources")
    )


class Tree(Containers):
    """The entrypoint's roles as in containers: a separate, read-only root, an account without a
    name, and a private /tmp."""

    def __init__(self, folder: Path, stage: Stage) -> None:
        super().__init__(folder)
        self.stage = stage
        wanted = {
            name: value
            for name, value in self.environment.items()
            if name.startswith("COMPILEWATCH_")
        }
        self.environment = {
            **wanted,
            **stage.environment,
            "COMPILEWATCH_PORT": str(self.stack.port),
        }

    def command(self, *words: str) -> list[str]:
        root = str(self.stage.root)
        # Docker and Kubernetes provide both, and a writable /proc, even if the root is read-only.
        mounts = (
            f"mount --bind {root} {root} && mount -o remount,bind,ro {root} && mount -t "
            f"proc proc {root}/proc"
            f" && mount -t tmpfs -o size=256m tmpfs {root}/tmp && mount -t tmpfs -o "
            f"size=64m tmpfs {root}/dev/shm"
            f" && exec chroot --userspec={self.stage.user} {root} /bin/sh -c"
        )
        inner = f'cd {self.stage.folder} && exec "$0" "$@"'
        return [
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            f"{mounts} '{inner}' \"$@\"",
            "sh",
            *words,
        ]

    @property
    def entrypoint(self) -> list[str]:
        return self.stage.entrypoint

    def environment_of(self, place: str) -> dict[str, str]:
        return self.environment

    def answers(self) -> bool:
        """Runs the recipe's HEALTHCHECK."""
        process = self.running["web"]
        if process.poll() is not None:
            sys.exit(
                f"image-check: web ended: {(self.stack.folder / 'web.log').read_text()[-2000:]}"
            )
        try:
            request = urllib.request.Request(
                f"http://127.0.0.1:{self.stack.port}/healthz", headers={"Host": HOST}
            )
            return bool(urllib.request.urlopen(request, timeout=4).status == 200)
        except OSError:
            return False


def image_check(base: Path, work: Path) -> None:
    """Builds the recipe, then sends a report through all roles."""
    begun = time.monotonic()
    stage = Builder(base=base, source=REPOSITORY, work=work).build(
        (REPOSITORY / "docker/Dockerfile").read_text()
    )
    print(f"image-check: the recipe was built in {time.monotonic() - begun:.0f} s")
    (work / "run").mkdir()
    tree = Tree(work / "run", stage)
    try:
        migrated = tree.run("migrate")
        assert migrated.returncode == 0, migrated.stderr
        printed = tree.run("manage", "setup_project", "--name", "Flow", "--user", "ada").stdout
        key = next(word for word in printed.split() if word.startswith("cw_ing_"))
        for role in ("web", "worker"):
            tree.start(role)
        wait_for("web responds", tree.answers, seconds=300, every=1)
        status, answer = send(tree.stack.port, key)
        assert (status, b'"acked":[[1,1]]' in answer) == (200, True), answer
        wait_for(
            "the report is folded",
            lambda: tree.stack.rows("SELECT sum(calls) FROM version_minute") == [(3,)],
            seconds=300,
        )
        ended = tree.stop()
        assert ended == {"web": 0, "worker": 0}, ended
        assert tree.run("wbe").returncode == 64
    except BaseException:
        for log in sorted((work / "run").glob("*.log")):
            print(log.name, log.read_text()[-3000:])
        raise
    finally:
        tree.close()
    print(
        "image-check: migrate, web and worker accepted and folded a report, and ended with status 0"
    )


def manifests_check(_base: Path, work: Path) -> None:
    """Checks the overlay of the Kubernetes guide, as `kubectl apply -k` would send it."""
    if not shutil.which("kubectl"):
        sys.exit("image-check: kubectl is missing; the check of the manifests requires it.")
    shutil.copytree(REPOSITORY / "docker/k8s", work / "docker/k8s")
    [overlay] = re.findall(
        r"```yaml\n(.*?)```",
        (REPOSITORY / "dashboard/docs/operations/kubernetes.md").read_text(),
        re.DOTALL,
    )
    (work / "overlay").mkdir()
    (work / "overlay/kustomization.yaml").write_text(overlay)
    command = ["kubectl", "kustomize", str(work / "overlay")]
    made = list(
        yaml.safe_load_all(
            subprocess.run(command, check=True, capture_output=True, text=True).stdout
        )
    )
    for document in made:
        kubernetes_validate.validate(document, KUBERNETES, strict=True)
    kinds = Counter(document["kind"] for document in made)
    assert kinds["Deployment"] == 3 and kinds["HorizontalPodAutoscaler"] == 1, kinds
    assert {document["metadata"].get("namespace", "compilewatch") for document in made} == {
        "compilewatch"
    }
    assert (
        str(made).count("registry.example.com/compilewatch:2026.11.3")
        == kinds["Deployment"] + kinds["Job"]
    )
    print(
        f"image-check: the guide's overlay has {len(made)} valid objects for "
        f"Kubernetes {KUBERNETES}"
    )


def clone_check(base: Path, work: Path) -> None:
    """Runs `make demo` like the first lines of README.md, from a clone, until the first page and
    the automatic alert."""
    begun, root, port = time.monotonic(), work / "clone", free_port()
    subprocess.run(["cp", "-a", "--reflink=auto", str(base), str(root)], check=True)
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    if Path("/", CERTIFICATES).exists():
        shutil.copy(Path("/", CERTIFICATES), root / CERTIFICATES)
    subprocess.run(
        ["git", "clone", "-q", "--no-local", str(REPOSITORY), str(root / "root/compilewatch")],
        check=True,
    )
    passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    environment = {
        "PATH": PLAIN_PATH,
        "HOME": "/root",
        "COMPILEWATCH_PORT": str(port),
        **passed,
        "PIP_CERT": f"/{CERTIFICATES}",
    }
    mount = f"mount -t proc proc {root}/proc && exec chroot {root} make -C /root/compilewatch demo"
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", mount]
    with (work / "demo.log").open("wb") as log:
        demo = subprocess.Popen(
            words, env=environment, stdout=log, stderr=log, start_new_session=True
        )

    def page() -> bool:
        assert demo.poll() is None, (work / "demo.log").read_text()[-3000:]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
                return answer.status == 200 and b"Sign in" in answer.read()
        except OSError:
            return False

    try:
        wait_for("the first page of the demo", page, seconds=900, every=1)
        print(
            f"image-check: make demo showed its first page {time.monotonic() - begun:.0f} "
            "s after the start of the clone"
        )
        wait_for(
            "the ROLL BACK alert of the demo",
            lambda: _alerts(root / "root/compilewatch/.var"),
            seconds=900,
            every=2,
        )
        print(
            f"image-check: its ROLL BACK alert was open {time.monotonic() - begun:.0f} s "
            "after the start of the clone"
        )
    finally:
        os.killpg(demo.pid, signal.SIGTERM)
        demo.wait(60)


def _alerts(data: Path) -> int:
    with closing(sqlite3.connect(data / "compilewatch.sqlite3", timeout=30)) as connection:
        return int(
            connection.execute(
                "SELECT count(*) FROM alert WHERE worst = 'roll_back' AND state = 'open'"
            ).fetchone()[0]
        )


def main() -> None:
    """Runs each check in a folder that is removed afterwards."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=("manifests", "image", "clone"))
    only = parser.parse_args().only
    if os.geteuid():
        sys.exit(
            "image-check: chroot requires root; run the check in a container or "
            "a separate virtual machine."
        )
    base = TREE if only == "manifests" else clean_tree()
    with tempfile.TemporaryDirectory(
        prefix="compilewatch-image-", ignore_cleanup_errors=True
    ) as folder:
        for name, check in {
            "manifests": manifests_check,
            "image": image_check,
            "clone": clone_check,
        }.items():
            if only not in (None, name):
                continue
            (place := Path(folder, check.__name__)).mkdir()
            check(base, place)


if __name__ == "__main__":
    main()
