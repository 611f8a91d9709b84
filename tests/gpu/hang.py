"""Kernels with mistakes: one that hangs gives up, says who waits for what, and leaves the GPUs usable; one whose table
names a row that is none, or whose count is more than there is room for, says which, in a debug build.

    python -m tests.gpu.hang --ranks 4 [--virtual]

takes one signal out of gemm_rs: storers no longer say that a contribution has arrived, in a debug build and with guards
alone. Then the whole kernel runs with bounded waits and is right. Then moe_dispatch_gemm, with one row too many in the
table of the last rank, and with a count of it that is too large.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from functools import partial

from pkc.codegen.artifact import Artifact
from pkc.codegen.build import build
from pkc.diagnostics import PkcError
from pkc.dialect.counters import SignalOp
from pkc.driver.compiler import load
from pkc.driver.hardware import Call, run_on_gpus
from pkc.passes import machine_pipeline
from pkc.passes.run import run_pipeline
from pkc.runtime.mesh import Mesh
from pkc.semantics.errors import BoundOutOfRange, IndexOutOfRange
from pkc.sim.draw import draw_inputs
from pkc.sim.program import Program
from pkc.sim.reference import compare, reference
from tests.examples.test_examples import EXAMPLES
from tests.gpu import present

PATH, TABLES = EXAMPLES / "gemm_rs.pk", EXAMPLES / "moe_dispatch_gemm.pk"
DIMS = {"M": 1024, "N": 512, "K": 128}
WAIT_LIMIT = 1.0
PATIENCE = 20.0

say = partial(print, flush=True)


def mutant(instruments: Sequence[str] = ()) -> Artifact:
    """gemm_rs without the signals of arrived contributions."""
    module = load(PATH, level="roles").module
    signals = [op for op in module.walk() if isinstance(op, SignalOp)]
    assert signals
    for op in signals:
        op.detach()
        op.erase()
    run_pipeline(module, machine_pipeline(instruments), verify_each=False)
    return build(module)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, help="all GPUs, if it is not given")
    parser.add_argument("--virtual", action="store_true", help="all ranks on one GPU")
    given = parser.parse_args(arguments)
    present.gpus(1 if given.virtual else given.ranks)
    for instruments in (["debug"], []):
        mesh = _mesh(given)
        if not _hangs(mesh, instruments):
            return 1
        mesh.close()
    if not _runs(_mesh(given)):
        return 1
    return int(not _refuses(_mesh(given)))


def _mesh(given: argparse.Namespace) -> Mesh:
    if given.virtual:
        return Mesh.virtual(given.ranks or 2)
    return Mesh.single_process(range(given.ranks) if given.ranks else None)


def _hangs(mesh: Mesh, instruments: Sequence[str]) -> bool:
    compiled = load(PATH)
    inputs = draw_inputs(compiled.module, ranks=mesh.ranks, dims=DIMS, seed=1)
    call = Call(mutant(instruments), mesh, DIMS, inputs)
    mesh.alarm.limit = WAIT_LIMIT
    started = time.monotonic()
    call.launch()
    try:
        mesh.synchronize(PATIENCE)
    except PkcError as error:
        (finding,) = error.diagnostics
        say(f"gave up after {time.monotonic() - started:.2f} s\n{error}\n")
        ranks = all(f"rank {rank}, " in str(error) for rank in range(mesh.ranks))
        named = all(word in str(error) for word in ("`C.arrived`", "gemm_rs.pk:7", "CTA ", "task "))
        say(f"the report names signal, line, CTA and task: {named}, and every rank: {ranks}")
        return finding.code == "PK837" and named and ranks
    say("it ended, and should not have")
    return False


def _runs(mesh: Mesh) -> bool:
    compiled = load(PATH)
    inputs = draw_inputs(compiled.module, ranks=mesh.ranks, dims=DIMS, seed=2)
    artifact = build(load(PATH, level="machine", instruments=["debug"]).module)
    (outputs,) = run_on_gpus(artifact, mesh, DIMS, inputs, launches=3)
    expected = reference(compiled.module, ranks=mesh.ranks, dims=DIMS, inputs=inputs)
    found = compare({array: outputs[array] for array in Program(compiled.kernel).outputs}, expected)
    say(f"the whole kernel with bounded waits: {'ok' if all(item.ok for item in found) else 'WRONG'}")
    return all(item.ok for item in found)


def _refuses(mesh: Mesh) -> bool:
    dims = {"T": 200, "H": 128, "E": 3, "N": 256, "P": 140}
    artifact, last = build(load(TABLES, level="machine", instruments=["debug"]).module), mesh.ranks - 1
    for count, row, wanted in ((130, 200, (IndexOutOfRange, 200, "X")), (141, 3, (BoundOutOfRange, 141, "P"))):
        inputs = draw_inputs(load(TABLES).module, ranks=mesh.ranks, dims=dims, seed=1)
        inputs["count"][last, 1], inputs["rows"][last, 1, 3] = count, row
        Call(artifact, mesh, dims, inputs).launch()
        try:
            mesh.synchronize(PATIENCE)
        except PkcError as error:
            (finding,) = error.diagnostics
            say(f"{error}\n")
            found = getattr(finding, "index", getattr(finding, "bound", None)), getattr(finding, "rank", None)
            of = getattr(finding, "array", getattr(finding, "dim", None))
            if (type(finding), found[0], of, found[1]) == (*wanted, last):
                continue
        say(f"{wanted[1]} of `{wanted[2]}` was not found")
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
