"""What a person copies into a job: the address and the key filled in, for each way of use."""

from dataclasses import dataclass

NO_KEY = "cw_ing_..."


@dataclass(frozen=True)
class Snippet:
    """One text to copy; `key` names it in the address and on the page."""

    key: str
    title: str
    say: str
    text: str


def environment(*, address: str, key: str) -> str:
    """The two variables every job needs."""
    return f"export COMPILEWATCH_ENDPOINT={address}\nexport COMPILEWATCH_API_KEY={key or NO_KEY}"


SERVING = """import compilewatch

compilewatch.init(model="ranker", version="2026.11.3")
model = compilewatch.compile(model, mode="reduce-overhead")  # in place of torch.compile

warm_up(model)
compilewatch.ready()  # from here on a compilation stalls a request"""

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


def snippets(*, address: str) -> list[Snippet]:
    """Every way of use."""
    return [
        Snippet("serving", "Serving", "Two lines in the process that answers requests.", SERVING),
        Snippet("training", "Training", "A region around the step; every rank reports for itself.", TRAINING),
        Snippet("run", "Without touching the code", "Watches every torch.compile of a program.", RUN),
        Snippet("file", "No network", "Records to a file, which is sent later.", FILE.replace("{address}", address)),
    ]
