"""Under `compilewatch run` torchrun's own arguments stay as they are, and its workers start with the agent."""

from __future__ import annotations

import sys

import pytest
from compilewatch.cli.python_program import Program
from compilewatch.cli.torchrun import is_torchrun, with_agent
from torch.distributed.run import get_args_parser

RUN = ["-m", "compilewatch", "run", "--model", "m", "--"]
COMMANDS = {
    "--nproc-per-node 2 train.py --lr 3": ["--nproc-per-node", "2", *RUN, "train.py", "--lr", "3"],
    "--standalone --nproc_per_node=2 -- train.py": ["--standalone", "--nproc_per_node=2", *RUN, "train.py"],
    "--nnodes 1 -m package.train -m x": ["--nnodes", "1", "-m", *RUN[1:], "-m", "package.train", "-m", "x"],
    "--no-python python -O train.py": ["--no-python", sys.executable, *RUN, "python", "-O", "train.py"],
    "train.py train.py": [*RUN, "train.py", "train.py"],
}


@pytest.mark.parametrize(("words", "expected"), COMMANDS.items(), ids=COMMANDS)
def test_the_agent_comes_before_what_a_worker_runs(words: str, expected: list[str]) -> None:
    arguments = words.split()
    found = with_agent(get_args_parser().parse_args(arguments), arguments, RUN)
    assert found == expected
    again = get_args_parser().parse_args(found)
    before = get_args_parser().parse_args(arguments)
    assert (again.nproc_per_node, again.nnodes, again.no_python) == (before.nproc_per_node, before.nnodes, before.no_python)
    assert again.module is not before.no_python


def test_it_is_known_by_its_command_and_by_its_module() -> None:
    assert is_torchrun(Program("script", "/opt/bin/torchrun", []))
    assert is_torchrun(Program("module", "torch.distributed.run", []))
    assert not is_torchrun(Program("script", "train.py", ["torchrun"]))
