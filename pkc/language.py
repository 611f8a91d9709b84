"""The words of the language for kernels that are written as Python functions.

    from pkc.language import *

A kernel is read, never run, so these objects do nothing: with them, annotations evaluate when the function is
defined, and editors and type checkers know the names. docs/language.md says what the words mean.
"""

from __future__ import annotations

from typing import Any

from pkc.frontend.words import Dim, TypeWord, Word, dims
from pkc.kernels import kernel

# To a type checker everything in a kernel is `Any`: it cannot know of tiles.

# Types of parameters
bf16: Any = TypeWord("bf16")
"""16-bit float, 8 bits of exponent: the type of arrays `A: bf16[M, K]`, also in `zeros(bf16, m)` and `cast(x,
bf16)`."""
f16: Any = TypeWord("f16")
"""16-bit float, 5 bits of exponent."""
f32: Any = TypeWord("f32")
"""32-bit float: what matmuls add up in; a scalar parameter `scale: f32`."""
i32: Any = TypeWord("i32")
"""32-bit integer: tables of rows, counts, scalar parameters."""
i8: Any = TypeWord("i8")
"""8-bit integer, from -128 to 127: what floats are quantised to. Computed in i32."""
e4m3: Any = TypeWord("e4m3")
"""8-bit float, 4 bits of exponent, up to 448."""
e5m2: Any = TypeWord("e5m2")
"""8-bit float, 5 bits of exponent."""
signal: Any = TypeWord("signal")
"""`ready: signal[ranks]` are counters of each rank; `signal(ready.at(r)[i], 1)` adds to one of rank r."""
const: Any = Word("const")
"""`D: const = 64` is a number that is known when the kernel is compiled."""

# Values
inf: Any = float("inf")
"""Infinity, of f32."""
rank: Any = Dim("rank")
"""The number of this rank, from 0."""
ranks: Any = Dim("ranks")
"""How many ranks (GPUs) there are."""

# Lists to loop over
blocks: Any = Word("blocks")
"""`blocks(M, 128)`: blocks of 128 positions of M, the last one may be shorter; `of=r` those of the shard of rank r,
`start=` and `stop=` those between two positions."""
tasks: Any = Word("tasks")
"""`for m, n in tasks(blocks(M, 128), blocks(N, 256))`: tasks that do not depend on each other, spread over the GPU."""
ring: Any = Word("ring")
"""`for r in ring()`: all ranks, from this one on."""
start: Any = Word("start")
"""`start(m)`: the first position of a block."""

# Tiles
zeros: Any = Word("zeros")
"""`zeros(f32, m, n)`: a tile of zeros with the axes of these blocks."""
full: Any = Word("full")
"""`full(f32, -inf, m)`: a tile that is the same everywhere."""
cast: Any = Word("cast")
"""`cast(x, bf16)`: a tile or scalar in another type."""
cumsum: Any = Word("cumsum")
"""`cumsum(x)`: along each row, the sum of each element and those before it."""
positions: Any = Word("positions")
"""`positions(m)`: the positions of a block along its dimension, a tile of i32; `positions(64)`: of a whole axis."""
gather: Any = Word("gather")
"""`gather(X, rows[p], k)`: the rows of an array that a table names; -1 names none."""

# Functions: written by `python -m tools.operations_page`
exp: Any = Word("exp")
"""`exp(x)`: e to the power x."""
exp2: Any = Word("exp2")
"""`exp2(x)`: 2 to the power x."""
log2: Any = Word("log2")
"""`log2(x)`: logarithm to base 2."""
sqrt: Any = Word("sqrt")
"""`sqrt(x)`: square root."""
tanh: Any = Word("tanh")
"""`tanh(x)`: hyperbolic tangent."""
log: Any = Word("log")
"""`log(x)`: natural logarithm."""
erf: Any = Word("erf")
"""`erf(x)`: error function."""
floor: Any = Word("floor")
"""`floor(x)`: the greatest whole number that is not above x."""
sin: Any = Word("sin")
"""`sin(x)`: sine, of radians; NaN from 2^51 on."""
cos: Any = Word("cos")
"""`cos(x)`: cosine, of radians; NaN from 2^51 on."""
rsqrt: Any = Word("rsqrt")
"""`rsqrt(x)`: 1 / sqrt(x)."""
sigmoid: Any = Word("sigmoid")
"""`sigmoid(x)`: 1 / (1 + exp(-x))."""
where: Any = Word("where")
"""`where(condition, a, b)`: the second operand where the first holds, the third elsewhere."""
rowmax: Any = Word("rowmax")
"""`rowmax(x)`: the greatest element of each row; NaN if one is NaN."""
rowmin: Any = Word("rowmin")
"""`rowmin(x)`: the smallest element of each row; NaN if one is NaN."""
rowsum: Any = Word("rowsum")
"""`rowsum(x)`: the sum of each row, in no defined order; i32 wraps."""

# Explicit communication
store: Any = Word("store")
"""`store(C.at(r)[m, n], t)`: as `C.at(r)[m, n] = t`."""
store_add: Any = Word("store_add")
"""`store_add(C.at(r)[m, n], t)`: adds to what is there, each element atomically, in no defined order."""
reduce: Any = Word("reduce")
"""`reduce(C[m, n])`: the sum of all ranks' copies of a tile; `reduce(C[m, n], max)` or `min` the greatest or
smallest."""
all_reduce: Any = Word("all_reduce")
"""`all_reduce(C[m, n])`: what `reduce` gives, stored to all ranks' copies."""
signal_all: Any = Word("signal_all")
"""`signal_all(ready[i], 1)`: adds to a counter of every rank."""
wait: Any = Word("wait")
"""`wait(ready[i], n)`: until this rank's counter is at least n."""
barrier: Any = Word("barrier")
"""`barrier(done[i])`: until all ranks have come here."""

# Roles and the schedule
role: Any = Word("role")
"""`with role(communicator, sms=16):` what follows is done by this role, beside the others."""
loader: Any = Word("loader")
"""The role that brings tiles."""
consumer: Any = Word("consumer")
"""The role that computes."""
storer: Any = Word("storer")
"""The role that stores results."""
communicator: Any = Word("communicator")
"""The role that reaches other ranks."""
schedule: Any = Word("schedule")
"""`schedule(overlap=intra_sm, stages=4)`: how the kernel runs, never what it computes."""
none: Any = Word("none")
"""`overlap=none`: communication behind the computation."""
intra_sm: Any = Word("intra_sm")
"""`overlap=intra_sm`: every SM communicates beside what it computes."""
inter_sm: Any = Word("inter_sm")
"""`overlap=inter_sm`: some SMs only communicate, `comm_sms` of them."""
copy_engine: Any = Word("copy_engine")
"""`overlap=copy_engine`: copies by the GPU's copy engines."""
natural: Any = Word("natural")
"""`order=natural`: tasks as they are numbered."""
local_first: Any = Word("local_first")
"""`order=local_first`: first the tasks whose tiles this rank owns."""
local_last: Any = Word("local_last")
"""`order=local_last`: those last."""
push: Any = Word("push")
"""`transfer=push`: a rank sends what others will read."""
one_shot: Any = Word("one_shot")
"""`all_reduce=one_shot`: every rank adds up everything."""
two_shot: Any = Word("two_shot")
"""`all_reduce=two_shot`: the owner adds up, and sends the sum to all."""

__all__ = [
    "all_reduce",
    "barrier",
    "bf16",
    "blocks",
    "cast",
    "communicator",
    "const",
    "consumer",
    "copy_engine",
    "cos",
    "cumsum",
    "dims",
    "e4m3",
    "e5m2",
    "erf",
    "exp",
    "exp2",
    "f16",
    "f32",
    "floor",
    "full",
    "gather",
    "i8",
    "i32",
    "inf",
    "inter_sm",
    "intra_sm",
    "kernel",
    "loader",
    "local_first",
    "local_last",
    "log",
    "log2",
    "natural",
    "none",
    "one_shot",
    "positions",
    "push",
    "rank",
    "ranks",
    "reduce",
    "ring",
    "role",
    "rowmax",
    "rowmin",
    "rowsum",
    "rsqrt",
    "schedule",
    "sigmoid",
    "signal",
    "signal_all",
    "sin",
    "sqrt",
    "start",
    "store",
    "store_add",
    "storer",
    "tanh",
    "tasks",
    "two_shot",
    "wait",
    "where",
    "zeros",
]
