"""Site customization: Python runs this file at its start.

`compilewatch run` puts this folder first on PYTHONPATH. Each Python process below the command then
runs this file instead of another `sitecustomize`.

Invariants:
- Other interpreters run this file too, so any Python 3 can parse it. It acts from Python 3.10.
- It imports nothing of the agent before the job imports `torch` or `jax`.
- It never raises into the start of the interpreter; an error of the next `sitecustomize` passes.
- It runs the next `sitecustomize` on `sys.path` by location, each one once.
- It leaves processes alone that run no model: compile workers, trackers, launchers, installers.
  `sys.orig_argv` decides, because children would inherit an environment variable.

Source: the launchers of opentelemetry-instrument and ddtrace-run."""

import os
import sys

AGENT = "compilewatch"
STARTS_AT = ("torch", "jax", AGENT)
"""Modules whose first import starts the agent."""
STARTED_FOR = "COMPILEWATCH_AUTOSTART"
"""The variable with the environment (`sys.prefix`) that `compilewatch run` belongs to."""
OLDEST = (3, 10)
SITES = "_compilewatch_sites"
"""The attribute of `sys` with the folders whose `sitecustomize` has run."""
FOLDER = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
MODULES = (
    "torch._inductor",
    "torch.distributed.run",
    "torch.distributed.launch",
    "accelerate.commands",
    "deepspeed.launcher",
    "vllm.model_executor.models.registry",
    AGENT,
)
"""Modules that `python -m` runs and that run no model: compile workers, launchers, installers."""
INSTALLERS = ("pip", "build", "venv", "ensurepip")
"""Modules that `python -m` runs under exactly this name; a job may have a package of the name."""
SCRIPTS = (
    "torchrun",
    "accelerate",
    "accelerate-launch",
    "deepspeed",
    AGENT,
    "pip",
    "__pip-runner__.py",
    "_in_process.py",
    "setup.py",
)
WORKERS = "/torch/_inductor/"
"""torch starts its compile workers by the path of a file in this folder."""
TRACKERS = ("resource_tracker import", "semaphore_tracker import")


def is_left_alone(words: "list[str]") -> bool:
    """Whether this command line, `sys.orig_argv`, starts a process that runs no model."""
    kind, program = program_of(words)
    if kind == "m":
        return program in INSTALLERS or any(
            program == name or program.startswith(name + ".") for name in MODULES
        )
    if kind == "c":
        return any(tracker in program for tracker in TRACKERS)
    path = program.replace("\\", "/")
    name = path.rpartition("/")[2]
    return WORKERS in path or name in SCRIPTS or name.rstrip(".0123456789") == "pip"


def program_of(words: "list[str]") -> "tuple[str, str]":
    """The program: `m` and a module, `c` and code, or an empty text and a path."""
    rest = list(words[1:])
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == "-":
            return "", word
        if word == "--check-hash-based-pycs" and rest:
            rest.pop(0)
        for place, letter in enumerate(() if word.startswith("--") else word[1:], 2):
            if letter in "cmWX":
                value = word[place:] or (rest.pop(0) if rest else "")
                if letter in "cm":
                    return letter, value
                break
    return "", ""


class StartHook:
    """Import hook: the loader of the first module in STARTS_AT starts the agent.

    A search for the module alone starts nothing."""

    has_started = False

    def find_spec(self, name: str, path: "object" = None, target: "object" = None) -> "object":
        """The spec that the other finders return, with a loader that starts the agent."""
        if name not in STARTS_AT:
            return None
        spec = self.find(name, path, target) or (agent_here() if name == AGENT else None)
        loader = getattr(spec, "loader", None)
        if loader is None or not hasattr(loader, "exec_module"):
            return spec
        original = loader.exec_module

        def exec_module(module: "object") -> None:
            vars(loader).pop("exec_module", None)
            if name == AGENT:
                original(module)
                self.start()
                return
            self.start()
            # The agent has hooks of its own by now, and they wait for this module too.
            again = getattr(self.find(name, path, target), "loader", None)
            (original if again is None else again.exec_module)(module)

        try:
            loader.exec_module = exec_module
        except AttributeError:  # a loader without attributes of its own: start before the execution
            self.start()
            return self.find(name, path, target)
        return spec

    def find(self, name: str, path: "object", target: "object") -> "object":
        """The spec from the finders behind this one."""
        others = [finder for finder in sys.meta_path if not hasattr(finder, "has_started")]
        for finder in others:
            find = getattr(finder, "find_spec", None)
            spec = None if find is None else find(name, path, target)
            if spec is not None:
                return spec
        return None

    def start(self) -> None:
        """Starts the agent once. It never raises into the import."""
        if self.has_started:
            return
        self.has_started = True
        sys.meta_path[:] = [one for one in sys.meta_path if not hasattr(one, "has_started")]
        try:
            if AGENT not in sys.modules:
                load_agent()
            from compilewatch.autostart import start  # noqa: PLC0415
        except ImportError:
            warn_once()
        except Exception:  # noqa: BLE001, S110 - the job goes on without the agent
            pass
        else:
            start()


def agent_here() -> "object":
    """The spec of the package of this folder; None for an interpreter of another environment than
    that of `compilewatch run`."""
    if os.environ.get(STARTED_FOR) != sys.prefix:
        return None
    import importlib.util  # noqa: PLC0415 - most processes do not need it

    package = os.path.dirname(FOLDER)  # noqa: PTH120
    file = os.path.join(package, "__init__.py")  # noqa: PTH118
    return importlib.util.spec_from_file_location(AGENT, file, submodule_search_locations=[package])


def load_agent() -> None:
    """Loads the package from its own folder: a file of the job may have the same name."""
    spec = agent_here()
    if spec is not None:
        load(spec, AGENT)


def load(spec: "object", name: str) -> None:
    """Imports a module from its spec."""
    import importlib.util  # noqa: PLC0415

    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules[name] = module
    spec.loader.exec_module(module)  # type: ignore[attr-defined]


def warn_once() -> None:
    """One line for an interpreter without the agent; its child processes write none."""
    if os.environ.pop(STARTED_FOR, None) is not None:
        sys.stderr.write(
            "compilewatch: off: " + sys.executable + " has no compilewatch of this release; "
            "install compilewatch there\n"
        )


def next_site() -> "object":
    """The spec of the next `sitecustomize` on `sys.path`, which Python would run otherwise."""
    try:
        from importlib.machinery import PathFinder  # noqa: PLC0415 - Python 3.3 and later have it

        done = sys.__dict__.setdefault(SITES, set())
        done.add(os.path.realpath(FOLDER))
        folders = [path for path in sys.path if os.path.realpath(path or ".") not in done]
        spec = PathFinder.find_spec("sitecustomize", folders)
        if spec is None or spec.loader is None or spec.origin is None:
            return None
        done.add(os.path.realpath(os.path.dirname(spec.origin)))  # noqa: PTH120
    except Exception:  # noqa: BLE001 - the process starts in any case
        return None
    return spec


def wait_for_import() -> None:
    """Waits for the first import of a library that compiles, where this process may run a model."""
    try:
        if sys.version_info >= OLDEST and not is_left_alone(sys.orig_argv):
            hook = StartHook()
            sys.meta_path.insert(0, hook)  # type: ignore[arg-type]
            if any(name in sys.modules for name in STARTS_AT):
                hook.start()  # a .pth file has imported the library
    except Exception:  # noqa: BLE001, S110 - the process starts in any case
        pass


if SITES not in sys.__dict__:  # another program's sitecustomize may run this file a second time
    wait_for_import()
following = next_site()
if following is not None:
    load(following, "sitecustomize")  # what it raises, Python reports
