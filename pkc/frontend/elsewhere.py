"""Words of Python, torch and Triton for what this language writes otherwise: what to write instead."""

from __future__ import annotations

POWER = "there is no power operator; multiply, or use `exp2(x)`"
INVERT = "`not` negates a condition; of integers write `x ^ -1`"

_LOOPS = "loops are `for k in blocks(K, 64):`, `for i in range(n):` or `for r in ring():`"
KEYWORDS = {
    "class": "a `.pk` file holds functions and kernels",
    "while": _LOOPS,
    "break": _LOOPS,
    "continue": _LOOPS,
    "yield": "a kernel writes into its array parameters",
    "lambda": "functions are defined before the kernel: `def twice(x):`",
    "as": "a function has the name of its definition",
    "is": "compare with `==`",
    "None": "leave the argument out, or write `none` for a schedule value",
    "pass": "every block needs a statement; an `else` without any is left out",
}
"""What stands for keywords of Python."""

TYPES = {
    "bfloat16": "bf16",
    "float16": "f16",
    "fp16": "f16",
    "half": "f16",
    "float32": "f32",
    "fp32": "f32",
    "float": "f32",
    "int32": "i32",
    "int": "i32",
    "int8": "i8",
    "fp8": "e4m3",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
}

_GREATEST = (
    "of each row of N elements, one after the other: `rowmax(x)`, its place "
    "`i = rowmin(where(x == rowmax(x), positions(N), N))`, and what is left, `where(positions(N) == i, -inf, x)`"
)
_RANDOM = "nothing is random: load an array, or hash `positions(N)` and a key in i32 with `*`, `^` and `>>`"

FUNCTIONS = {
    "silu": "write `x * sigmoid(x)`",
    "swish": "write `x * sigmoid(x)`",
    "relu": "write `max(x, 0.0)`",
    "gelu": "write `0.5 * x * (1.0 + erf(x * 0.70710678))`",
    "softplus": "write `log(1.0 + exp(x))`",
    "softmax": "write `e = exp(x - rowmax(x))`, then `e / rowsum(e)`",
    "maximum": "write `max(a, b)`",
    "minimum": "write `min(a, b)`",
    "sum": "of each row: `rowsum(x)`",
    "amax": "of each row: `rowmax(x)`",
    "colsum": "of each column: `rowsum(x.T)`",
    "colmax": "of each column: `rowmax(x.T)`",
    "colmin": "of each column: `rowmin(x.T)`",
    "mean": "of each row of N elements: `rowsum(x) / cast(N, f32)`",
    "rowmean": "of each row of N elements: `rowsum(x) / cast(N, f32)`",
    "ones": "write `full(f32, 1.0, m)`, or the number alone",
    "isnan": "write `where(x != x, 1.0, 0.0)`, or the condition alone",
    "var": "around the mean a, of each row of N elements: `rowsum((x - a) * (x - a)) / cast(N, f32)`",
    "norm": "of each row: `sqrt(rowsum(x * x))`",
    "argmax": "of each row of N elements: `rowmin(where(x == rowmax(x), positions(N), N))`",
    "argmin": "of each row of N elements: `rowmin(where(x == rowmin(x), positions(N), N))`",
    **dict.fromkeys(("topk", "sort", "argsort"), _GREATEST),
    **dict.fromkeys(("rand", "randn", "randint", "random", "uniform", "dropout"), _RANDOM),
    "fma": "write `a * b + x`",
    "one_hot": "of N elements, with a 1 at position i: `where(positions(N) == i, 1.0, 0.0)`",
    "clamp": "write `min(max(x, -1.0), 1.0)`",
    "clip": "write `min(max(x, -1.0), 1.0)`",
    "sign": "write `where(x > 0.0, 1.0, where(x < 0.0, -1.0, 0.0))`",
    "square": "write `x * x`",
    "log1p": "write `log(1.0 + x)`",
    "expm1": "write `exp(x) - 1.0`",
    "rint": "write `round(x)`",
    "ceil": "write `-floor(-x)`",
    "trunc": "write `cast(cast(x, i32), f32)`",
    "tan": "write `sin(x) / cos(x)`",
    "sinh": "write `0.5 * (exp(x) - exp(-x))`",
    "cosh": "write `0.5 * (exp(x) + exp(-x))`",
    "cummax": "of running results there is the sum: `cumsum(x)`",
    "cumprod": "of running results there is the sum: `exp(cumsum(log(x)))`",
    "dot": "write `a @ b`",
    "matmul": "write `a @ b`",
    "arange": "the positions of a block are `positions(m)`, those of 64 elements `positions(64)`",
    "program_id": "a loop over `tasks(...)` gives each task its blocks",
    "cdiv": "a list of blocks knows how many there are: `blocks(N, 128)`",
    "load": "an array is loaded by its index: `A[m, k]`",
    "pow": POWER,
}


def of_type(name: str) -> str:
    """What to write for an element type that is none here."""
    known = "element types are bf16, f16, f32, i32, i8, e4m3 and e5m2"
    return (
        f"did you mean `{TYPES[name]}`?"
        if name in TYPES
        else f"{known}; a parameter may also be `const` or `signal[...]`"
    )


CONVERTING = ("to", "astype", "type", "cast", "float", "half", "bfloat16", "int")
"""Methods that convert."""


def of_slice(start: str, stop: str, step: str = "") -> str:
    """What to index with in place of `start:stop:step`."""
    block = "`blocks(N, size, start=a, stop=b)`"
    first, by = start or "0", step or "1"
    if not (first.isdecimal() and stop.isdecimal() and by.isdecimal() and int(by) and int(first) < int(stop)):
        return f"index with a block: {block}; from a to b, if both are constants, with `positions(b - a) + a`"
    count = -((int(first) - int(stop)) // int(by))
    text = f"positions({count}){f' * {by}' * (by != '1')}{f' + {int(first)}' * (int(first) > 0)}"
    return f"index with `{text}`; along a run-time dimension, with a block: {block}"


ATTRIBUTES = {
    "shape": "sizes have names: `N` of `A: f32[M, N]`",
    "size": "sizes have names: `N` of `A: f32[M, N]`",
    "dtype": "the type of an array is in its declaration: `A: bf16[M, N]`",
    "inf": "write `inf`",
    "mT": "the transpose is `.T`",
}
"""Attributes of arrays, tensors and modules, and what stands for them."""


def of_attribute(name: str) -> str:
    """What to write for an attribute."""
    return ATTRIBUTES.get(name, "expressions have `.T`, arrays `.at(r)[...]`")
