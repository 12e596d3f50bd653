"""Help texts of the commands: a description and, with `_MORE`, examples and exit codes."""

OVERVIEW = """\
compilewatch monitors torch.compile inside running jobs and reports to a dashboard:
which version is slower, recompiles, or falls back to eager silently.
"""
SETTINGS = """\
settings (arguments of compilewatch.init(...) come first):
  COMPILEWATCH_ENDPOINT   address of the dashboard, https://host[:port]; file:PATH to record;
                          otlp:ADDRESS for an OpenTelemetry collector
  COMPILEWATCH_API_KEY    key of the project, from the dashboard's Setup page
  COMPILEWATCH_MODEL      name of the model that the job serves or trains
  COMPILEWATCH_VERSION    its version; otherwise the commit or image tag that is found
  COMPILEWATCH_NODE       machine under the host, such as the Kubernetes node of a pod

first steps:
  export COMPILEWATCH_ENDPOINT=https://dashboard.example.com COMPILEWATCH_API_KEY=cw_ing_...
  compilewatch doctor
  compilewatch run --model ranker -- python serve.py

`compilewatch COMMAND --help` explains a command and its exit codes."""
RUN = """\
Replaces itself with a command and starts the agent in each Python process below the command, at the
first import of torch or jax. The code stays unchanged: each callable that torch.compile returns is
timed, under the name of the function or module that was compiled."""
RUN_MORE = """\
examples:
  compilewatch run --model ranker -- python serve.py --port 8000
  compilewatch run --model ranker -- uvicorn serve:app --workers 2
  compilewatch run --model ranker -- torchrun --nproc-per-node 8 train.py
  compilewatch run --model ranker -- bash start.sh

A Python file, -m MODULE or -c CODE may come without `python`. Not reached: python -I, -E and -S,
frozen programs, env -i, sudo, and a Ray cluster that runs already.

exit codes and signals: those of the command; 2 if there is no such command."""
DOCTOR = """\
Checks the environment of a job: whether the settings are valid, the dashboard answers and accepts
the key, and which capabilities the installed torch has. Sends no report."""
DOCTOR_MORE = """\
exit codes: 0 reports would arrive; 1 they would not, and the output gives the reason; 2 wrong use.
--json prints one object; agents/docs/reference/cli.md explains its fields."""
REPLAY = """\
Sends reports that were recorded with COMPILEWATCH_ENDPOINT=file:PATH to a dashboard.
Sending a recording twice changes nothing there; with --new-ids it counts as new instances."""
REPLAY_MORE = """\
example:
  compilewatch replay reports.jsonl --shift-to-now

exit codes: 0 every window was acknowledged; 1 windows were rejected, not sent, or damaged in the
recording, and the output lists them; 2 wrong use, wrong settings, or an unreadable recording."""
IMPORT = """\
Builds reports from a folder that a job wrote with TORCH_TRACE=DIR, and sends them: for jobs that
ran without the agent. Each file (process or rank) becomes one instance. A trace contains
compilations with their reasons, durations and cache results; it contains no calls and no memory.
Import the folder when the job has ended; importing it twice changes nothing on the dashboard."""
IMPORT_MORE = """\
examples:
  compilewatch import-trace /tmp/traces --model ranker --model-version 2.4
  compilewatch import-trace /tmp/traces --model ranker --to file:reports.jsonl

exit codes: 0 every window was acknowledged; 1 windows were rejected or not sent, or lines of the
trace are damaged, and the output lists them; 2 wrong use or settings, no trace, or a trace that is
too old."""
CHECK = """\
Predicts, before a deployment, the misses in torch's compile caches when the model starts in this
environment. Compares installed versions and settings with the last run of the model on this
machine (or with a cache file), and checks whether the cache folder holds the entries of that run.
Imports torch; compiles and sends nothing."""
CHECK_MORE = """\
examples:
  compilewatch cache-check --model ranker
  compilewatch cache-check --file warm.cache --json

exit codes: 0 no predictable misses; 1 misses, and the output lists them; 2 wrong use, no torch, or
nothing to compare with."""
CACHE = """\
Gives other machines a warm start: saves the compile caches of one process (torch's mega-cache) in
a file with checksums, and loads the file.
A cache file contains code that runs: load only your own files and files from trusted sources."""
SAVE = """\
Runs a warm-up command that compiles what the service will call, then saves torch's compile caches
in FILE. Writes nothing if the command fails. The agent runs if COMPILEWATCH_ENDPOINT is set."""
SAVE_MORE = """\
example:
  compilewatch cache save --model ranker warm.cache -- python warm_up.py

exit codes: the command's own if it fails; 1 nothing was compiled; 2 wrong use, or FILE cannot be
written."""
LOAD = """\
Loads the caches in FILE into the cache folder of this machine (TORCHINDUCTOR_CACHE_DIR), before the
service starts. Refuses a file that is truncated or damaged, or that was built with another torch,
Triton, CUDA, GPU, Python or processor."""
LOAD_MORE = """\
example:
  compilewatch cache load warm.cache && compilewatch run -- python serve.py

exit codes: 0 loaded; 1 no entry would be used here, and the output gives the reason; 2 wrong use,
or FILE cannot be used."""
