"""The sizes that kernels are run at on GPUs, by the number of ranks.

M is any number from 1 up; N and K are lengths of rows of arrays, multiples of 16 bytes if not said otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tests import routed as tables
from tests.drawn import Drawn

Dims = dict[str, int]
Sizes = Callable[[int], Sequence[Dims]]
"""The sizes to run on a number of ranks; the last one is launched many times."""

ALIGNED = {"B": 3, "H": 136, "M": 136, "N": 264, "K": 136, "S": 72, "V": 264}
UNEVEN = {"B": 3, "H": 131, "M": 131, "N": 259, "K": 133, "S": 71, "V": 261}
LARGE = {"B": 5, "H": 512, "M": 512, "N": 1024, "K": 512, "S": 512, "V": 1024}

SEVERAL = tuple({"M": 2200, "N": 2312, "K": k} for k in (40, 136, 520, 1032))
"""Some CTAs have one tile of 128 x 256, others two, or some more of 128 x 128; with fewer blocks of 64 than half of a
tile has pieces, with as many and with more."""

CAPACITY = 128
"""The most rows of an expert; more than `draw_inputs` gives."""


def matrices(step: int = 8) -> Sizes:
    def sizes(ranks: int) -> Sequence[Dims]:
        found = [
            (1, step, step),
            (7, 264, 3 * step),
            (16, step, 64),
            (127, 256, 72),
            (129, 264, 136),
            (128 * ranks, 512, 256),
            (61 * ranks + 5, 520, 200),
        ]
        return [{"M": m, "N": up(n, step), "K": up(k, step)} for m, n, k in found]

    return sizes


def scaled(ranks: int) -> Sequence[Dims]:
    """Matrices whose scales are for blocks of 128; some SMs have several tiles of the last ones."""
    found = [(1, 16, 128), (300, 264, 400), (2100, 2080, 640)]
    return [{"M": m, "N": n, "K": k, "G": -(-k // 128), "H": -(-n // 128)} for m, n, k in found]


def few(of: Sizes) -> Sizes:
    """The smallest, one around a block, the last one."""
    return lambda ranks: [of(ranks)[0], of(ranks)[4], of(ranks)[-1]]


def up(size: int, step: int) -> int:
    return -(-size // step) * step


def transposed(of: Sizes, step: int = 8) -> Sizes:
    """M is the length of rows of A."""
    return lambda ranks: [dims | {"M": up(dims["M"], step)} for dims in of(ranks)]


def images(ranks: int) -> Sequence[Dims]:
    """Pixels of whole images of 8 x 8, filters, channels."""
    found = [(64, 8, 1, 1, 8), (192, 72, 3, 3, 136), (640, 128, 5, 3, 264)]
    return [{"P": pixels, "C": c, "R": r, "S": s, "N": n} for pixels, c, r, s, n in found]


def collective(ranks: int) -> Sequence[Dims]:
    found = [(1, 8), (7, 264), (16, 24), (128, 256), (129, 264), (128 * ranks, 512), (61 * ranks + 5, 520)]
    return [{"M": m, "N": n} for m, n in found]


def even_and_uneven(ranks: int) -> Sequence[Dims]:
    """Shards of whole blocks, of parts of them, of rows that do not suit TMA."""
    found = [(2 * ranks, 32 * ranks, 64 * ranks), (5, 13 * ranks + 1, 40), (3, 48 * ranks, 96 * ranks), (4, 35, 131)]
    return [{"A": a, "B": b, "C": c} for a, b, c in found]


def sequence(ranks: int) -> Sequence[Dims]:
    found = [(1, 1, 1), (1, 3, 7), (2, 1, 127), (1, ranks, 128 * ranks), (1, 2, 129), (2, 3, 53 * ranks + 2)]
    return [{"B": b, "H": h, "S": s} for b, h, s in found]


def rings(ranks: int) -> Sequence[Dims]:
    """Heads of Q in pairs."""
    return [{**dims, "G": dims["H"], "H": 2 * dims["H"]} for dims in sequence(ranks)]


def ring_pairs(group: int) -> Sizes:
    """Heads of Q by groups, as many keys as rows."""
    return lambda ranks: [
        {**dims, "H": group * dims["H"], "T": dims["S"]} | ({"G": dims["H"]} if group > 1 else {})
        for dims in sequence(ranks)
    ]


def halves(ranks: int) -> Sequence[Dims]:
    """Halves of shards of whole blocks of 64, of parts of them, of several."""
    return [{"B": 1, "H": 2, "S": s} for s in (128 * ranks, 70 * ranks + 3, 512 * ranks)]


def one_gpu(ranks: int) -> Sequence[Dims]:
    found = [(1, 1, 1, 1), (1, 3, 7, 130), (2, 1, 127, 64), (1, 2, 256, 256), (1, 2, 129, 1), (2, 3, 145, 203)]
    return [{"B": b, "H": h, "S": s, "T": t} for b, h, s, t in found]


def without_keys(ranks: int) -> Sequence[Dims]:
    """Those without keys."""
    return [{name: size for name, size in dims.items() if name != "T"} for dims in one_gpu(ranks)]


def groups(group: int) -> Sizes:
    """Heads of Q by groups, more and fewer rows than keys."""
    found = [(1, 1, 1, 1), (1, 2, 7, 130), (2, 1, 127, 64), (1, 2, 256, 256), (1, 1, 129, 1), (2, 2, 145, 403)]
    return lambda ranks: [{"B": b, "H": group * g, "G": g, "S": s, "T": t} for b, g, s, t in found]


def packed(group: int) -> Sizes:
    """Heads of K and V, rows and keys of all sequences, one more than sequences: empty, of one row, of many blocks."""
    found = [(1, 1, 1, 2), (2, 130, 257, 3), (1, 129, 64, 40), (3, 900, 1700, 9)]
    return lambda ranks: [{"H": group * g, "G": g, "S": s, "T": t, "N": n} for g, s, t, n in found]


def decoded(ranks: int) -> Sequence[Dims]:
    """Heads of K and V, rows for each, room for keys."""
    found = [(1, 1, 1), (5, 5, 301), (2 * ranks, 16, 1000), (3 * ranks + 1, 20, 2050)]
    return [{"H": h, "R": r, "T": t} for h, r, t in found]


def nested(ranks: int) -> Sequence[Dims]:
    return [{"E": 1, "M": 1, "N": 8}, {"E": 3, "M": 1000, "N": 264}]


def more_than_ctas(dims: Dims) -> Sizes:
    """More tasks than a GPU has SMs; not on every number of ranks, as it takes long."""
    return lambda ranks: [dims] if ranks in (1, 4) else []


def lists(names: Sequence[str]) -> Sizes:
    """Numbers of lists, the most rows that each of them has, and how long these are."""
    found = [(1, 1, 8, 8), (3, 63, 24, 40), (5, 129, 136, 72), (33, 200, 264, 136)]
    return lambda ranks: [dict(zip(names, size, strict=False)) for size in found]


def experts(ranks: int) -> Sequence[Dims]:
    """Tokens of all ranks, experts of each, the most tokens of an expert, lengths of rows."""
    found = [
        (1, 1, 1, 8, 8),
        (7 * ranks, 2, 130, 264, 72),
        (61 * ranks + 5, 3, 129, 72, 520),
        (128 * ranks, 4, 300, 256, 256),
        (40 * ranks + 3, 9, 77, 200, 264),
        (300 * ranks + 7, 2, 1100, 72, 264),  # lists that begin with rows of this rank
    ]
    return [{"T": t, "E": e, "P": p, "H": h, "N": n} for t, e, p, h, n in found]


def token_rows(ranks: int) -> Sequence[Dims]:
    """Tokens of all ranks and of one, experts of each, choices of a token, lengths of rows."""
    found = [(1, 1, 1, 1, 8, 8), (7 * ranks, 7, 2, 2, 264, 72), (61 * ranks + 5, 66, 3, 3, 72, 136)]
    found.append((128 * ranks, 128, 4, 8, 256, 256))
    names = "STEKHN"
    return [dict(zip(names, dims, strict=True)) | {"R": dims[2] * CAPACITY} for dims in found]


def returned(ranks: int) -> Sequence[Dims]:
    """The same, of what experts give back."""
    return [{dim: dims[dim] for dim in "RHKT"} for dims in token_rows(ranks)]


def combined(ranks: int) -> Sequence[Dims]:
    """The same, with rows of tables of a multiple of 16 bytes."""
    return [{"T": dims["T"], "E": dims["E"], "P": up(dims["P"], 4), "N": dims["N"]} for dims in experts(ranks)]


def summed(text: str) -> Sizes:
    """Entries of tables, rows that they name, their columns, ends of parts; those that a program has."""

    def sizes(ranks: int) -> Sequence[Dims]:
        found = (1, 2, 8, 2), (70, 61 * ranks + 5, 72, 4)
        return [_taken(text.lstrip(), dict(zip("MTNS", dims, strict=True))) for dims in found]

    return sizes


def routed(example: str) -> Sizes:
    """The sizes that go with tables at their limits."""
    return lambda ranks: [tables.dims(example, ranks)]


def grouped(ranks: int) -> Sequence[Dims]:
    """The same, of rows that are here."""
    return [{"E": dims["E"], "P": dims["P"], "K": dims["H"], "N": dims["N"]} for dims in experts(ranks)]


def of(text: str, *sizes: Dims) -> Sizes:
    """Sizes of the dimensions that a program has; M is of all ranks together."""
    found = [_taken(text, each) for each in sizes]
    return lambda ranks: [dims | ({"M": dims["M"] * ranks} if "M" in dims else {}) for dims in found]


def _taken(text: str, dims: Dims) -> dict[str, int]:
    head = text.partition(":\n")[0]
    return {dim: size for dim, size in dims.items() if re.search(rf"[\[ ]{dim}[,\]]", head)}


def uneven(ranks: int) -> Sequence[Dims]:
    """Rows that begin at no multiple of 16 bytes."""
    return [
        {"M": 1, "N": 1, "K": 1},
        {"M": 61 * ranks + 5, "N": 131, "K": 77},
        {"M": 128 * ranks, "N": 260, "K": 132},
    ]


def ragged(text: str, *, back: bool) -> Sizes:
    """A size for every dimension, each no multiple of 4; of tokens that come back, K choices of those of one rank."""

    def sizes(ranks: int) -> Sequence[Dims]:
        rows = 61 * ranks + 5
        tokens = {"S": rows, "T": 66, "K": 3} if back else {"T": rows, "K": 77}
        return [_taken(text, tokens | {"M": rows, "N": 131, "H": 77, "E": 3, "P": 129, "R": 3 * CAPACITY})]

    return sizes


def rows(ranks: int) -> Sequence[Dims]:
    return [{"M": dims["M"]} for dims in collective(ranks)]


def drawn(program: Drawn) -> Sizes:
    return lambda ranks: [program.dims(ranks, uneven=uneven) for uneven in (False, True)]
