"""Examples launched many times in a row: by a replayed graph, and with ranks that are late by random times.

python -m tests.gpu.stress --ranks 4 [--virtual] [--only gemm_rs] [--overlap copy_engine]
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from functools import partial

from pkc.builder import artifact_for
from pkc.compiler import compile_program, load_program
from pkc.hardware import Call
from pkc.runtime.mesh import Mesh
from pkc.sim.draw import draw_inputs
from pkc.sim.program import Program
from pkc.sim.reference import compare, reference
from tests.examples.test_examples import EXAMPLES

REPLAYS = 1000
LAUNCHES = 300
SIZES = {
    "gemm_rs": {"M": 1000, "N": 520, "K": 200},
    "ag_gemm": {"M": 1000, "N": 520, "K": 200},
    "gemm_ar": {"M": 1000, "N": 520, "K": 200},
    "ring_attention": {"B": 1, "H": 2, "S": 1000},
}

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
    names = [name for name in SIZES if name == given.only or not given.only]
    return int(not all([_check(mesh, name, given.overlap) for name in names]))  # noqa: C419


def _check(mesh: Mesh, name: str, overlap: str) -> bool:
    path, schedule = EXAMPLES / f"{name}.pk", {"overlap": overlap} if overlap else {}
    program, dims = load_program(path), SIZES[name]
    compiled = compile_program(program)
    inputs = draw_inputs(compiled.module, ranks=mesh.ranks, dims=dims, seed=7)
    expected = reference(compiled.module, ranks=mesh.ranks, dims=dims, inputs=inputs)
    call = Call(artifact_for(program, schedule=schedule, dims=dims, ranks=mesh.ranks), mesh, dims, inputs)
    call.launch()
    mesh.synchronize(20)
    right = True
    for what, run in (("graph replays", _replay), ("launches with late ranks", _late)):
        call.fill(inputs)
        count = run(mesh, call)
        outputs = call.outputs()
        found = compare({array: outputs[array] for array in Program(compiled.kernel).outputs}, expected)
        say(f"{name:16} {count} {what}: {'ok' if all(item.ok for item in found) else 'WRONG'}")
        right &= all(item.ok for item in found)
    call.free()
    return right


def _replay(mesh: Mesh, call: Call) -> int:
    driver, first = mesh.driver, mesh.local[0]
    with mesh.current(first):
        stream = int(driver.cuStreamCreate(int(driver.api.CUstream_flags.CU_STREAM_NON_BLOCKING)))
        driver.cuStreamBeginCapture(stream, driver.api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        call.launch(stream)
        captured = driver.cuGraphInstantiate(driver.cuStreamEndCapture(stream), 0)
        for _ in range(REPLAYS):
            driver.cuGraphLaunch(captured, stream)
    mesh.synchronize(60, stream)
    return REPLAYS


def _late(mesh: Mesh, call: Call) -> int:
    """Each rank is held up by copies of random length, so that ranks are up to several launches apart in time."""
    lots = mesh.empty((1 << 26,), "i32", "symmetric")
    chance = random.Random(11)
    for _ in range(LAUNCHES):
        for rank in mesh.local:
            size = chance.choice((0, 0, 1, 16, 64, 255)) << 20
            with mesh.current(rank):
                if size:
                    mesh.driver.cuMemsetD8Async(mesh.heap.address(rank.rank, lots.offset), 0, size, rank.stream)
        call.launch()
    mesh.synchronize(60)
    lots.free()
    return LAUNCHES


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
