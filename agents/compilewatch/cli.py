"""The command line: `compilewatch run | doctor | replay | version`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from compilewatch import __version__, doctor, launch, replay
from compilewatch.errors import AgentError, say


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and answers its exit code."""
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.command(arguments))
    except AgentError as error:
        say(str(error).removeprefix("off: "))
        return 2
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="compilewatch", description="Watches torch.compile in a running job.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_run(commands)
    _add_doctor(commands)
    _add_replay(commands)
    version = commands.add_parser("version", help="print the version of the agent")
    version.set_defaults(command=_version)
    return parser


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = commands.add_parser(
        "run",
        help="run a Python program and watch what it hands to torch.compile",
        description="Runs a Python program in this process with the agent on; regions are named after what is handed to torch.compile.",
    )
    run.add_argument("--model", help="name of the model (or COMPILEWATCH_MODEL)")
    run.add_argument("--model-version", help="version of the model (or COMPILEWATCH_VERSION)")
    run.add_argument("program", nargs=argparse.REMAINDER, metavar="-- python serve.py ...", help="the program with its arguments")
    run.set_defaults(command=lambda found: launch.run(found.program, model=found.model, version=found.model_version))


def _add_doctor(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    check = commands.add_parser("doctor", help="check settings, dashboard, key and what can be seen of this torch")
    check.add_argument("--endpoint", help="address of the dashboard (or COMPILEWATCH_ENDPOINT)")
    check.add_argument("--key", help="key of the project (or COMPILEWATCH_API_KEY)")
    check.add_argument("--json", action="store_true", help="print JSON")
    check.set_defaults(command=lambda found: doctor.run(endpoint=found.endpoint, key=found.key, as_json=found.json))


def _add_replay(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    again = commands.add_parser("replay", help="send reports that were recorded to a file (COMPILEWATCH_ENDPOINT=file:PATH)")
    again.add_argument("path", help="the recording")
    again.add_argument("--endpoint", help="address of the dashboard (or COMPILEWATCH_ENDPOINT)")
    again.add_argument("--key", help="key of the project (or COMPILEWATCH_API_KEY)")
    again.add_argument("--shift-to-now", action="store_true", help="move all times so that the last window ends now")
    again.add_argument("--new-ids", action="store_true", help="send as new instances; without it a second replay changes nothing")
    again.set_defaults(
        command=lambda found: replay.run(found.path, found.endpoint, found.key, shift_to_now=found.shift_to_now, new_ids=found.new_ids)
    )


def _version(arguments: argparse.Namespace) -> int:
    print(__version__)
    return 0


if __name__ == "__main__":
    sys.exit(main())
