"""Every example that pkc compiles for GPUs, on all kinds of meshes, against the float64 reference.

    python -m tests.gpu.examples --ranks 4 [--virtual] [--only gemm_rs] [--overlap inter_sm]

prints one line for each example and size; the exit status is that of a test.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial

from pkc.builder import artifact_for
from pkc.compiler import compile_program, load_program
from pkc.diagnostics import PkcError
from pkc.hardware import run_on_gpus
from pkc.runtime.mesh import Mesh
from pkc.sim.draw import draw_inputs
from pkc.sim.program import Program
from pkc.sim.reference import compare, reference
from tests.examples.test_examples import CASES, EXAMPLES

_ANY_SIZE = frozenset("BEHMST")
"""Dimensions that are innermost in no array."""

say = partial(print, flush=True)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, help="all GPUs, if it is not given")
    parser.add_argument("--virtual", action="store_true", help="all ranks on one GPU")
    parser.add_argument("--only", default="")
    parser.add_argument("--overlap", default="")
    given = parser.parse_args(arguments)
    if given.virtual:
        mesh = Mesh.virtual(given.ranks or 2)
    else:
        mesh = Mesh.single_process(range(given.ranks) if given.ranks else None)
    names = [name for name in CASES if name == given.only or not given.only]
    failed = [name for name in names if not _check(mesh, name, given.overlap)]
    return int(bool(failed))


def _check(mesh: Mesh, name: str, overlap: str) -> bool:
    """Compile an example and run it at a divisible and a ragged size, once and five times in a row."""
    example, _, causal = name.partition(" ")
    schedule = {"overlap": overlap} if overlap else {}
    path = next(path for path in EXAMPLES.iterdir() if path.stem == example)
    constants = {"causal": True} if causal else {}
    program = load_program(path)
    compiled = compile_program(program, constants=constants)
    right = True
    for which in ("divisible", "ragged"):
        sizes = getattr(CASES[name], which)(mesh.ranks)
        used = {dim for arg in compiled.kernel.body.block.args for dim in getattr(arg.type, "dimensions", ())}
        # Rows are multiples of 16 bytes, as TMA has them; along M and S sizes stay ragged.
        dims = {dim: size if dim in _ANY_SIZE else -(-size // 8) * 8 for dim, size in sizes.items() if dim in used}
        try:
            artifact = artifact_for(program, dims=dims, ranks=mesh.ranks, constants=constants, schedule=schedule)
        except PkcError as error:
            say(f"{name:28} does not compile: {str(error).splitlines()[0]}")
            return False
        for launches in (1, 5):
            right &= _compare(mesh, name, which, compiled, artifact, dims, launches)
    return right


def _compare(mesh, name, which, compiled, artifact, dims, launches) -> bool:
    module = compiled.module
    try:
        inputs = draw_inputs(module, ranks=mesh.ranks, dims=dims, seed=launches)
        outputs = run_on_gpus(artifact, mesh, dims, inputs, launches=launches)
    except PkcError as error:
        say(f"{name:28} {which:10} {launches} launches  {str(error).splitlines()[0]}")
        return False
    expected = reference(module, ranks=mesh.ranks, dims=dims, inputs=inputs)
    found = compare({array: outputs[array] for array in Program(compiled.kernel).outputs}, expected)
    bad = [f"{item.array}: {item.problem}" for item in found if not item.ok]
    worst = max(item.worst_ratio for item in found)
    say(f"{name:28} {which:10} {launches} launches  error/bound {worst:.3f}  {'; '.join(bad) or 'ok'}")
    return not bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
