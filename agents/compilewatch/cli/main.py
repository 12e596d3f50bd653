"""Command line: `compilewatch run | doctor | replay | import-trace | cache-check | cache |
version`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from compilewatch.cli.help_texts import (
    CACHE,
    CHECK,
    CHECK_MORE,
    DOCTOR,
    DOCTOR_MORE,
    IMPORT,
    IMPORT_MORE,
    LOAD,
    LOAD_MORE,
    OVERVIEW,
    REPLAY,
    REPLAY_MORE,
    RUN,
    RUN_MORE,
    SAVE,
    SAVE_MORE,
    SETTINGS,
)
from compilewatch.errors import AgentError, warn_user
from compilewatch.lazy_modules import (
    CACHE_CHECK,
    CACHE_SAVE_LOAD,
    CLI_DOCTOR,
    CLI_IMPORT_TRACE,
    CLI_REPLAY,
    CLI_RUN,
    require,
)
from compilewatch.version import __version__

EXIT_WRONG_USE = 2
EXIT_INTERRUPTED = 130
Subparsers = argparse._SubParsersAction


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.command(arguments))
    except AgentError as error:
        warn_user(str(error).removeprefix("off: "))
        return EXIT_WRONG_USE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="compilewatch",
        description=OVERVIEW,
        epilog=SETTINGS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version", action="version", version=__version__, help="print the version of the agent"
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_run(commands)
    _add_doctor(commands)
    _add_replay(commands)
    _add_import(commands)
    _add_check(commands)
    _add_cache(commands)
    version = _add(
        commands,
        "version",
        "print the version of the agent",
        "Prints the version of the agent.",
        "exit codes: 0",
    )
    version.set_defaults(command=_version)
    return parser


def _add(
    commands: Subparsers[argparse.ArgumentParser], name: str, summary: str, text: str, epilog: str
) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=summary,
        description=text,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _add_run(commands: Subparsers[argparse.ArgumentParser]) -> None:
    run = _add(
        commands, "run", "run a command with the agent in each Python process", RUN, RUN_MORE
    )
    run.add_argument("--model", metavar="NAME", help="name of the model (or COMPILEWATCH_MODEL)")
    run.add_argument(
        "--model-version", metavar="VERSION", help="version of the model (or COMPILEWATCH_VERSION)"
    )
    run.add_argument(
        "words",
        nargs=argparse.REMAINDER,
        metavar="-- COMMAND ...",
        help="the command with its arguments",
    )
    run.set_defaults(command=_run)


def _run(found: argparse.Namespace) -> int:
    return int(require(CLI_RUN).run(found.words, model=found.model, version=found.model_version))


def _add_doctor(commands: Subparsers[argparse.ArgumentParser]) -> None:
    check = _add(
        commands,
        "doctor",
        "check settings, dashboard and key, and list the capabilities of this torch",
        DOCTOR,
        DOCTOR_MORE,
    )
    _add_address(check)
    check.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    check.set_defaults(
        command=lambda arguments: require(CLI_DOCTOR).run(
            endpoint=arguments.endpoint, key=arguments.key, as_json=arguments.json
        )
    )


def _add_replay(commands: Subparsers[argparse.ArgumentParser]) -> None:
    replay = _add(commands, "replay", "send recorded reports to a dashboard", REPLAY, REPLAY_MORE)
    replay.add_argument("path", metavar="FILE", help="the recording, plain or gzip")
    _add_address(replay)
    replay.add_argument(
        "--shift-to-now",
        action="store_true",
        help="move all times so that the last window ends now",
    )
    replay.add_argument(
        "--new-ids",
        action="store_true",
        help="send as new instances, so that a second replay counts again",
    )
    replay.set_defaults(
        command=lambda arguments: require(CLI_REPLAY).run(
            arguments.path,
            arguments.endpoint,
            arguments.key,
            shift_to_now=arguments.shift_to_now,
            new_ids=arguments.new_ids,
        )
    )


def _add_import(commands: Subparsers[argparse.ArgumentParser]) -> None:
    add = _add(
        commands, "import-trace", "send a job's TORCH_TRACE folder as reports", IMPORT, IMPORT_MORE
    )
    add.add_argument("folder", metavar="DIR", help="the folder of TORCH_TRACE")
    _add_traced_job(add)
    add.add_argument(
        "--to",
        "--endpoint",
        dest="endpoint",
        metavar="URL",
        help="dashboard or file:PATH (or COMPILEWATCH_ENDPOINT)",
    )
    add.add_argument(
        "--key", dest="api_key", metavar="KEY", help="key of the project (or COMPILEWATCH_API_KEY)"
    )
    add.add_argument(
        "--shift-to-now",
        action="store_true",
        help="move all times so that the last window ends now",
    )
    add.set_defaults(command=_import)


def _add_traced_job(add: argparse.ArgumentParser) -> None:
    add.add_argument("--model", required=True, metavar="NAME", help="name of the model")
    add.add_argument(
        "--model-version",
        "--version",
        dest="version",
        metavar="VERSION",
        help="version of the model (or COMPILEWATCH_VERSION)",
    )
    add.add_argument(
        "--environment",
        metavar="NAME",
        help="environment of the job (or COMPILEWATCH_ENVIRONMENT; production)",
    )
    add.add_argument(
        "--kind",
        choices=("serving", "training"),
        help="kind of the job (or COMPILEWATCH_KIND; serving)",
    )
    add.add_argument(
        "--host", metavar="NAME", default="", help="host of the job; the trace does not contain it"
    )
    add.add_argument("--job", metavar="NAME", default="", help="job name that its ranks share")


def _import(arguments: argparse.Namespace) -> int:
    settings = {
        name: getattr(arguments, name)
        for name in ("model", "version", "environment", "kind", "endpoint", "api_key")
    }
    result = require(CLI_IMPORT_TRACE).run(
        arguments.folder,
        settings,
        host=arguments.host,
        job=arguments.job,
        shift_to_now=arguments.shift_to_now,
    )
    return int(result)


def _add_check(commands: Subparsers[argparse.ArgumentParser]) -> None:
    check = _add(
        commands,
        "cache-check",
        "predict the compile cache misses of a start here",
        CHECK,
        CHECK_MORE,
    )
    check.add_argument("--model", metavar="NAME", help="name of the model (or COMPILEWATCH_MODEL)")
    check.add_argument(
        "--file", metavar="FILE", help="compare with a file of `cache save` instead of the last run"
    )
    check.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    check.set_defaults(
        command=lambda arguments: require(CACHE_CHECK).run(
            arguments.model, arguments.file, arguments.json
        )
    )


def _add_cache(commands: Subparsers[argparse.ArgumentParser]) -> None:
    cache = _add(
        commands,
        "cache",
        "save or load torch's compile caches as a file",
        CACHE,
        "See `compilewatch cache save --help` and `compilewatch cache load --help`.",
    )
    verbs = cache.add_subparsers(title="commands", required=True, metavar="save | load")
    save = _add(verbs, "save", "run a command, then save its compile caches", SAVE, SAVE_MORE)
    save.add_argument("path", metavar="FILE", help="the file to create")
    save.add_argument(
        "--model", default="", metavar="NAME", help="name of the model (or COMPILEWATCH_MODEL)"
    )
    save.add_argument(
        "program",
        nargs=argparse.REMAINDER,
        metavar="-- PROGRAM ...",
        help="the program with its arguments",
    )
    save.set_defaults(
        command=lambda arguments: require(CACHE_SAVE_LOAD).save(
            arguments.path, arguments.program, arguments.model
        )
    )
    load = _add(verbs, "load", "load saved caches into this machine's caches", LOAD, LOAD_MORE)
    load.add_argument("path", metavar="FILE", help="a file of `compilewatch cache save`")
    load.add_argument(
        "--anyway",
        action="store_true",
        help="load even if the file was built in another environment",
    )
    load.set_defaults(
        command=lambda arguments: require(CACHE_SAVE_LOAD).load(arguments.path, arguments.anyway)
    )


def _add_address(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--endpoint", metavar="URL", help="address of the dashboard (or COMPILEWATCH_ENDPOINT)"
    )
    command.add_argument(
        "--key",
        metavar="KEY",
        help="key of the project (or COMPILEWATCH_API_KEY, which other users cannot see)",
    )


def _version(arguments: argparse.Namespace) -> int:
    print(__version__)
    return 0


if __name__ == "__main__":
    sys.exit(main())
