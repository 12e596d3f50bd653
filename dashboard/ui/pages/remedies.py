"""What to do about a finding: one sentence for the common ones, found by torch's id of a graph
break or by the text."""

from __future__ import annotations

import re

from dashboard.fleet.metrics.recompile_reasons import REPEAT_REASONS
from dashboard.ui.pages.break_remedies import BREAKS
from dashboard.ui.pages.guard_remedies import find_guard_remedy

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
        "Give TORCHINDUCTOR_CACHE_DIR a volume that outlives the process, or load saved "
        "ones (torch.compiler.load_cache_artifacts).",
    ),
    (
        "cache_miss",
        "cache folder:",
        "Set TORCHINDUCTOR_CACHE_DIR to the same folder in every process.",
    ),
    (
        "cache_miss",
        "inputs of the graph",
        "Warm up with the sizes that will come, or compile with dynamic=True.",
    ),
    (
        "cache_miss",
        "key: config_hash",
        "Start with the same engine options (--max-num-batched-tokens and others); after a "
        "change the first start compiles.",
    ),
    (
        "cache_miss",
        "key: code_hash",
        "Source files of the model or of vLLM were changed: after that the first start compiles.",
    ),
    (
        "cache_miss",
        "key: compiler_hash",
        "Keep torch, the options of inductor and the machine the same; after a change the "
        "first start compiles.",
    ),
    ("cache_miss", "vllm could not load", "The finding of the failed AOT load has the reason."),
    (
        "cache_miss",
        "env ",
        "Set the variable to the same value in every process; after a change the first "
        "start compiles anew.",
    ),
    (
        "cache_miss",
        "_config: ",
        "Set the option to the same value in every process; after a change the first start "
        "compiles anew.",
    ),
    (
        "cache_miss",
        " -> ",
        "After an upgrade the first start compiles anew: warm a shared cache before the "
        "traffic comes.",
    ),
    (
        "cache_miss",
        "custom pass",
        "Give the pass a uuid() (torch._inductor.custom_graph_pass), or torch cannot cache "
        "what it changed.",
    ),
    (
        "cudagraph_skip",
        "mutated inputs",
        "Do not write into an input: return the result, or copy into a buffer that the "
        "module owns.",
    ),
    (
        "cudagraph_skip",
        "cpu device",
        "A tensor on the CPU takes part: move it to the GPU before the call, scalars included.",
    ),
    ("cudagraph_skip", "multiple devices", "Keep everything in the compiled function on one GPU."),
    (
        "cudagraph_skip",
        "re-recording limit",
        "Its inputs lie at new addresses at each call: keep them alive, or copy into "
        "tensors that stay.",
    ),
    ("cudagraph_skip", "dynamic", "Pad to a few sizes: a CUDA graph holds one size each."),
    (
        "cudagraph_skip",
        "incompatible op",
        "Leave the operator outside of the compiled function, or let graph partitioning "
        "split around it.",
    ),
    (
        "cudagraph_skip",
        "deterministic",
        "Deterministic algorithms use operators that no CUDA graph can hold: switch them "
        "off where they are not needed.",
    ),
    (
        "cudagraph_rerecord",
        "input size",
        "Pad to a few sizes: each size is another CUDA graph, with memory of its own.",
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
        "Fix the error of the compilation, which a finding of its own names; until then "
        "call the function uncompiled.",
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
        "Keep and call what torch.compile returns (model = torch.compile(model)), or call "
        "model.compile() on the module that is called; "
        "not self = torch.compile(self).",
    ),
    (
        "guards_left_out",
        "",
        "Other inputs may be answered by code for these: compare a golden batch with a "
        "second shape (compilewatch.golden), "
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
        "Torch runs a generator function eager: compile the function that it calls for "
        "each item, or the one that consumes it.",
    ),
    (
        "limit_not_in_force",
        "",
        "Dynamo's options hold for the context that sets them: set the limit in each "
        "thread before it calls, "
        "or hand it to torch.compile(recompile_limit=...).",
    ),
    (
        "wrapper_not_entered",
        "",
        "Watch what the framework calls: compile a module inside it (self.net = "
        "compilewatch.compile(net)), "
        'or put `with compilewatch.region("train_step")` around the step.',
    ),
    (
        "golden_not_compared",
        "",
        "Run the golden batch through what torch.compile returned, after init; pass "
        "reference= where the callable has no eager form.",
    ),
    (
        "golden_cached_code",
        "",
        "Delete the cache folder or the cache artefact that this host uses, and build it again; "
        "the same code compiled with an empty cache is right.",
    ),
    (
        "golden_hidden_by_tf32",
        "",
        "Run it with torch.backends.cudnn.allow_tf32 = False from the start: "
        "what still differs is a wrong kernel, what agrees was rounding.",
    ),
    (
        "compile_error",
        "",
        'Compile it with backend="eager", then "aot_eager", to see which stage fails; then '
        "fix what the error names, such as a "
        "missing C++ compiler or a full disk.",
    ),
    (
        "fallback",
        "torch.ops.vllm.",
        "None is needed: it is an operator of vLLM's own, which splits the graph at "
        "attention by design.",
    ),
    (
        "fallback",
        "torch.ops._c",
        "None is needed: it is a kernel of the engine's own, which inductor calls as it is.",
    ),
    (
        "fallback",
        "",
        "Inductor has no kernel for it: replace the operator, or write one with Triton; it "
        "costs fusion, not correctness.",
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
        "A bug of vLLM's own: in trace-once mode (a CPU's default) no AOT compilation ever "
        "loads. Each start compiles; "
        "VLLM_USE_AOT_COMPILE=0 spares the attempt.",
    ),
    (
        "aot_load_failed",
        "source code has changed",
        "Code that the model runs was changed: the first start after it compiles, the next "
        "one loads.",
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
        "Lower the batch size or the longest input; compare the peak with that of the "
        "version before.",
    ),
    (
        "parity",
        "",
        'Hold the version back. The first of backend="eager", "aot_eager" and "inductor" '
        "that fails is where it goes wrong.",
    ),
    (
        "latched_eager",
        ": limit",
        "Fix the guard that keeps failing, then restart the process: until then it does "
        "not compile again.",
    ),
)
"""Kind, a part of the text in lower case, and the sentence; the first that fits."""


_AGAIN = {
    "compiled again after torch._dynamo.reset()": "reset",
    "compiled again as a new code object": "new code object",
    "compiled again because its last compilation failed": "failed again",
}
"""How the agent words that a function is compiled again although no guard failed."""


def find_remedy(kind: str, text: str) -> str:
    """One sentence, or nothing where none is known."""
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
    """The address of torch's own page about a graph break; empty where it has no id."""
    known = _BREAK_ID.match(text) if kind == "graph_break" else None
    return BREAK_PAGE.format(known[1]) if known else ""
