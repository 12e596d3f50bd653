"""Remedies for failing guards, found by torch's text of the failed check or by torch's name for the
kind of guard."""

from __future__ import annotations

import re

_MODULE_INT = (
    "A number of the module is compiled in: keep it the same, make it a tensor, or set "
    "torch._dynamo.config.allow_unspec_int_on_nn_module = True."
)
_VALUE = (
    "The value is compiled in. Pass a number as a 0-d tensor or mark it dynamic "
    "(dynamic=True); "
    "limit a string or another constant to a few values, because each compiles its own code."
)
_FLAG = (
    "A flag is compiled in: each of its two values compiles its own code; if the flag varies more, "
    "branch on it before the compiled function."
)
_NAN = "One call has NaN where another has a number: pass the value as a 0-d tensor."
_OBJECT = (
    "Each call passes a different object: create the function, module or object once, outside of "
    "the call, and pass the same object."
)
_DEAD = (
    "The object that the code was compiled for was deleted: keep the object alive, and do not "
    "create it for each call."
)
_TYPE = (
    "The type of this object changes from call to call: pass one type, or compile a "
    "function for each."
)
_SCRIPTED = "Each call passes another TorchScript class: pass objects of one class."
_NONE = (
    "The argument is None in some calls: always pass a tensor or always None, or compile a "
    "function for each."
)
_LENGTH = (
    "The length of a list, tuple or dictionary changes from call to call: pass a tensor, "
    "or a fixed number of items."
)
_KEYS = (
    "The keys of a dictionary, or their order, change from call to call: build it with the "
    "same keys in the same order."
)
_MEMBERS = "A dictionary or set has this key only in some calls: always use the same keys."
_CHANGED_DICT = (
    "A dictionary or module changed after it was compiled: finish changing it before the first "
    "call."
)
_HAS = "An attribute exists only in some calls: set it in __init__, to None if it has no value."
_ITERATOR = (
    "An iterator starts at another position at each call: pass a list or tensor, or create the "
    "iterator inside the compiled function."
)
_ALIAS = (
    "Some calls pass the same tensor twice and others do not: clone() one of the two, or "
    "always call the same way."
)
_OVERLAP = (
    "Inputs share storage in some calls and not in others: clone() views of one tensor before "
    "the call."
)
_STATE = (
    "A global setting of torch changed between calls, or from thread to thread: set it once in "
    "each thread, before the first call."
)
_GRAD = (
    "Calls alternate between training and no_grad: use one of them for every call, or compile a "
    "function for each."
)
_AUTOCAST = "Calls alternate with and without autocast: use the same setting for every call."
_THREADS = (
    "torch.set_num_threads was called between calls, or differs from thread to thread: set it "
    "once, before the first call."
)
_DETERMINISM = (
    "torch.use_deterministic_algorithms changed between calls: set it once, before the first call."
)
_PRECISION = (
    "The precision of matrix products (TF32, reduced reductions) changed between calls: set it "
    "once, before the first call."
)
_DEFAULT_DTYPE = (
    "torch.set_default_dtype changed between calls: set it once, before the first call."
)
_MODES = (
    "A torch function mode or __torch_function__ is on only in some calls: use the same setting "
    "for every call."
)
_DEVICE_DEFAULT = (
    "The default device changes between calls: set it once, or name the device where tensors "
    "are created."
)
_FUNCTORCH = (
    "Calls alternate between torch.func transforms (vmap, grad): compile the whole transform, "
    "each as a function of its own."
)
_DUAL = "Calls alternate inside and outside of forward-mode AD: compile a function for each."
_SAVED_HOOKS = (
    "Hooks for saved tensors (checkpointing, offloading) are on only in some calls: use the same "
    "hooks for every call."
)
_FSDP = (
    "FSDP's state differs between calls, as in forward and backward: warm up one whole "
    "training step."
)
_SUBCLASS = (
    "The metadata of a tensor subclass (such as its quantisation) differs from call to call: use "
    "one layout for each compiled function."
)
_PLACEMENT = (
    "The mesh or placement of a DTensor differs from call to call: redistribute to one layout "
    "before the compiled function."
)
_OPAQUE = "An opaque object reports a change: pass the same object, or compile a function for each."
_HOOKS = (
    "Hooks of a module were added or removed between calls: register them before the first "
    "call, and keep them."
)
_MARKS = (
    "A dimension is marked dynamic or static only in some calls: always mark the tensor the same "
    "way (torch._dynamo.mark_dynamic)."
)
_LAMBDA = (
    "A Python function of torch checks this value: find the value in the guard's text, and keep "
    "it the same from call to call."
)
_SHAPES = (
    "The sizes cross a bound that the code was compiled for: keep the sizes on one side, pad, "
    "or mark the range "
    "(torch._dynamo.mark_dynamic with min and max)."
)
_SIZE = (
    "Pad to a few sizes, or mark the dimension with torch._dynamo.mark_dynamic. "
    "Sizes 0 and 1 compile their own code; torch._dynamo.decorators.mark_unbacked avoids this."
)
_ONE_SIZE = (
    "The code is valid for one size: find a branch or a reshape that depends on the size. "
    "Sizes 0 and 1 are constants, unless torch._dynamo.decorators.mark_unbacked marks them."
)
_TENSOR = (
    "The tensor differs in type, size, layout or device from call to call: pass tensors "
    "of one kind."
)
_STRIDE = "Pass a contiguous input, or one memory layout."
_RANK = "Call with one number of dimensions, or compile a function for each."
_DTYPE = "Call with one data type, or compile a function for each."
_DEVICE = "Call with tensors of one device, or compile a function for each."
_REQUIRES_GRAD = (
    "Call with one setting of requires_grad: wrap inference in torch.no_grad() or inference_mode()."
)
_DISPATCH = (
    "Calls alternate between inference_mode, no_grad and training, or between tensor types: "
    "use one of them."
)
_BACKEND = (
    "The function is compiled repeatedly with new options: call torch.compile once and "
    "keep its result."
)
_TRAINING = "The module alternates between train() and eval(): compile one for each."
_RACE = "Warm up the function in one thread before other threads call it."

GUARDS = {
    "AUTOGRAD_SAVED_TENSORS_HOOKS": _SAVED_HOOKS,
    "BOOL_MATCH": _FLAG,
    "BUILTIN_MATCH": _OBJECT,
    "CLASS_MATCH": _OBJECT,
    "CLOSURE_MATCH": _OBJECT,
    "COMPLEX_IS_NAN": _NAN,
    "CONSTANT_MATCH": _VALUE,
    "CONSTANT_SUBCLASS_MATCH": _VALUE,
    "COUNT_ITERATOR_MATCH": _ITERATOR,
    "DEFAULT_DEVICE": _DEVICE_DEFAULT,
    "DETERMINISTIC_ALGORITHMS": _DETERMINISM,
    "DICT_CONTAINS": _MEMBERS,
    "DICT_KEYS_MATCH": _KEYS,
    "DICT_LENGTH": _LENGTH,
    "DICT_NOT_CONTAINS": _MEMBERS,
    "DICT_VERSION": _CHANGED_DICT,
    "DIMENSION_DYNAMIC_MARKING_GUARD": _MARKS,
    "DISPATCH_KEY_SET_MATCH": _DISPATCH,
    "DTENSOR_SPEC_MATCH": _PLACEMENT,
    "DUAL_LEVEL": _DUAL,
    "DUAL_LEVEL_MATCH": _DUAL,
    "DUPLICATE_INPUT": _ALIAS,
    "EMPTY_NN_MODULE_HOOKS_DICT": _HOOKS,
    "EQUALS_MATCH": _VALUE,
    "FAKE_SCRIPT_TYPE_MATCH": _SCRIPTED,
    "FALSE_MATCH": _FLAG,
    "FLOAT_IS_NAN": _NAN,
    "FSDP_TRAINING_STATE": _FSDP,
    "FUNCTION_MATCH": _OBJECT,
    "FUNCTORCH_STACK_MATCH": _FUNCTORCH,
    "GLOBAL_STATE": _STATE,
    "GRAD_MODE": _GRAD,
    "HASATTR": _HAS,
    "ID_MATCH": _OBJECT,
    "LAMBDA_GUARD": _LAMBDA,
    "LENGTH_CHECK": _LENGTH,
    "MAPPING_KEYS_CHECK": _KEYS,
    "MAPPING_KEYS_MATCH": _KEYS,
    "MODULE_MATCH": _OBJECT,
    "NN_MODULE": _OBJECT,
    "NONE_MATCH": _NONE,
    "NOT_NONE": _NONE,
    "NOT_NONE_MATCH": _NONE,
    "NOT_PRESENT_IN_GENERIC_DICT": _HAS,
    "NO_HASATTR": _HAS,
    "NO_TENSOR_ALIASING": _ALIAS,
    "OBJECT_ALIASING": _ALIAS,
    "OPAQUE_OBJ_GUARD_FN_MATCH": _OPAQUE,
    "RANGE_ITERATOR_MATCH": _ITERATOR,
    "SEQUENCE_LENGTH": _LENGTH,
    "SET_CONTAINS": _MEMBERS,
    "SET_NOT_CONTAINS": _MEMBERS,
    "SHAPE_ENV": _SHAPES,
    "STORAGE_OVERLAPPING": _OVERLAP,
    "SYMBOLIC_SHAPE_GUARD": _SHAPES,
    "TENSOR_MATCH": _TENSOR,
    "TENSOR_SUBCLASS_METADATA_MATCH": _SUBCLASS,
    "TORCH_FUNCTION_MODE_STACK": _MODES,
    "TORCH_FUNCTION_STATE": _MODES,
    "TRUE_MATCH": _FLAG,
    "TUPLE_ITERATOR_LEN": _LENGTH,
    "TYPE_MATCH": _TYPE,
    "WEAKREF_ALIVE": _DEAD,
}
"""Remedies by torch's name for the kind of guard: methods of its GuardBuilder, and guards in
C++."""

_CHECKS: tuple[tuple[str, str], ...] = (
    (r"^race:", _RACE),
    (r"got deallocated", _DEAD),
    (r"size mismatch", _SIZE),
    (r"stride mismatch", _STRIDE),
    (r"rank mismatch", _RANK),
    (r"dtype mismatch", _DTYPE),
    (r"device( index)? mismatch", _DEVICE),
    (r"requires_grad", _REQUIRES_GRAD),
    (r"dispatch key|raw_repr\(\)", _DISPATCH),
    (r"GLOBAL_STATE.*grad_mode", _GRAD),
    (r"GLOBAL_STATE.*autocast", _AUTOCAST),
    (r"GLOBAL_STATE.*num_threads", _THREADS),
    (r"GLOBAL_STATE.*deterministic", _DETERMINISM),
    (r"GLOBAL_STATE.*(tf32|reduction|precision)", _PRECISION),
    (r"GLOBAL_STATE.*default_dtype", _DEFAULT_DTYPE),
    (r"GLOBAL_STATE.*torch_function", _MODES),
    (r"GLOBAL_STATE|___check_global_state", _STATE),
    (r"BACKEND_MATCH", _BACKEND),
    (r"torch_function_mode_stack", _MODES),
    (r"CURRENT_DEVICE|default device", _DEVICE_DEFAULT),
    (r"compare_functorch_state", _FUNCTORCH),
    (r"forward_ad\._current_level", _DUAL),
    (r"top_saved_tensors_default_hooks", _SAVED_HOOKS),
    (r"Duplicate tensor|DUPLICATE_INPUT", _ALIAS),
    (r"[Oo]verlap", _OVERLAP),
    (r"_dynamo_\w+_indices|_dynamo_(weak_)?dynamic|_dynamo_unbacked|_dynamo_static", _MARKS),
    (r"___check_metadata", _SUBCLASS),
    (r"__dtensor_spec", _PLACEMENT),
    (r"___check_opaque_guard", _OPAQUE),
    (r"_hooks\b", _HOOKS),
    (r"\.training\b", _TRAINING),
    (r"___check_obj_id", _OBJECT),
    (r"___check_type_id|(^|[ .])type\(|expected type of", _TYPE),
    (r"check_fake_script_type", _SCRIPTED),
    (r"isnan", _NAN),
    (r"___dict_version|___check_dict_version", _CHANGED_DICT),
    (r"not ___dict_contains\(.*__dict__|hasattr\(|getattr failed", _HAS),
    (r"___dict_contains|set\.__contains__", _MEMBERS),
    (r"dict\.keys\(|\.keys\(\)", _KEYS),
    (r"_tuple_iterator_len|\blen\(|^not \S+$", _LENGTH),
    (r"_normalize_(range|count)_iter", _ITERATOR),
    (r" is (not )?None", _NONE),
    (r" is (?!not )\S+$", _ALIAS),
    (r"\.(size|stride|storage_offset|numel)\(\)?.* == ", _ONE_SIZE),
    (r"\bEq\(|[Ss]hape guard failed.*==", _ONE_SIZE),
    (
        r"\.(size|stride|storage_offset|numel)\(|<=|>=|\b(Ne|Lt|Le|Gt|Ge|Mod)\(|[Ss]hape "
        r"guard| < | > | != ",
        _SHAPES,
    ),
    (r"== (True|False)$", _FLAG),
    (r"\bself('\])?\.\S+ == ", _MODULE_INT),
    (r" == ", _VALUE),
)
"""Patterns of torch's text for failed checks, each with its remedy; the first match applies."""
_KNOWN = tuple((re.compile(pattern), remedy) for pattern, remedy in _CHECKS)
_NAMED = re.compile(r"\b[A-Z][A-Z_]{5,}\b")


def find_guard_remedy(text: str) -> str:
    """The remedy of a failed guard; empty for texts of unknown torch versions."""
    found = next((remedy for pattern, remedy in _KNOWN if pattern.search(text)), "")
    return found or next((GUARDS[name] for name in _NAMED.findall(text) if name in GUARDS), "")
