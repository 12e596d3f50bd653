"""Remedies for common findings, found by torch's graph-break id or by the text of the finding."""

from __future__ import annotations

import re

from dashboard.fleet.metrics.recompile_reasons import REPEAT_REASONS
from dashboard.ui.pages.findings.break_remedies import BREAKS
from dashboard.ui.pages.findings.guard_remedies import find_guard_remedy

BREAK_PAGE = "https://meta-pytorch.github.io/compile-graph-break-site/gb/gb{}.html"
_BREAK_ID = re.compile(r"^GB(\d{4,5}) ")

TEXTS: tuple[tuple[str, str, str], ...] = (
    ("graph_break", "generic_jump", BREAKS[35]),
    ("graph_break", "data-dependent", BREAKS[35]),
    ("graph_break", ".item()", BREAKS[124]),
    ("graph_break", "tolist()", BREAKS[124]),
    ("graph_break", "dynamic shape operator", BREAKS[36]),
    ("graph_break", "marked as skipped", BREAKS[7]),
    ("graph_break", "builtin", BREAKS[59]),
    ("graph_break", "torch.compiler.disable", BREAKS[98]),
    ("graph_break", "_dynamo.disable", BREAKS[98]),
    ("graph_break", "backward()", BREAKS[123]),
    ("graph_break", "context manager", BREAKS[142]),
    (
        "cache_miss",
        "cache folder is new",
        "Set TORCHINDUCTOR_CACHE_DIR to a volume that outlives the process, or load saved "
        "artifacts (torch.compiler.load_cache_artifacts).",
    ),
    (
        "cache_miss",
        "cache folder:",
        "Set TORCHINDUCTOR_CACHE_DIR to the same folder in every process.",
    ),
    (
        "cache_miss",
        "inputs of the graph",
        "Warm up with the expected sizes, or compile with dynamic=True.",
    ),
    (
        "cache_miss",
        "key: config_hash",
        "Start with the same engine options (such as --max-num-batched-tokens); after a "
        "change the first start compiles.",
    ),
    (
        "cache_miss",
        "key: code_hash",
        "Source files of the model or of vLLM changed: the first start after a change compiles.",
    ),
    (
        "cache_miss",
        "key: compiler_hash",
        "Keep torch, the inductor options and the machine the same; after a change the "
        "first start compiles.",
    ),
    ("cache_miss", "vllm could not load", "See the finding about the failed AOT load."),
    (
        "cache_miss",
        "env ",
        "Set the variable to the same value in every process; after a change the first "
        "start compiles again.",
    ),
    (
        "cache_miss",
        "_config: ",
        "Set the option to the same value in every process; after a change the first start "
        "compiles again.",
    ),
    (
        "cache_miss",
        " -> ",
        "After an upgrade the first start compiles again: warm a shared cache before the "
        "traffic arrives.",
    ),
    (
        "cache_miss",
        "custom pass",
        "Add a uuid() to the pass (torch._inductor.custom_graph_pass); otherwise torch cannot "
        "cache the changed graph.",
    ),
    (
        "cudagraph_skip",
        "mutated inputs",
        "Do not write into an input: return the result, or copy into a buffer of the module.",
    ),
    (
        "cudagraph_skip",
        "cpu device",
        "The graph uses a CPU tensor: move it to the GPU before the call, scalars included.",
    ),
    ("cudagraph_skip", "multiple devices", "Keep everything in the compiled function on one GPU."),
    (
        "cudagraph_skip",
        "re-recording limit",
        "The inputs have new addresses at each call: keep the inputs alive, or copy them into "
        "static tensors.",
    ),
    ("cudagraph_skip", "dynamic", "Pad to a few sizes: each CUDA graph has a fixed size."),
    (
        "cudagraph_skip",
        "incompatible op",
        "Move the operator out of the compiled function, or let graph partitioning "
        "split around it.",
    ),
    (
        "cudagraph_skip",
        "deterministic",
        "Deterministic algorithms use operators that CUDA graphs do not support: switch them "
        "off where they are not needed.",
    ),
    (
        "cudagraph_rerecord",
        "input size",
        "Pad to a few sizes: each size needs another CUDA graph with its own memory.",
    ),
    (
        "cudagraph_rerecord",
        "address",
        "A parameter or static input moved: update it in place (copy_) instead of replacing it.",
    ),
    (
        "cudagraph_rerecord",
        "earlier output",
        "Outputs of an earlier run are still held: clone them, or call "
        "torch.compiler.cudagraph_mark_step_begin().",
    ),
    (
        "compiled_nothing",
        "each compilation failed",
        "Fix the compile error (see its finding); until then call the function uncompiled.",
    ),
    (
        "compiled_nothing",
        "torch skips the function",
        "Compile the function that computes with tensors, not one that only calls it; "
        "fullgraph=True raises an error where torch skips it.",
    ),
    (
        "compiled_nothing",
        "",
        "Keep and call the result of torch.compile (model = torch.compile(model)), or call "
        "model.compile() on the module that is called; "
        "do not use self = torch.compile(self).",
    ),
    (
        "guards_left_out",
        "",
        "Other inputs may run code that was compiled for these inputs: compare a golden batch "
        "with a second shape (compilewatch.golden), "
        "or remove the guard filter.",
    ),
    (
        "hook_too_late",
        "",
        "Register the hook before the first call, or compile again after it: "
        "torch.compiler.reset(). "
        "Or set torch._dynamo.config.skip_nnmodule_hook_guards = False.",
    ),
    (
        "generator_not_compiled",
        "",
        "Torch runs a generator function eager: compile the function that the generator calls "
        "for each item, or the function that consumes the generator.",
    ),
    (
        "limit_not_in_force",
        "",
        "Dynamo's options apply to the context that sets them: set the limit in each "
        "thread before its calls, "
        "or pass it to torch.compile(recompile_limit=...).",
    ),
    (
        "wrapper_not_entered",
        "",
        "Watch the module that the framework calls: compile a module in it (self.net = "
        'compilewatch.compile(net)), or put compilewatch.region("train_step") around the step.',
    ),
    (
        "golden_not_compared",
        "",
        "Run the golden batch through the result of torch.compile, after init; pass "
        "reference= if the callable has no eager form.",
    ),
    (
        "golden_cached_code",
        "",
        "Delete the cache folder or the cache artifact of this host, and build it again; "
        "the same code compiled with an empty cache is correct.",
    ),
    (
        "golden_hidden_by_tf32",
        "",
        "Run the batch with torch.backends.cudnn.allow_tf32 = False from the start: "
        "a remaining difference is a wrong kernel; otherwise the difference was rounding.",
    ),
    (
        "compile_error",
        "",
        'Compile with backend="eager", then "aot_eager", to find the stage that fails; then '
        "fix the cause of the error, such as a "
        "missing C++ compiler or a full disk.",
    ),
    (
        "fallback",
        "torch.ops.vllm.",
        "No action needed: vLLM's own operator splits the graph at attention by design.",
    ),
    (
        "fallback",
        "torch.ops._c",
        "No action needed: inductor calls this kernel of the engine unchanged.",
    ),
    (
        "fallback",
        "",
        "Inductor has no kernel for this operator: replace it, or write a Triton kernel. The "
        "fallback costs fusion, not correctness.",
    ),
    (
        "alloc_retry",
        "",
        "The GPU is nearly full or fragmented: lower the batch size, or set "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
    ),
    (
        "aot_load_failed",
        "finalize_loading",
        "A bug in vLLM: in trace-once mode (the default on CPU) AOT compilations never "
        "load. Each start compiles; "
        "VLLM_USE_AOT_COMPILE=0 skips the attempt.",
    ),
    (
        "aot_load_failed",
        "source code has changed",
        "The model's code changed: the first start after the change compiles, the next "
        "start loads.",
    ),
    (
        "aot_load_failed",
        "corrupted",
        "Delete the folder torch_aot_compile in vLLM's cache: the next start writes it again.",
    ),
    (
        "aot_load_failed",
        "",
        "The model runs, and this start compiles; if each start fails, delete the folder "
        "torch_aot_compile in vLLM's cache.",
    ),
    (
        "oom",
        "",
        "Lower the batch size or the maximum input length; compare the peak with the "
        "previous version.",
    ),
    (
        "parity",
        "",
        'Hold the version back. The first of backend="eager", "aot_eager" and "inductor" '
        "that fails is the faulty stage.",
    ),
    (
        "latched_eager",
        ": limit",
        "Fix the guard that keeps failing, then restart the process: the frame does not "
        "compile again before the restart.",
    ),
)
"""Kind, lower-case part of the text, and remedy; the first match applies."""


_AGAIN = {
    "compiled again after torch._dynamo.reset()": "reset",
    "compiled again as a new code object": "new code object",
    "compiled again because its last compilation failed": "failed again",
}
"""The agent's texts for repeated compilations without a failed guard."""


def find_remedy(kind: str, text: str) -> str:
    """The remedy as one sentence, or an empty text."""
    known = _BREAK_ID.match(text) if kind == "graph_break" else None
    if known and int(known[1]) in BREAKS:
        return BREAKS[int(known[1])]
    if kind == "guard":
        return next(
            (
                REPEAT_REASONS[reason].remedy
                for begins, reason in _AGAIN.items()
                if text.startswith(begins)
            ),
            "",
        ) or find_guard_remedy(text)
    lower = text.lower()
    return next((sentence for of, part, sentence in TEXTS if of == kind and part in lower), "")


def build_break_url(kind: str, text: str) -> str:
    """The URL of torch's page about a graph break; empty without an id."""
    known = _BREAK_ID.match(text) if kind == "graph_break" else None
    return BREAK_PAGE.format(known[1]) if known else ""
