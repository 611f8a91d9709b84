"""What guarded waits cost, and what they say of a rank that is missing.

    python -m tests.gpu.guard --ranks 2                              # cost: each family with and without
    torchrun --nproc-per-node 2 -m tests.gpu.guard --fault late      # faults: late, other; killed ends torchrun
    python -m tests.gpu.guard --ranks 2 --fault signal               # a kernel without one of its signals

A cost is the median over rounds of the time of launches in a row with guards over that without, taken in turns.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial

from pkc.codegen.artifact import Artifact
from pkc.codegen.build import build
from pkc.diagnostics import PkcError
from pkc.dialect.counters import SignalOp
from pkc.driver.builder import artifact_for
from pkc.driver.compiler import load, load_program
from pkc.driver.hardware import Call
from pkc.passes import machine_pipeline
from pkc.passes.run import run_pipeline
from pkc.runtime.launch import LoadedKernel
from pkc.runtime.mesh import Mesh
from pkc.sim.draw import draw_inputs
from tests.examples.test_examples import EXAMPLES

COST: Mapping[str, tuple[dict[str, int], dict[str, int]]] = {
    "gemm_rs": ({"M": 8192, "N": 4096, "K": 2048}, {}),
    "ag_gemm": ({"M": 8192, "N": 2048, "K": 4096}, {}),
    "gemm_ar": ({"M": 4096, "N": 4096, "K": 2048}, {}),
    "all_reduce": ({"M": 4096, "N": 4096}, {}),
    "ring_attention": ({"B": 1, "H": 8, "S": 8192}, {"D": 128}),
    "ulysses_attention": ({"B": 1, "H": 8, "S": 8192}, {"D": 128}),
}
"""Sizes and constants of the examples that are timed; kernels of one GPU have no counters, so nothing to guard."""

LAUNCHES, ROUNDS = 20, 15
LIMIT = 1.0
FAULT = {"M": 1024, "N": 512, "K": 128}

say = partial(print, flush=True)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--only", help="one family")
    parser.add_argument("--build", action="store_true", help="compile alone, into the cache")
    parser.add_argument("--fault", choices=["signal", "late", "killed", "other"])
    given = parser.parse_args(arguments)
    if given.build:
        for name, (dims, constants) in COST.items():
            for guard in (False, True) if given.only in (None, name) else ():
                _artifact(name, dims, constants, given.ranks, guard)
        return 0
    if given.fault == "signal":
        return _without_a_signal(Mesh.single_process(range(given.ranks)))
    if given.fault:
        return _fault(Mesh.from_torchrun(), given.fault)
    mesh = Mesh.single_process(range(given.ranks))
    for name, (dims, constants) in COST.items():
        if given.only in (None, name):
            _cost(mesh, name, dims, constants)
    return 0


def _artifact(name: str, dims: Mapping[str, int], constants: Mapping[str, int], ranks: int, guard: bool) -> Artifact:
    instruments = ["guard"] if guard else []
    program = load_program(EXAMPLES / f"{name}.pk")
    return artifact_for(program, dims=dims, ranks=ranks, constants=constants, instruments=instruments)


def _cost(mesh: Mesh, name: str, dims: Mapping[str, int], constants: Mapping[str, int]) -> None:
    compiled = load(EXAMPLES / f"{name}.pk", constants=constants)
    small = draw_inputs(compiled.module, ranks=mesh.ranks, dims=dims, seed=1)
    calls = [Call(_artifact(name, dims, constants, mesh.ranks, guard), mesh, dims, small) for guard in (False, True)]
    ratios: list[float] = []
    plain: list[float] = []
    for number in range(ROUNDS + 2):
        taken = [0.0, 0.0]
        for which in (0, 1) if number % 2 else (1, 0):
            mesh.synchronize()
            began = time.perf_counter()
            for _ in range(LAUNCHES):
                calls[which].launch()
            mesh.synchronize()
            taken[which] = time.perf_counter() - began
        if number >= 2:
            ratios.append(taken[1] / taken[0])
            plain.append(taken[0] / LAUNCHES)
    low, high = sorted(ratios)[len(ratios) // 4], sorted(ratios)[-len(ratios) // 4]
    cost = 100 * (statistics.median(ratios) - 1)
    say(
        f"{name:20} {1e6 * statistics.median(plain):8.1f} us, guards {cost:+.2f} %"
        f" ({100 * (low - 1):+.2f} to {100 * (high - 1):+.2f})"
    )
    for call in calls:
        call.free()


def _without_a_signal(mesh: Mesh) -> int:
    module = load(EXAMPLES / "gemm_rs.pk", level="roles").module
    for op in [op for op in module.walk() if isinstance(op, SignalOp)]:
        op.detach()
        op.erase()
    run_pipeline(module, machine_pipeline(["guard"]), verify_each=False)
    tile = load(EXAMPLES / "gemm_rs.pk").module
    inputs = draw_inputs(tile, ranks=mesh.ranks, dims=FAULT, seed=1)
    call = Call(build(module), mesh, FAULT, inputs, wait_limit=LIMIT)
    call.launch()
    found = _reported(mesh)
    whole = Call(_artifact("gemm_rs", FAULT, {}, mesh.ranks, guard=True), mesh, FAULT, inputs, wait_limit=LIMIT)
    for _ in range(3):
        whole.launch()
    mesh.synchronize()
    say("and the GPUs run on")
    return 0 if found else 1


def _fault(mesh: Mesh, fault: str) -> int:
    """Rank 1 does not launch, is killed, or launches another kernel; rank 0 launches once more than it."""
    rank = mesh.local[0].rank
    kernel, other = (
        LoadedKernel(_artifact(name, dims, {}, mesh.ranks, guard=True), mesh, wait_limit=LIMIT)
        for name, dims in (("gemm_rs", FAULT), ("all_reduce", {"M": 1024, "N": 512}))
    )
    a, b = mesh.empty((FAULT["M"], FAULT["K"]), "bf16"), mesh.empty((FAULT["K"], FAULT["N"]), "bf16")
    c = mesh.empty((FAULT["M"], FAULT["N"]), "bf16", "shard", 0)
    x, y = mesh.empty((1024, 512), "bf16"), mesh.empty((1024, 512), "bf16", "replicate")
    one, two = {"A": [a.local(rank)], "B": [b.local(rank)], "C": c}, {"X": [x.local(rank)], "Y": y}
    for _ in range(3):
        kernel(one)
        other(two)
    mesh.synchronize()
    say(f"rank {rank}: whole")
    if rank == 1 and fault == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == 1 and fault == "late":
        time.sleep(LIMIT + 4)
        os._exit(0)
    if rank == 1:
        other(two)
    else:
        time.sleep(0.2)
        kernel(one)
    found = _reported(mesh)
    os._exit(0 if found else 1)


def _reported(mesh: Mesh) -> bool:
    began = time.monotonic()
    try:
        mesh.synchronize(20)
    except PkcError as error:
        say(f"after {time.monotonic() - began:.2f} s, with a limit of {LIMIT} s:\n{error}\n")
        return error.diagnostics[0].code == "PK837"
    say("it ended, and should not have")
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
