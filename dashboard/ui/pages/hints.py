"""What to do about a finding: one sentence for the common ones, found by torch's id of a graph break or by the text."""

from __future__ import annotations

import re

BREAK_PAGE = "https://meta-pytorch.github.io/compile-graph-break-site/gb/gb{}.html"
_BREAK_ID = re.compile(r"^GB(\d{4,5}) ")

_BRANCH = "A branch depends on a tensor's values: use torch.where or torch.cond, or decide on a plain number that is known before."
_ITEM = "The value has to travel to the CPU: keep it a tensor, or set torch._dynamo.config.capture_scalar_outputs = True."
_DYNAMIC = (
    "The output's size depends on the data: use a mask of fixed size, or set torch._dynamo.config.capture_dynamic_output_shape_ops = True."
)
_SKIPPED = (
    "Dynamo does not enter this function: move the call out of the compiled one, or make it a custom operator (torch.library.custom_op)."
)
_BUILTIN = (
    "Move the call (print, open, time and the like) out of the compiled function; "
    "a logging function may be put into torch._dynamo.config.reorderable_logging_functions."
)
_DISABLED = "Somebody disabled compilation of this function: remove torch.compiler.disable, or call it outside of the compiled one."
_BACKWARD = "Call backward() outside of the compiled function, or compile the forward alone."
_RESIZE = "Make a new tensor instead of changing this one's size or storage in place."
_CONTEXT = "Open this context manager around the compiled function, not inside it."
_METHOD = "Call this method outside of the compiled function, or use an equivalent of torch."
_GENERATOR = "Compile the function that uses the generator, not the generator itself."
_SUBCLASS = "Unwrap the tensor subclass or the nested tensor before the compiled function."
_RAISED = "An exception is raised while tracing: raise it outside of the compiled function, or use torch._check."
_MODULE_HOOK = "Set torch._dynamo.config.compiled_autograd = True, or register the hook outside of the compiled function."

BREAKS = {
    3: _GENERATOR,
    7: _SKIPPED,
    8: _SKIPPED,
    9: _SKIPPED,
    14: "Set torch._dynamo.config.allow_rnn = True, or leave the RNN outside.",
    15: _SUBCLASS,
    16: _SUBCLASS,
    25: "Remove the call of torch._dynamo.graph_break().",
    29: _MODULE_HOOK,
    33: _ITEM,
    34: _RAISED,
    35: _BRANCH,
    36: _DYNAMIC,
    37: _DYNAMIC,
    38: _ITEM,
    39: "See the guards that failed: what they name changes from call to call.",
    59: _BUILTIN,
    66: _CONTEXT,
    83: _MODULE_HOOK,
    88: _RAISED,
    90: "Give the operator a fake implementation with torch.library.register_fake.",
    98: _DISABLED,
    99: _DISABLED,
    105: "Set torch._dynamo.config.trace_numpy = True.",
    109: _ITEM,
    123: _BACKWARD,
    124: _ITEM,
    125: "Set requires_grad on the tensor before the compiled function.",
    126: _RESIZE,
    127: _RESIZE,
    128: _RESIZE,
    142: _CONTEXT,
    147: _SKIPPED,
    148: _SKIPPED,
    156: _METHOD,
    163: _SUBCLASS,
    170: _BRANCH,
    172: "Use the functional collectives of torch.distributed.",
    177: _SKIPPED,
    179: "Copy outside of the compiled function, or use clone().",
    6270: _METHOD,
    9186: _BACKWARD,
}
"""By the number in torch's id of a graph break."""

TEXTS: tuple[tuple[str, str, str], ...] = (
    ("graph_break", "generic_jump", _BRANCH),
    ("graph_break", "data-dependent", _BRANCH),
    ("graph_break", ".item()", _ITEM),
    ("graph_break", "tolist()", _ITEM),
    ("graph_break", "dynamic shape operator", _DYNAMIC),
    ("graph_break", "marked as skipped", _SKIPPED),
    ("graph_break", "builtin", _BUILTIN),
    ("graph_break", "torch.compiler.disable", _DISABLED),
    ("graph_break", "_dynamo.disable", _DISABLED),
    ("graph_break", "backward()", _BACKWARD),
    ("graph_break", "context manager", _CONTEXT),
    ("guard", "race:", "Warm the function up in one thread before the others may call it."),
    (
        "guard",
        "size mismatch",
        "Pad the input to a few sizes, compile with dynamic=True, or mark the dimension with torch._dynamo.mark_dynamic.",
    ),
    ("guard", "stride mismatch", "Hand the input over contiguous, or in one memory layout."),
    ("guard", "rank mismatch", "Call with one number of dimensions, or compile a function for each."),
    ("guard", "dtype mismatch", "Call with one data type, or compile a function for each."),
    ("guard", "device mismatch", "Call with tensors of one device, or compile a function for each."),
    ("guard", "requires_grad", "Call with one setting of requires_grad: wrap inference in torch.no_grad() or inference_mode()."),
    ("guard", "grad_mode", "Calls alternate between training and no_grad: compile a function for each."),
    ("guard", "autocast", "Calls alternate with and without autocast: keep it the same around every call."),
    ("guard", "global_state", "A global setting of torch changed between calls: set it once, before the first call."),
    ("guard", "dispatch key", "Calls alternate between inference_mode, no_grad and training, or between tensor types: keep to one."),
    (
        "guard",
        "backend_match",
        "The function is compiled again and again with new options: call torch.compile once and keep what it returns.",
    ),
    ("guard", ".training", "The module alternates between train() and eval(): compile one for each."),
    ("guard", "check_obj_id", "Another object at each call: hand over the same function or module, or make it part of the compiled one."),
    ("guard", "check_type_id", "The type of an argument changes from call to call: hand over one type."),
    ("guard", "len(", "The length of a list or dictionary changes from call to call: hand over a tensor, or a fixed number of items."),
    ("guard", " == *", "A plain number or text is compiled in: hand it over as a tensor, mark it dynamic, or keep it the same."),
    ("guard", " <= ", "The sizes cross a bound the code branches on: keep them on one side, or pad."),
    ("guard", "eq(", "The compiled code holds for this size only: look for a branch or a reshape on the size."),
    (
        "cache_miss",
        "cache folder is new",
        "Give TORCHINDUCTOR_CACHE_DIR a volume that outlives the process, or load saved ones (torch.compiler.load_cache_artifacts).",
    ),
    ("cache_miss", "cache folder:", "Set TORCHINDUCTOR_CACHE_DIR to the same folder in every process."),
    ("cache_miss", "inputs of the graph", "Warm up with the sizes that will come, or compile with dynamic=True."),
    ("cache_miss", "env ", "Set the variable to the same value in every process; after a change the first start compiles anew."),
    ("cache_miss", "_config: ", "Set the option to the same value in every process; after a change the first start compiles anew."),
    ("cache_miss", " -> ", "After an upgrade the first start compiles anew: warm a shared cache before the traffic comes."),
    ("cache_miss", "custom pass", "Give the pass a uuid() (torch._inductor.custom_graph_pass), or torch cannot cache what it changed."),
    ("cudagraph_skip", "mutated inputs", "Do not write into an input: return the result, or copy into a buffer that the module owns."),
    ("cudagraph_skip", "cpu device", "A tensor on the CPU takes part: move it to the GPU before the call, scalars included."),
    ("cudagraph_skip", "multiple devices", "Keep everything in the compiled function on one GPU."),
    (
        "cudagraph_skip",
        "re-recording limit",
        "Its inputs lie at new addresses at each call: keep them alive, or copy into tensors that stay.",
    ),
    ("cudagraph_skip", "dynamic", "Pad to a few sizes: a CUDA graph holds one size each."),
    (
        "cudagraph_skip",
        "incompatible op",
        "Leave the operator outside of the compiled function, or let graph partitioning split around it.",
    ),
    (
        "cudagraph_skip",
        "deterministic",
        "Deterministic algorithms use operators that no CUDA graph can hold: switch them off where they are not needed.",
    ),
    ("cudagraph_rerecord", "input size", "Pad to a few sizes: each size is another CUDA graph, with memory of its own."),
    ("cudagraph_rerecord", "address", "A parameter or static input moved: update it in place (copy_) instead of replacing it."),
    (
        "cudagraph_rerecord",
        "earlier output",
        "Outputs of an earlier run are still held: clone them, or call torch.compiler.cudagraph_mark_step_begin().",
    ),
    ("fallback", "", "Inductor has no kernel for it: replace the operator, or write one with Triton; it costs fusion, not correctness."),
    (
        "alloc_retry",
        "",
        "The GPU is nearly full or fragmented: lower the batch size, or set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
    ),
    ("oom", "", "Lower the batch size or the longest input; compare the peak with that of the version before."),
    ("parity", "", 'Hold the version back. The first of backend="eager", "aot_eager" and "inductor" that fails is where it goes wrong.'),
    ("latched_eager", ": limit", "Fix the guard that keeps failing, then restart the process: until then it does not compile again."),
)
"""Kind, a part of the text in lower case, and the sentence; the first that fits."""


def hint_for(kind: str, text: str) -> str:
    """One sentence, or nothing where none is known."""
    known = _BREAK_ID.match(text) if kind == "graph_break" else None
    if known and int(known[1]) in BREAKS:
        return BREAKS[int(known[1])]
    lower = text.lower()
    return next((sentence for of, part, sentence in TEXTS if of == kind and part in lower), "")


def break_page(kind: str, text: str) -> str:
    """The address of torch's own page about a graph break; empty where it has no id."""
    known = _BREAK_ID.match(text) if kind == "graph_break" else None
    return BREAK_PAGE.format(known[1]) if known else ""
