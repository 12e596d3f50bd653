"""Result of a golden batch: compares each compiled tensor with eager and keeps the worst one."""

from __future__ import annotations

from typing import Any

from compilewatch.errors import ComparisonError
from compilewatch.numerics.isolated_run import Result
from compilewatch.numerics.tolerance import Comparison, compare_argmax, compare_tensors, find_worst
from compilewatch.wire.numerics import Parity


def judge_result(
    torch: Any, name: str, compiled: Result, eager: Result, exact: Result | None, precision: str
) -> Parity:
    """Judges a compiled result; raises ComparisonError if eager itself is too inaccurate."""
    if compiled.inputs_changed:
        return Parity(name, "failed", "the compiled callable changes its inputs, eager does not")
    found = compare_all(torch, compiled, eager, exact)
    one = find_worst(found)
    rest = next(
        (
            place
            for place in {**eager.rest, **compiled.rest}
            if eager.rest.get(place) != compiled.rest.get(place)
        ),
        "",
    )
    wrong = one.wrong or (f"{rest} differs between compiled and eager" if rest else "")
    failed = bool(wrong) or one.times > 1.0
    if not failed and all(each.blind for each in found):
        raise ComparisonError(
            "eager itself is too far from its result in a higher precision to compare with"
        )
    return Parity(
        name,
        "failed" if failed else "passed",
        wrong,
        where=one.where,
        error=None if wrong else one.error,
        eager_error=None if wrong else one.eager_error,
        tolerance=None if wrong else one.allowed,
        reference=precision,
        dtype=str(next(iter(eager.outputs.values())).dtype).removeprefix("torch."),
        outputs=len(compiled.outputs),
        gradients=len(compiled.gradients),
        nonfinite=sum(each.nonfinite for each in found),
        eager_nonfinite=sum(each.eager_nonfinite for each in found),
    )


def compare_all(
    torch: Any, compiled: Result, eager: Result, exact: Result | None
) -> list[Comparison]:
    """Compares each output and gradient."""
    pairs = [(compiled.outputs, eager.outputs, exact.outputs if exact else {})]
    pairs += [(compiled.gradients, eager.gradients, exact.gradients if exact else {})]
    found: list[Comparison] = []
    for mine, theirs, higher in pairs:
        if mine.keys() != theirs.keys():
            odd = min(mine.keys() ^ theirs.keys())
            found.append(
                Comparison(
                    odd,
                    0.0,
                    0.0,
                    0.0,
                    0,
                    0,
                    False,
                    f"{odd} exists only {'compiled' if odd in mine else 'eager'}",
                )
            )
            continue
        found += [_compare_one(torch, place, mine, theirs, higher) for place in theirs]
    return found


def _compare_one(
    torch: Any, place: str, mine: dict[str, Any], theirs: dict[str, Any], higher: dict[str, Any]
) -> Comparison:
    """Compares one tensor. An argmax is compared by its scores if the scores are returned too."""
    one = compare_tensors(torch, place, mine[place], theirs[place], higher.get(place))
    if one.times <= 1.0 or one.wrong or theirs[place].dtype.is_floating_point:
        return one
    scores = ((mine[other], theirs[other]) for other in theirs if other != place)
    found = (compare_argmax(torch, place, mine[place], theirs[place], both) for both in scores)
    return next((each for each in found if each is not None), one)
