"""Remedies for graph breaks, by the number in torch's break id. Each id of torch's registry has one
remedy."""

from __future__ import annotations

_REMEDIES: tuple[tuple[str, str], ...] = (
    (
        "The code raises an error here, in eager too: call the function uncompiled with "
        "the same arguments, and fix the error.",
        "0 2 10 11 12 20 21 28 50 51 54 57 61 62 63 70 76 81 88 91 111 112 119 132 136 137 "
        "154 155 160 167 182 184 186 193 195 "
        "196 234 245 248 249 252 258 259 260 265 268 285 286 297 300 305 359 871 2549 2922 "
        "4315 4393 5195 7312 7596 7637",
    ),
    (
        "Unwrap the tensor subclass or the nested tensor before the compiled function.",
        "1 16 26 44 103 163 164 233",
    ),
    (
        "Compile the function that uses the generator, not the generator itself.",
        "3 24 94 120 253 8335",
    ),
    (
        "This is a bug in torch: move the call out of the compiled function, report the break "
        "to PyTorch with this id, and try a newer torch.",
        "4 27 47 52 77 80 89 93 116 118 122 168 170 175 178 188 205 274 275 284 295 304 "
        "306 307 315 316 320 321 322 323 329 330 "
        "331 333 338 344 354 4749 4841 6890 6999 9648",
    ),
    (
        "Dynamo does not trace this operation of the object: run the operation before "
        "the compiled function, or use a plain list, tuple, dict or number.",
        "5 6 23 113 150 162 174 180 187 190 194 201 207 217 255 256 261 270 280 282 289 "
        "368 369 459 755 811 1220 1275 1584 1752 "
        "2404 2483 2544 2852 3006 3241 3383 3697 3775 3934 4240 4347 4411 4880 5380 5458 "
        "5565 5904 6012 6025 6053 6215 6622 "
        "7230 7286 7510 7786 7906 7968 8315 8435 9137 9198 9458 9522 9548 9561",
    ),
    (
        "Dynamo does not enter this function: move the call out "
        "of the compiled one, or make it a custom operator (torch.library.custom_op).",
        "7 8 9 60 71 147 148 151 177 287 808 9277 9672",
    ),
    (
        "Set torch._dynamo.config.compiled_autograd = True, or register the hook outside "
        "of the compiled function.",
        "13 29 83 100 101 165 166 7444",
    ),
    (
        "Set torch._dynamo.config.allow_rnn = True, or leave the RNN outside.",
        "14",
    ),
    (
        "Convert the sparse tensor to a dense one before the compiled function, or leave "
        "the sparse part outside.",
        "15 129 130 277 374 1501",
    ),
    (
        "Give torch.cond, scan, map or while_loop pure functions of tensors: no mutation, "
        "no aliasing, and outputs of the same structure.",
        "17 40 41 42 67 68 73 74 102 301 302 303 308 309 310 311 312 313 314 317 318 319 "
        "324 325 326 327 332 334 335 336 337 "
        "339 340 341 342 343 345 349 350 351 355 356 1177 1380 4413 6017",
    ),
    (
        "Compute with the size as a plain int before the compiled function, or mark the "
        "dimension static (torch._dynamo.mark_static).",
        "18 143 214 224",
    ),
    (
        "Reduce the autograd.Function to a static forward and backward with tensors, or "
        "wrap its call in torch.compiler.disable.",
        "19 85 138 139 140 144 145 346 347 348 352 2019 2464 4372 6297",
    ),
    (
        "Import the module at the top of the file, outside of the compiled function.",
        "22 69",
    ),
    (
        "The code requests this break: remove the call (graph_break, skip_frame, "
        "step_unsupported, comptime) at the reported place.",
        "25 30 269 4297 4636",
    ),
    (
        "Use plain nn.Module access: no custom __getattribute__, constant indices, and "
        "no changes to the module while it runs.",
        "31 32 121 153 161 189 202 211 243 281",
    ),
    (
        "The call forces a GPU-CPU sync: keep the value a tensor, or set "
        "torch._dynamo.config.capture_scalar_outputs = True.",
        "33 38 109 124 218",
    ),
    (
        'Remove the assertion, or write it as torch._check(condition, lambda: "a constant text").',
        "34 171 288 9158 9840",
    ),
    (
        "A branch depends on the values of a tensor: use torch.where or torch.cond, or branch "
        "on a plain number that is known before.",
        "35 360",
    ),
    (
        "The output's size depends on the data: use a "
        "mask of fixed size, or set torch._dynamo.config.capture_dynamic_output_shape_ops = True.",
        "36",
    ),
    (
        "Give the operator a fake implementation with torch.library.register_fake.",
        "37 48 49 64 87 90",
    ),
    (
        "Check the guards that failed: they name the values that change from call to call.",
        "39",
    ),
    (
        "Tag the custom operator with torch.Tag.pt2_compliant_tag once "
        "torch.library.opcheck passes, or define it with torch.library.custom_op.",
        "43",
    ),
    (
        "Check for inference mode outside of the compiled function, and pass the result as a bool.",
        "45 46",
    ),
    (
        "Wrap the model with FSDP(use_orig_params=True), or use fully_shard.",
        "53",
    ),
    (
        "Pass tensors and plain numbers to the operator: Dynamo cannot put this argument "
        "into a graph.",
        "55",
    ),
    (
        "Change the tensor's data or attributes outside of the compiled function, or create "
        "a new tensor.",
        "56 58 72 213 215 220 222 569",
    ),
    (
        "Move the call (print, open, time and the like) out of "
        "the compiled function; a logging function may be put into "
        "torch._dynamo.config.reorderable_logging_functions.",
        "59 291 296",
    ),
    (
        "This break follows from another break inside the loop, the comprehension or the "
        "called function: fix that break first.",
        "65 96 2669 5696 6276 7000 7425 9898",
    ),
    (
        "Open this context manager around the compiled function, not inside it.",
        "66 142 221 262 263 2533",
    ),
    (
        "Define the class outside of the compiled function.",
        "75 8977",
    ),
    (
        "Pass only tensors, plain numbers and registered pytree classes to the marked "
        "function, and return only these.",
        "78 236 238 239 251 353 2520 3840 6210",
    ),
    (
        "Dynamo does not support this Python instruction: simplify the expression, "
        "or move it out of the compiled function.",
        "79 82 200 6604",
    ),
    (
        "Change the object outside of the compiled function, or build a new one instead.",
        "84 97 131 169 197 198 254 271 358 467 781 4271 7502 8887",
    ),
    (
        "Torch needs a constant here: write the value as a literal, or pass it as a "
        "plain number or string.",
        "86",
    ),
    (
        "The compiled function returns or keeps an object that Dynamo cannot rebuild: "
        "return tensors and plain containers of them.",
        "92 199 1297 1319 4778 9528",
    ),
    (
        "Raise and inspect the exception outside of the compiled function: Dynamo traces "
        "only plain raise and except.",
        "95 135 273 9625",
    ),
    (
        "Compilation of this function is disabled: remove torch.compiler.disable, or "
        "call the function outside of the compiled function.",
        "98 99",
    ),
    (
        "Detach the inputs or outputs of the compiled function (detach()), or compute the "
        "gradient outside of it.",
        "104 371 372",
    ),
    (
        "Set torch._dynamo.config.trace_numpy = True.",
        "105 231 293",
    ),
    (
        "Install NumPy in this environment, or use only tensors.",
        "106 232",
    ),
    (
        "Use torch.randint or torch.rand in place of random_ or uniform_ with these arguments.",
        "107 110",
    ),
    (
        "Call retain_grad() on the output, outside of the compiled function.",
        "108",
    ),
    (
        "Use a plain loop in place of this itertools function, or call it outside of "
        "the compiled function.",
        "114 115 133 134 152 192",
    ),
    (
        "Call this method outside of the compiled function, or use the torch equivalent.",
        "117 146 156 208 283 292 299 6270 7489",
    ),
    (
        "Call backward() and torch.autograd.grad outside of the compiled function, or "
        "compile only the forward pass.",
        "123 181 442 1042 1140 1381 1724 4927 5748 6663 7054 9186",
    ),
    (
        "Set requires_grad on the tensor before the compiled function.",
        "125 206 225 237 7324 8985",
    ),
    (
        "Create a new tensor instead of changing the size or storage of this tensor in place.",
        "126 127 128 4197",
    ),
    (
        "Compare objects by value: id(), hash() and addresses differ in compiled code.",
        "141 176 191 4501 4608 5976 9316",
    ),
    (
        "Compile the whole torch.func transform, as torch.compile(torch.vmap(f)), not a "
        "function inside of it.",
        "149 7299 9741",
    ),
    (
        "Use the torch equivalent, or call NumPy outside of the compiled function.",
        "157 158 159 185 250 290 294",
    ),
    (
        "Use the functional collectives of torch.distributed.",
        "172",
    ),
    (
        "Torch cannot export this: create the parameters in __init__ and remove backward "
        "hooks before the export.",
        "173 244",
    ),
    (
        "Copy outside of the compiled function, or use clone().",
        "179 4198",
    ),
    (
        "Use plain constants (int, str, bool) as keys, or build the dictionary or set "
        "before the compiled function.",
        "183 203 204 257 278 364 365 366 367 682 2861 5849",
    ),
    (
        "Open and close the profiler, the annotation or the context entirely inside or entirely "
        "outside the compiled function.",
        "209 212 279 370",
    ),
    (
        "This torch build has no torch.distributed: remove the collective, or "
        "install a build with torch.distributed.",
        "210",
    ),
    (
        "Call the Triton kernel as kernel[grid](...) with plain arguments, or wrap it with "
        "torch.library.triton_op.",
        "216 361 3326 4026 6735",
    ),
    (
        'The backend fails on the graph: try backend="eager", then "aot_eager", to find '
        "the failing stage, and move the reported operator out of the compiled function.",
        "219",
    ),
    (
        "Call torch.compile outside of the compiled function.",
        "223",
    ),
    (
        "Create the parameter in __init__, outside of the compiled function.",
        "226 227 228 229 235 264",
    ),
    (
        "Change this setting once, before the compiled function is called.",
        "230",
    ),
    (
        "Remove out=, or pass a contiguous tensor of the right shape.",
        "240 241 242 247",
    ),
    (
        "Pass num_classes to one_hot: otherwise the output size depends on the data.",
        "246",
    ),
    (
        "Compile the Python code itself: TorchScript functions and objects cannot be "
        "traced, so call them outside.",
        "266 267 357 2977 4695",
    ),
    (
        "Create the weak reference outside of the compiled function.",
        "272 276",
    ),
    (
        "Generate random numbers with torch, or set "
        "torch._dynamo.config.use_numpy_random_stream = False.",
        "298",
    ),
    (
        "Do not set torch._dynamo.config.inline_inbuilt_nn_modules = False: torch needs it "
        "to trace functional_call.",
        "328",
    ),
    (
        "Create the opaque object before the compiled function, and access its members "
        "through custom operators (torch.library.custom_op).",
        "362 363 1739 2078 7685 8656 8843 9567",
    ),
    (
        "Leave compiled autograd off for this function, or call torch.autograd.grad outside of it.",
        "373",
    ),
    (
        "Set TORCHDYNAMO_ENABLE_P2P_COMPILATION=1, or send and receive outside of the "
        "compiled function.",
        "1750 2696 3343 9300 9860",
    ),
    (
        "Move all tensors of the operation to one device before the compiled function.",
        "5173",
    ),
    (
        "Seed and read the torch.Generator outside of the compiled function.",
        "7650",
    ),
)
"""Each remedy with the numbers of its graph breaks."""

BREAKS = {int(number): remedy for remedy, numbers in _REMEDIES for number in numbers.split()}
"""Remedies by the number in torch's id of a graph break."""
