"""What guards cost: each family of kernels with and without them, launches in a row in turns.

    python -m tests.gpu.guard --ranks 2
    python -m tests.gpu.guard --ranks 2 --virtual            # on one GPU

A cost is the median over rounds of the time with guards over that without. Both have the same arrays.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pkc.codegen.artifact import Artifact
from pkc.driver.builder import artifact_for
from pkc.driver.compiler import load, load_program
from pkc.driver.hardware import Call
from pkc.runtime.mesh import Mesh
from pkc.sim.draw import draw_inputs
from tests.examples.test_examples import EXAMPLES
from tests.gpu import present


@dataclass(frozen=True)
class Timed:
    """An example that is timed, at these sizes."""

    dims: Mapping[str, int]
    constants: Mapping[str, int] = field(default_factory=dict[str, int])
    schedule: Mapping[str, str] = field(default_factory=dict[str, str])


_PACKETS = {"packets": "true"}

COST: Mapping[str, Timed] = {
    "gemm_rs": Timed({"M": 8192, "N": 4096, "K": 2048}),
    "ag_gemm": Timed({"M": 8192, "N": 2048, "K": 4096}),
    "gemm_ar": Timed({"M": 4096, "N": 4096, "K": 2048}),
    "all_reduce": Timed({"M": 4096, "N": 4096}),
    "all_gather": Timed({"M": 8192, "N": 4096}),
    "reduce_scatter": Timed({"M": 8192, "N": 4096}),
    "all_to_all": Timed({"M": 8192, "N": 4096}),
    "mlp": Timed({"M": 4096, "N": 4096, "K": 4096, "P": 4096}),
    "ring_attention": Timed({"B": 1, "H": 8, "S": 8192}, {"D": 128}),
    "ulysses_attention": Timed({"B": 1, "H": 8, "S": 8192}, {"D": 128}),
    "decode_attention": Timed({"H": 8, "R": 16, "T": 16384}),
    "moe_dispatch_gemm": Timed({"T": 4096, "E": 4, "P": 1024, "H": 2048, "N": 1024}),
    "moe_mlp": Timed({"S": 2048, "T": 1024, "E": 4, "K": 2, "H": 1024, "N": 1024, "R": 4096}),
    "all_reduce packets": Timed({"M": 128, "N": 4096}, {}, _PACKETS | {"all_reduce": "one_shot"}),
    "all_gather packets": Timed({"M": 128, "N": 4096}, {}, _PACKETS),
    "reduce_scatter packets": Timed({"M": 128, "N": 4096}, {}, _PACKETS),
    "gemm_rs packets": Timed({"M": 128, "N": 4096, "K": 2048}, {}, _PACKETS),
}
"""What is timed, by the example's name and what else; kernels without counters have nothing to guard."""

ROUNDS, LAUNCHES = 15, 20
SECONDS = 0.01
"""What a round takes at least: it has more launches of short kernels, whose times vary by more."""

say = partial(print, flush=True)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--virtual", action="store_true", help="all ranks on one GPU")
    parser.add_argument("--only", choices=list(COST), help="one family")
    parser.add_argument("--build", action="store_true", help="compile alone, into the cache")
    given = parser.parse_args(arguments)
    if not given.build:
        present.gpus(1 if given.virtual else given.ranks)
    chosen = [name for name in COST if given.only in (None, name)]
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        made = list(pool.map(_made, chosen, [given.ranks] * len(chosen)))
    if given.build:
        return 0
    mesh = Mesh.virtual(given.ranks) if given.virtual else Mesh.single_process(range(given.ranks))
    for name, (artifacts, inputs) in zip(chosen, made, strict=True):
        _cost(mesh, name, artifacts, inputs)
    return 0


def _made(name: str, ranks: int) -> tuple[Sequence[Artifact], Mapping[str, Any]]:
    """Machine code without guards and with them, and inputs."""
    timed, path = COST[name], EXAMPLES / f"{name.split()[0]}.pk"
    compiled = load(path, constants=timed.constants, schedule=timed.schedule)
    make = partial(artifact_for, dims=timed.dims, ranks=ranks, constants=timed.constants, schedule=timed.schedule)
    artifacts = [make(load_program(path), instruments=instruments) for instruments in (["unguarded"], [])]
    return artifacts, draw_inputs(compiled.module, ranks=ranks, dims=timed.dims, seed=1)


def _cost(mesh: Mesh, name: str, artifacts: Sequence[Artifact], inputs: Mapping[str, Any]) -> None:
    dims = COST[name].dims
    if artifacts[1].waits is None:
        say(f"{name:22} has no counters")
        return
    call = Call(artifacts[0], mesh, dims, inputs)
    kernels = [call.launch, call.launching(artifacts[1])]
    for launch in kernels:
        _seconds(mesh, launch, LAUNCHES)  # loads and warms up
    launches = max(LAUNCHES, math.ceil(SECONDS * LAUNCHES / _seconds(mesh, call.launch, LAUNCHES)))
    ratios: list[float] = []
    plain: list[float] = []
    for number in range(ROUNDS):
        taken = [0.0, 0.0]
        for which in (0, 1) if number % 2 else (1, 0):
            taken[which] = _seconds(mesh, kernels[which], launches)
        ratios.append(taken[1] / taken[0])
        plain.append(taken[0] / launches)
    low, high = sorted(ratios)[len(ratios) // 4], sorted(ratios)[-len(ratios) // 4]
    cost = 100 * (statistics.median(ratios) - 1)
    say(
        f"{name:22} {launches:4} launches of {1e6 * statistics.median(plain):7.1f} us, guards {cost:+.2f} %"
        f" ({100 * (low - 1):+.2f} to {100 * (high - 1):+.2f})"
    )
    call.free()


def _seconds(mesh: Mesh, launch: Callable[[], None], launches: int) -> float:
    """What so many launches in a row take."""
    mesh.synchronize()
    began = time.perf_counter()
    for _ in range(launches):
        launch()
    mesh.synchronize()
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
