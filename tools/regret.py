"""How much longer kernels take with the schedule that is chosen than with the best that was measured, at drawn shapes.

    python -m tools.regret --json FILE [--shapes 40] [--ranks 1] [--most 12] [--seed N] [--seconds S]

Shapes are drawn anew each time, by a seed that is kept with the figures. For each one the schedule that is chosen, that
of the program and those that are estimated best of the others are measured in turns (`pkc.driver.tune`). The regret is
the time of the chosen one over that of the best, less one.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pkc.driver.compiler import compile_program, load_program
from pkc.driver.tune import Clock, tune

EXAMPLES = Path(__file__).parents[1] / "examples"

FAMILIES = {1: ("gemm", "swiglu", "attention"), 2: ("gemm_rs", "ag_gemm", "gemm_ar")}
"""Examples on one rank, and on several."""


@dataclass(frozen=True)
class Shape:
    """An example, and its dimensions."""

    family: str
    dims: Mapping[str, int]


@dataclass(frozen=True)
class Regret:
    """What was measured at a shape, in microseconds."""

    shape: Shape
    chosen: Mapping[str, str]
    best: Mapping[str, str]
    chosen_us: float
    best_us: float

    @property
    def share(self) -> float:
        return self.chosen_us / self.best_us - 1


def drawn(seed: int, count: int, ranks: int) -> list[Shape]:
    """Shapes of a seed: logarithms of sizes are drawn evenly, and sizes are multiples of 8."""
    rng = random.Random(seed)

    def size(least: int, most: int) -> int:
        return round(least * (most / least) ** rng.random() / 8) * 8

    def one() -> Shape:
        family = rng.choice(FAMILIES[min(ranks, 2)])
        if family == "attention":
            length = size(512, 8192)
            return Shape(family, {"B": rng.choice((1, 2, 4)), "H": rng.choice((8, 16, 32)), "S": length, "T": length})
        return Shape(family, {"M": size(16, 8192), "N": size(256, 8192), "K": size(512, 8192)})

    return [one() for _ in range(count)]


def sweep(shapes: Iterable[Shape], clock_for: Callable[[Any, Shape], Clock], ranks: int, most: int) -> Iterator[Regret]:
    """Measure each shape; `clock_for` gives the clock for a compiled program at a shape."""
    for shape in shapes:
        program = load_program(EXAMPLES / f"{shape.family}.pk")
        clock = clock_for(compile_program(program), shape)
        found = [
            one
            for one in tune(program, clock, dims=shape.dims, ranks=ranks, most=most, rounds=3, keep=False)
            if one.measured is not None
        ]
        chosen = next(one for one in found if one.chosen)
        assert chosen.measured is not None and found[0].measured is not None
        times = chosen.measured / 1000, found[0].measured / 1000
        yield Regret(shape, dict(chosen.schedule), dict(found[0].schedule), *times)


def summary(found: Sequence[Regret]) -> str:
    """The mean and the worst, and a line for each shape, the worst first."""
    if not found:
        return "nothing was measured"
    shares = [one.share for one in found]
    worst = sorted(found, key=lambda one: -one.share)
    lines = [f"{len(found)} shapes: mean regret {statistics.mean(shares):.2%}, worst {max(shares):.2%}"]
    for one in worst:
        sizes = ", ".join(f"{dim}={size}" for dim, size in one.shape.dims.items())
        lines.append(f"{one.share:7.2%}  {one.chosen_us:8.1f} us  {one.shape.family} {sizes}  best: {dict(one.best)}")
    return "\n".join(lines)


def on_gpus(ranks: int) -> Callable[[Any, Shape], Clock]:
    """Clocks of the GPUs of this machine; the arrays of a shape are freed when the next one begins."""
    from pkc.driver.hardware import clock_of
    from pkc.runtime.mesh import Mesh
    from pkc.sim.draw import draw_inputs

    meshes: list[Mesh] = []

    def clock_for(compiled: Any, shape: Shape) -> Clock:
        while meshes:
            meshes.pop().close()
        meshes.append(Mesh.single_process(range(ranks)))
        return clock_of(meshes[0], shape.dims, draw_inputs(compiled.module, ranks=ranks, dims=dict(shape.dims), seed=0))

    return clock_for


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--shapes", type=int, default=40)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--most", type=int, default=12)
    parser.add_argument("--seed", type=int, default=time.time_ns() // 10**9)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no shape begins after so long")
    options = parser.parse_args()
    end, found = time.monotonic() + options.seconds, list[Regret]()
    for one in sweep(
        drawn(options.seed, options.shapes, options.ranks), on_gpus(options.ranks), options.ranks, options.most
    ):
        found.append(one)
        kept = {"seed": options.seed, "ranks": options.ranks, "most": options.most, "shapes": list(map(asdict, found))}
        options.json.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        if time.monotonic() > end:
            break
    print(summary(found))


if __name__ == "__main__":
    main()
