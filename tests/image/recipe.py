"""Builds docker/Dockerfile in folders: each stage is a copy of a plain Debian tree, each RUN a
chroot into the tree."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
PASSED_ON = ("PIP_DEFAULT_TIMEOUT", "PIP_INDEX_URL")
KNOWN = {
    "FROM",
    "RUN",
    "COPY",
    "WORKDIR",
    "ENV",
    "USER",
    "EXPOSE",
    "ENTRYPOINT",
    "CMD",
    "HEALTHCHECK",
}


@dataclass
class Stage:
    """A tree with the state of the recipe so far."""

    root: Path
    folder: str = "/"
    user: str = "0:0"
    environment: dict[str, str] = field(
        default_factory=lambda: {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        }
    )
    entrypoint: list[str] = field(default_factory=list)
    alive: str = ""

    def inside(self, path: str) -> Path:
        """The path on this machine of a path in the tree."""
        return self.root / str(Path(self.folder, path)).lstrip("/")


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Each instruction of a recipe with the rest of its line."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        word, _, rest = line.strip().partition(" ")
        if word:
            if word not in KNOWN:
                raise ValueError(
                    f"{word} is an instruction that tests/image/recipe.py does not support."
                )
            yield word, rest.strip()


class Builder:
    """Builds the last stage of a recipe. `base` replaces every base image: Debian with python3 and
    venv."""

    def __init__(self, *, base: Path, source: Path, work: Path) -> None:
        self.base, self.source, self.work = base, source, work
        self.stages: dict[str, Stage] = {}
        self.stage = Stage(work)

    def build(self, text: str) -> Stage:
        """The tree of the last stage, equivalent to the image."""
        for word, rest in instructions(text):
            print(f"  {word} {rest[:110]}", flush=True)
            getattr(self, f"_{word.lower()}")(rest)
        return self.stage

    def _from(self, rest: str) -> None:
        image, *named = rest.split()
        name = named[1] if named else "last"
        root = self.work / f"stage-{name}"
        subprocess.run(["cp", "-a", "--reflink=auto", str(self.base), str(root)], check=True)
        # The image has its Python as `python`.
        (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
        if Path("/", CERTIFICATES).exists():
            (root / CERTIFICATES).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path("/", CERTIFICATES), root / CERTIFICATES)
        shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
        self.stage = self.stages[name] = Stage(root)
        print(f"  (uses {self.base} instead of {image})")

    def _run(self, rest: str) -> None:
        passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        environment = {
            **self.stage.environment,
            **passed,
            "PIP_CERT": f"/{CERTIFICATES}",
            "SSL_CERT_FILE": f"/{CERTIFICATES}",
        }
        words = [
            "chroot",
            str(self.stage.root),
            "/bin/sh",
            "-c",
            f"cd {shlex.quote(self.stage.folder)} && {rest}",
        ]
        subprocess.run(words, env=environment, check=True)

    def _copy(self, rest: str) -> None:
        *options, target = rest.split()
        origin, sources = self.source, options
        if options[0].startswith("--from="):
            origin, sources = self.stages[options[0].removeprefix("--from=")].root, options[1:]
        for source in sources:
            to = self.stage.inside(target)
            if target.endswith("/"):
                to = to / Path(source).name
            to.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "-a", str(origin / source.lstrip("/")), str(to)], check=True)

    def _workdir(self, rest: str) -> None:
        self.stage.folder = rest
        self.stage.inside(".").mkdir(parents=True, exist_ok=True)

    def _env(self, rest: str) -> None:
        for name, value in (word.split("=", 1) for word in shlex.split(rest)):
            self.stage.environment[name] = value.replace("$PATH", self.stage.environment["PATH"])

    def _user(self, rest: str) -> None:
        self.stage.user = rest

    def _entrypoint(self, rest: str) -> None:
        self.stage.entrypoint = json.loads(rest)

    def _healthcheck(self, rest: str) -> None:
        self.stage.alive = rest

    def _expose(self, rest: str) -> None: ...

    def _cmd(self, rest: str) -> None: ...
