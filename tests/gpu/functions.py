"""Every operation element by element on a GPU, on all kinds of numbers, against float64.

    python -m tests.gpu.functions                    # 4 million numbers each, in under a minute
    python -m tests.gpu.functions --only exp,log2
    python -m tests.gpu.functions --only exp --all   # all floats: a quarter of an hour for each function

Prints for each the largest error in units in the last place, and where; and up to five results that the language does
not allow. Numbers are the special ones (zeros, infinities, NaN, where something overflows), numbers near 1, and random
bits.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

import numpy as np
from xdsl.ir import Attribute, Operation

from pkc.dialect.declaration import OPERATIONS
from pkc.dialect.elementwise import Unary
from pkc.dialect.types import dtype_name, f32
from pkc.driver.builder import artifact_for
from pkc.driver.hardware import Call
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.runtime.mesh import Mesh
from tests.functions import CASES, Array, inputs_of, judged, program
from tests.gpu import present

DIMS = {"M": 2048, "N": 1024}
ROUNDS = 2
PATIENCE = 20.0


def check(mesh: Mesh, op: type[Operation], element: Attribute, rounds: Iterator[list[Array]]) -> bool:
    """Run one operation on sets of inputs and print the errors. True if all results are right."""
    artifact = artifact_for(parse_text(Source("function.pk", program(op, element))), dims=DIMS, ranks=1)
    ulps, at, bad, call = 0.0, "", list[str](), None
    for inputs in rounds:
        whole = {name: values.reshape(1, DIMS["M"], DIMS["N"]) for name, values in zip("XW", inputs, strict=False)}
        call = call or Call(artifact, mesh, DIMS, whole)
        call.fill(whole)
        call.launch()
        mesh.synchronize(PATIENCE)
        found = call.outputs()["Y"].reshape(-1)
        verdict = judged(op, inputs, found)
        if verdict.ulps > ulps:
            ulps, at = verdict.ulps, f" at {_shown(inputs, verdict.worst)}"
        bad += [f"{_shown(inputs, int(i))} gives {found[i]!r}" for i in verdict.wrong[: 5 - len(bad)]]
    if call is not None:
        call.free()
    name = f"{op.name} {dtype_name(element)}"
    print(f"{name:20} {'WRONG: ' + '; '.join(bad) if bad else 'right'}, error {ulps:.2f} ulp{at}", flush=True)
    return not bad


def _shown(inputs: Sequence[Array], place: int) -> str:
    return ", ".join(repr(values[place]) for values in inputs)


def _some(op: type[Operation], element: Attribute) -> Iterator[list[Array]]:
    for seed in range(ROUNDS):
        yield inputs_of(op, element, seed, DIMS["M"] * DIMS["N"])


def _all() -> Iterator[list[Array]]:
    count = DIMS["M"] * DIMS["N"]
    for first in range(0, 2**32, count):
        yield [np.arange(first, first + count, dtype=np.uint32).view(np.float32)]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="WORD,WORD", help="operations by their words in the language")
    parser.add_argument("--all", action="store_true", help="functions of one f32 on every float")
    given = parser.parse_args(arguments)
    wanted = given.only.split(",") if given.only else [one.word for one in OPERATIONS.values()]
    mesh, right = Mesh.single_process(range(present.gpus(1))), True
    for op, element in CASES:
        if OPERATIONS[op].word in wanted:
            every = given.all and issubclass(op, Unary) and element == f32
            right &= check(mesh, op, element, _all() if every else _some(op, element))
    mesh.close()
    return int(not right)


if __name__ == "__main__":
    sys.exit(main())
