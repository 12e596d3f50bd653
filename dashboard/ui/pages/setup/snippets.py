"""Snippets for jobs, with the server address and the key filled in, one for each way of use."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

NO_KEY = "cw_ing_..."


@dataclass(frozen=True)
class Snippet:
    """One snippet; `key` identifies it in the URL and on the page."""

    key: str
    title: str
    say: str
    text: str


def format_environment(*, address: str, key: str) -> str:
    """The two variables that each job needs, and the permission to send the key over plain HTTP if
    this server accepts reports over plain HTTP."""
    allow = "\nexport COMPILEWATCH_ALLOW_HTTP=1" if _needs_plain_http(address) else ""
    return (
        f"export COMPILEWATCH_ENDPOINT={address}\nexport "
        f"COMPILEWATCH_API_KEY={key or NO_KEY}{allow}"
    )


def format_command_environment(*, public_key: str) -> str:
    """The two variables of a job that allows the kill switch."""
    return (
        "export COMPILEWATCH_ALLOW_REMOTE=freeze,eager\nexport "
        f"COMPILEWATCH_COMMAND_PUBLIC_KEY={public_key}"
    )


def _needs_plain_http(address: str) -> bool:
    """True if agents need the permission to send keys over plain HTTP; on loopback they do not."""
    parts = urlsplit(address)
    return (
        settings.ALLOW_HTTP
        and parts.scheme == "http"
        and parts.hostname not in ("127.0.0.1", "localhost", "::1")
    )


SERVING = """import compilewatch

compilewatch.init(model="ranker", version="2026.11.3")  # use a new version for each deployment
model = compilewatch.compile(model, mode="reduce-overhead")  # instead of torch.compile

model(example)  # warm up: one call for each shape of your requests
compilewatch.ready()  # from now on, a compilation stalls a request"""

TRY = """# try_it.py: a complete program, runs for two minutes on the CPU; start: python try_it.py
import time

import compilewatch
import torch

compilewatch.init(model="try-it", version="1")
model = compilewatch.compile(torch.nn.Linear(64, 64))
model(torch.randn(8, 64))  # compiles
compilewatch.ready()

end = time.time() + 120
while time.time() < end:
    model(torch.randn(8, 64))
    time.sleep(0.02)"""

TRAINING = """import compilewatch

compilewatch.init(model="ranker-train", version="run-12", kind="training")
model = compilewatch.compile(model)

for batch in loader:
    with compilewatch.region("train_step", items=len(batch)):
        train_step(model, batch)"""

RUN = """export COMPILEWATCH_MODEL=ranker COMPILEWATCH_VERSION=2026.11.3
compilewatch run -- python serve.py --port 8080"""

FILE = """export COMPILEWATCH_ENDPOINT=file:/tmp/reports.jsonl
python serve.py

# later, from a machine that reaches this server
compilewatch replay /tmp/reports.jsonl --endpoint {address} --shift-to-now"""


DOCKER = """docker run --gpus all \\
  -e COMPILEWATCH_ENDPOINT={address} \\
  -e COMPILEWATCH_API_KEY={key} \\{in_docker}
  -e COMPILEWATCH_MODEL=ranker -e COMPILEWATCH_VERSION=2026.11.3 \\
  -e COMPILEWATCH_NODE="$(hostname)" \\
  your-image compilewatch run -- python serve.py"""

KUBERNETES = """kubectl create secret generic compilewatch --from-literal=key={key}

# in the container of your Deployment or Job
env:
  - name: COMPILEWATCH_ENDPOINT
    value: {address}
  - name: COMPILEWATCH_API_KEY
    valueFrom: {secretKeyRef: {name: compilewatch, key: key}}
{in_kubernetes}  - name: COMPILEWATCH_MODEL
    value: ranker
  - name: COMPILEWATCH_VERSION
    value: "2026.11.3"
  - name: COMPILEWATCH_NODE
    valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
command: ["compilewatch", "run", "--", "python", "serve.py"]"""


def snippets(*, address: str, key: str = "") -> list[Snippet]:
    """All snippets."""

    plain = _needs_plain_http(address)
    known = {
        "{in_docker}": "\n  -e COMPILEWATCH_ALLOW_HTTP=1 \\" if plain else "",
        "{in_kubernetes}": '  - name: COMPILEWATCH_ALLOW_HTTP\n    value: "1"\n' if plain else "",
        "{address}": address,
        "{key}": key or NO_KEY,
    }

    def filled(text: str) -> str:
        for name, value in known.items():
            text = text.replace(name, value)
        return text

    return [
        Snippet("serving", "Serving", "Four calls in the process that serves requests.", SERVING),
        Snippet(
            "try",
            "Try it (no GPU)",
            "A complete program, ready to run. It requires torch and a C++ compiler.",
            TRY,
        ),
        Snippet(
            "training",
            "Training",
            "Add a region around the training step. Each rank sends its own reports.",
            TRAINING,
        ),
        Snippet("run", "No code changes", "Monitors all torch.compile calls of a program.", RUN),
        Snippet(
            "docker",
            "Docker",
            "Install the agent in the image and set the variables at start.",
            filled(DOCKER),
        ),
        Snippet(
            "kubernetes",
            "Kubernetes",
            "Store the key as a secret of the namespace.",
            filled(KUBERNETES),
        ),
        Snippet("file", "Offline", "Writes reports to a file that you send later.", filled(FILE)),
    ]


def key_examples(*, kind: str, address: str, key: str) -> str:
    """Example request with a key of this kind."""
    if kind == "ing":
        return format_environment(address=address, key=key)
    sent = f"-H 'Authorization: Bearer {key}'"
    if kind == "dep":
        body = (
            '{"model": "ranker", "version": "2026.11.3", "environment": "production", "at": '
            "\"'$(date -u +%FT%TZ)'\"}"
        )
        return (
            f"curl {address}/api/v1/deployments \\\n  {sent} \\\n  -H 'Content-Type: "
            f"application/json' \\\n  -d '{body}'"
        )
    return f"curl '{address}/api/v1/gate?model=ranker&version=2026.11.3' \\\n  {sent}"
