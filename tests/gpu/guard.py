"""What guards cost: each family of kernels with and without them, launches in a row in turns.

    python -m tests.gpu.guard --ranks 2

A cost is the median over rounds of the time with guards over that without.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial

from pkc.codegen.artifact import Artifact
from pkc.driver.builder import artifact_for
from pkc.driver.compiler import load, load_program
from pkc.driver.hardware import Call
from pkc.runtime.mesh import Mesh
from pkc.sim.draw import draw_inputs
from tests.examples.test_examples import EXAMPLES
from tests.gpu import present

COST: Mapping[str, tuple[dict[str, int], dict[str, int]]] = {
    "gemm_rs": ({"M": 8192, "N": 4096, "K": 2048}, {}),
    "ag_gemm": ({"M": 8192, "N": 2048, "K": 4096}, {}),
    "gemm_ar": ({"M": 4096, "N": 4096, "K": 2048}, {}),
    "all_reduce": ({"M": 4096, "N": 4096}, {}),
    "all_gather": ({"M": 8192, "N": 4096}, {}),
    "reduce_scatter": ({"M": 8192, "N": 4096}, {}),
    "all_to_all": ({"M": 8192, "N": 4096}, {}),
    "mlp": ({"M": 4096, "N": 4096, "K": 4096, "P": 4096}, {}),
    "ring_attention": ({"B": 1, "H": 8, "S": 8192}, {"D": 128}),
    "ulysses_attention": ({"B": 1, "H": 8, "S": 8192}, {"D": 128}),
}
"""Sizes and constants of the examples that are timed; kernels without counters have nothing to guard."""

LAUNCHES, ROUNDS = 20, 15

say = partial(print, flush=True)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--only", choices=list(COST), help="one family")
    parser.add_argument("--build", action="store_true", help="compile alone, into the cache")
    given = parser.parse_args(arguments)
    chosen = {name: COST[name] for name in COST if given.only in (None, name)}
    if given.build:
        for name, (dims, constants) in chosen.items():
            for guard in (False, True):
                _artifact(name, dims, constants, given.ranks, guard=guard)
        return 0
    mesh = Mesh.single_process(range(present.gpus(given.ranks)))
    for name, (dims, constants) in chosen.items():
        _cost(mesh, name, dims, constants)
    return 0


def _artifact(name: str, dims: Mapping[str, int], constants: Mapping[str, int], ranks: int, *, guard: bool) -> Artifact:
    instruments = [] if guard else ["unguarded"]
    program = load_program(EXAMPLES / f"{name}.pk")
    return artifact_for(program, dims=dims, ranks=ranks, constants=constants, instruments=instruments)


def _cost(mesh: Mesh, name: str, dims: Mapping[str, int], constants: Mapping[str, int]) -> None:
    compiled = load(EXAMPLES / f"{name}.pk", constants=constants)
    small = draw_inputs(compiled.module, ranks=mesh.ranks, dims=dims, seed=1)
    artifacts = [_artifact(name, dims, constants, mesh.ranks, guard=guard) for guard in (False, True)]
    if artifacts[1].waits is None:
        say(f"{name:20} has no counters")
        return
    calls = [Call(artifact, mesh, dims, small) for artifact in artifacts]
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
