"""Each command of README.md and of the dashboard's documentation is run by a file, or is listed
here with a reason."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from dashboard.environment.settings import ROOT
from tests.architecture.tree import tracked

DOCS, DECISIONS = "dashboard/docs/", "dashboard/docs/decisions/"
PAGES = [
    path
    for path in tracked()
    if path.startswith(DOCS) and path.endswith(".md") and not path.startswith(DECISIONS)
]
GUIDES = ("README.md", "docker/README.md", *PAGES)
COMMANDS = (
    "make ",
    "export ",
    ".venv/bin/",
    "manage.py ",
    "python -m ",
    "pg_dump ",
    "pg_restore ",
    "apt-get ",
    "docker ",
    "kubectl ",
)


@dataclass(frozen=True)
class Run:
    """The file that runs a command, and the words in the file that show this."""

    file: str
    words: str


FLOW, ENGINES = (
    "tests/flow/stack.py",
    "tests/dashboard/ingest/test_an_engine_without_an_agent_is_read.py",
)
COMPOSE = "docker compose -f docker/compose.yml --env-file docker/.env"
NO_ENGINE = (
    "It needs a container engine; tests/image runs the recipe without one and checks the compose "
    "file against its schema."
)
NO_CLUSTER = (
    "It needs a cluster; tests/image builds the overlay and checks it against the Kubernetes "
    "schemas."
)
BACKUP = Run("tests/faults/test_a_backup_by_the_guide_can_be_restored.py", "guide_run(")
SQLITE_RESTORE = Run(
    "tests/dashboard/common/test_only_a_closed_database_is_replaced.py",
    "guide_run(",
)
TABLE: dict[str, Run | str] = {
    "make demo": Run("tests/image/__main__.py", "make -C /root/compilewatch demo"),
    "make up": Run(FLOW, '"serve"'),
    "make help": Run(
        "tests/architecture/test_every_command_of_the_guides_is_run.py",
        "def test_make_lists_every_command",
    ),
    "make test": Run(".ci/run", "make test"),
    "make check": Run(".ci/run", "make check"),
    ".venv/bin/python -m pytest tests/wire": Run("Makefile", "$(BIN)/python -m pytest"),
    "python -m tests.lint PATH": Run("Makefile", "python -m tests.lint"),
    "make format": "It rewrites the files that `make check` would refuse, with the same two programs.",
    "make bench": "Benchmarks take hours; their results are in the documentation.",
    "make gpu": "It needs CUDA; its results are in the agent's documentation.",
    "make image-check": "It needs root and some minutes; tests/image covers the parts that do not.",
    "make clean": "It removes the environment that the tests run in.",
    "make shots": "It takes pictures of a running demo, with its password; a person checks them.",
    "make calibrate": "It takes hours. The results pages give the "
    "seeds; tests/dashboard/regressions "
    "evaluates single fleets.",
    "python -m tests.bench.calibrate --seeds test": "It takes hours, as `make calibrate` does.",
    "python -m tests.bench.bench_judge": "A benchmark: its results are in goals.md.",
    "python -m tests.bench.calibrate --combine FILE ...": "It prints stored results; "
    "tests/dashboard/regressions runs it on short fleets.",
    ".venv/bin/python manage.py setup_project --help": Run(
        "tests/architecture/test_every_command_of_the_guides_is_run.py",
        "def test_each_first_command_has_its_options",
    ),
    "export COMPILEWATCH_MODE=full": Run(FLOW, '"COMPILEWATCH_MODE": "full"'),
    ".venv/bin/python manage.py migrate": Run(FLOW, '"migrate"'),
    ".venv/bin/python manage.py web": Run(FLOW, '"web"'),
    ".venv/bin/celery -A dashboard.celery worker": Run(FLOW, '"dashboard.celery"'),
    "manage.py migrate": Run(FLOW, '"migrate"'),
    "manage.py doctor": Run(
        "tests/dashboard/api/test_the_doctor_reports_problems_with_a_remedy.py", '"doctor"'
    ),
    "manage.py scrape": Run(ENGINES, 'call_command("scrape"'),
    "manage.py channel_add cloudevents URL": Run(FLOW, '"channel_add"'),
    "manage.py key_make --name prometheus": Run(
        "tests/dashboard/api/test_prometheus_reads_the_state_of_the_pipeline.py",
        'call_command("key_make", "--name", "prometheus")',
    ),
    "manage.py key_make": Run(
        "tests/dashboard/api/test_prometheus_reads_the_state_of_the_pipeline.py",
        'call_command("key_make"',
    ),
    "manage.py refold": Run(
        "tests/dashboard/fleet/test_a_poison_report_is_quarantined.py", '"refold"'
    ),
    "manage.py storage": Run(
        "tests/dashboard/fleet/test_storage_is_reported_in_bytes_per_day.py", '"storage"'
    ),
    "manage.py rate": Run("tests/dashboard/projects/test_how_much_a_project_may_send.py", '"rate"'),
    "manage.py rate --project ranking --set reports_per_second=200": Run(
        "tests/dashboard/projects/test_how_much_a_project_may_send.py", '"rate"'
    ),
    ".venv/bin/python manage.py scrape --project ranking --add "
    "https://llm.example.com/metrics --engine vllm --model chat "
    '--release 2026.11.3 --gpu "NVIDIA H200"': Run(ENGINES, 'call_command("scrape"'),
    ".venv/bin/python manage.py scrape --list": Run(ENGINES, 'call_command("scrape"'),
    '.venv/bin/python manage.py backup "$BACKUP"': BACKUP,
    '.venv/bin/python manage.py restore "$BACKUP"': SQLITE_RESTORE,
    ".venv/bin/python manage.py migrate --verbosity 0": BACKUP,
    'pg_dump --format=custom --no-owner --file="$BACKUP" '
    '--dbname="$COMPILEWATCH_DATABASE_URL"': BACKUP,
    'pg_restore --exit-on-error --no-owner --dbname="$COMPILEWATCH_DATABASE_URL" "$BACKUP"': BACKUP,
    "docker build -f docker/Dockerfile -t compilewatch .": NO_ENGINE,
    f"{COMPOSE} up -d": NO_ENGINE,
    f"{COMPOSE} exec web python manage.py setup_project --name Ranking --user NAME": NO_ENGINE,
    f"{COMPOSE} exec web python manage.py doctor": NO_ENGINE,
    "docker build -f docker/Dockerfile -t compilewatch:2026.11.4 .": NO_ENGINE,
    f"{COMPOSE} stop worker": NO_ENGINE,
    f"{COMPOSE} up -d --remove-orphans": NO_ENGINE,
    "kubectl delete deployment beat --namespace compilewatch --ignore-not-found": NO_CLUSTER,
    f"{COMPOSE} run --rm migrate": NO_ENGINE,
    f"{COMPOSE} exec -T postgres pg_dump -U compilewatch --format=custom compilewatch > "
    '"$BACKUP"': NO_ENGINE,
    f"{COMPOSE} stop web worker": NO_ENGINE,
    f"{COMPOSE} exec -T postgres dropdb -U compilewatch --force compilewatch": NO_ENGINE,
    f"{COMPOSE} exec -T postgres createdb -U compilewatch compilewatch": NO_ENGINE,
    f"{COMPOSE} exec -T postgres pg_restore -U compilewatch --exit-on-error --no-owner "
    '--dbname=compilewatch < "$BACKUP"': NO_ENGINE,
    "kubectl apply -f docker/k8s/namespace.yaml": NO_CLUSTER,
    "kubectl create secret generic compilewatch --namespace compilewatch "
    "--from-env-file=secrets.env --dry-run=client --output yaml "
    "| kubectl apply -f -": NO_CLUSTER,
    "kubectl exec --namespace compilewatch deploy/web -- python manage.py key_make --name "
    "prometheus": NO_CLUSTER,
    "kubectl exec --namespace compilewatch deploy/web -- python manage.py setup_project "
    "--name Ranking --user NAME": NO_CLUSTER,
    "kubectl exec --namespace compilewatch deploy/worker -- python manage.py doctor": NO_CLUSTER,
    "kubectl get --raw /apis/external.metrics.k8s.io/v1beta1/namespaces/compilewatch/compilewatch_inbox_age_seconds": NO_CLUSTER,
    "kubectl scale deployment worker --namespace compilewatch --replicas=0": NO_CLUSTER,
    "kubectl scale deployment worker --namespace compilewatch --replicas=2": NO_CLUSTER,
    "kubectl wait --namespace compilewatch --for=delete --timeout=120s pod "
    "--selector app.kubernetes.io/component=worker": NO_CLUSTER,
    "kubectl delete job migrate --namespace compilewatch --ignore-not-found": NO_CLUSTER,
    "kubectl apply -k overlay": NO_CLUSTER,
    "kubectl wait --namespace compilewatch --for=condition=complete --timeout=600s "
    "job/migrate": NO_CLUSTER,
    "python -m tests.bench.bench_whole_line": "A benchmark: it takes an hour, and its "
    "results are in capacity.md.",
    "python -m tests.bench.soak --minutes 120 --day 40 --seed 51": "It takes two hours, and its "
    "results are in capacity.md.",
    "make frameworks": "It takes minutes; test_a_rolling_restart_loses_no_call.py is also a short test.",
    "make engines": "It takes minutes; the files of tests/agent have short tests too.",
    "make pages": "It takes minutes; PAGES_ON_POSTGRESQL of tests/environment.py runs in each test.",
    "make faults": "It takes hours; each of its files is also a short "
    "test. The results of its rounds are "
    "in capacity.md.",
    "python -m tests.bench.sizing": "It computes the table of capacity.md "
    "from the results of a benchmark.",
    "python -m tests.bench.bench_drift 30": "A benchmark: it takes an hour, and its "
    "results are in results-drift.md.",
    "apt-get install postgresql redis-server chromium caddy g++ python3-dev strace curl jq "
    "prometheus": Run(".ci/run", "apt-get install"),
}


def commands(text: str) -> Iterator[str]:
    """Text of a shell fence, an indented line or backticks that begins like a command."""
    fenced = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).replace("\\\n", " ")
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    found = [
        *fenced.splitlines(),
        *re.findall(r"^    (\S.*)$", prose, re.MULTILINE),
        *re.findall(r"`([^`\n]+)`", prose),
    ]
    for line in found:
        if line.startswith(COMMANDS):
            yield " ".join(line.split("#")[0].split())


def test_the_table_holds_every_command_and_no_other() -> None:
    given = {command for guide in GUIDES for command in commands((ROOT / guide).read_text())}
    assert given == set(TABLE)


@pytest.mark.parametrize(
    "command", [command for command, where in TABLE.items() if isinstance(where, Run)]
)
def test_each_command_is_run_by_the_file_in_the_table(command: str) -> None:
    where = TABLE[command]
    assert isinstance(where, Run)
    assert where.words in (ROOT / where.file).read_text()


def test_make_lists_every_command() -> None:
    said = subprocess.run(
        ["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for command in [
        one.removeprefix("make ") for one in TABLE if one.startswith("make ") and one != "make help"
    ]:
        assert f"make {command} " in said, command


def test_each_first_command_has_its_options() -> None:
    words = [sys.executable, "manage.py", "setup_project", "--help"]
    assert (
        "--user"
        in subprocess.run(
            words, cwd=ROOT, capture_output=True, text=True, check=True, timeout=100
        ).stdout
    )
