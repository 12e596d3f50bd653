"""What a person copies into a job: the address and the key filled in, for each way of use."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

NO_KEY = "cw_ing_..."


@dataclass(frozen=True)
class Snippet:
    """One text to copy; `key` names it in the address and on the page."""

    key: str
    title: str
    say: str
    text: str


def format_environment(*, address: str, key: str) -> str:
    """The two variables every job needs, and the leave to send the key over plain http where this
    server takes it so."""
    allow = "\nexport COMPILEWATCH_ALLOW_HTTP=1" if _needs_plain_http(address) else ""
    return (
        f"export COMPILEWATCH_ENDPOINT={address}\nexport "
        f"COMPILEWATCH_API_KEY={key or NO_KEY}{allow}"
    )


def format_command_environment(*, public_key: str) -> str:
    """The two variables of a job that allows the switch."""
    return (
        "export COMPILEWATCH_ALLOW_REMOTE=freeze,eager\nexport "
        f"COMPILEWATCH_COMMAND_PUBLIC_KEY={public_key}"
    )


def _needs_plain_http(address: str) -> bool:
    """Whether agents have to be told; on loopback they need no leave."""
    parts = urlsplit(address)
    return (
        settings.ALLOW_HTTP
        and parts.scheme == "http"
        and parts.hostname not in ("127.0.0.1", "localhost", "::1")
    )


SERVING = """import compilewatch

compilewatch.init(model="ranker", version="2026.11.3")  # a new version with each deployment
model = compilewatch.compile(model, mode="reduce-overhead")  # in place of torch.compile

model(example)  # warm up: a call with each shape that requests have
compilewatch.ready()  # from here on a compilation stalls a request"""

TRY = """# try_it.py: a whole program for two minutes on the CPU, run with: python try_it.py
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
command: ["compilewatch", "run", "--", "python", "serve.py"]"""


def snippets(*, address: str, key: str = "") -> list[Snippet]:
    """Every way of use."""

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
        Snippet("serving", "Serving", "Two lines in the process that answers requests.", SERVING),
        Snippet(
            "try",
            "Nothing at hand",
            "A whole program that runs as it stands here; it needs torch and a C++ compiler.",
            TRY,
        ),
        Snippet(
            "training",
            "Training",
            "A region around the step; every rank reports for itself.",
            TRAINING,
        ),
        Snippet(
            "run", "Without touching the code", "Watches every torch.compile of a program.", RUN
        ),
        Snippet(
            "docker",
            "Docker",
            "The agent is in the image; the rest comes from outside.",
            filled(DOCKER),
        ),
        Snippet(
            "kubernetes", "Kubernetes", "The key is a secret of the namespace.", filled(KUBERNETES)
        ),
        Snippet("file", "No network", "Records to a file, which is sent later.", filled(FILE)),
    ]


def key_examples(*, kind: str, address: str, key: str) -> str:
    """What is done with a key of this kind, with the key in it."""
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
