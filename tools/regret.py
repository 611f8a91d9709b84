"""How much longer kernels take with the schedule that is chosen than with the best that was measured, at drawn shapes.

    python -m tools.regret --json FILE [--shapes 40] [--ranks 1] [--most 10] [--seed N] [--jobs N] [--seconds S]
                           [--families NAME ...] [--go-on]
    python -m tools.regret --from FILE ...

Shapes are drawn anew each time, by a seed that is kept with the figures. For each one the schedule that is chosen, that
of the program, those that are estimated best of the others, and some of these with other stages and consumers, on
several ranks with SMs that only communicate, are compiled, by `jobs` processes, and measured in turns. The chosen one
and the fastest of the others are then measured again: the regret is the time of the chosen one over that of the best of
these, less one. All is measured one launch after the other, so that small arrays are in L2. Where arrays of integers
say how much there is to do, times are means over several contents: no schedule can depend on these.

The file is written after each shape. With `--go-on` the shapes are measured that a file lacks, as a limit of time has
cut them off: of its seed and ranks, with as many schedules. `--families` leaves out the shapes of others; those of a
seed stay the same.

With `--from`, which needs no GPU, files that were written so say what would be lost today: for each shape what is
chosen now, by the times that were measured then, of kernels as they were printed then. Where the schedule that is
chosen now was not measured, that with the least estimate counts of those that were.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from pkc.driver.autoschedule import autoschedule
from pkc.driver.compiler import compile_program, load_program
from pkc.driver.tune import Clock, Ready, measure, ready
from pkc.frontend import tree
from pkc.frontend.parse import parse_text
from pkc.location import Source
from tests.gpu import present
from tools.rows import KERNELS, text_of

EXAMPLES = Path(__file__).parents[1] / "examples"

ROWS = ("softmax", "rmsnorm", "logsumexp")
LONGEST = {"softmax": 32768, "rmsnorm": 16384, "logsumexp": 151936}
ELEMENTWISE = {
    "gelu": (
        "X: bf16[M, N], Y: bf16[M, N]",
        ("x = cast(X[m, n], f32)", "Y[m, n] = 0.5 * x * (1.0 + tanh(0.79788456 * (x + 0.044715 * x * x * x)))"),
    ),
    "add": ("X: bf16[M, N], Z: bf16[M, N], Y: bf16[M, N]", ("Y[m, n] = X[m, n] + Z[m, n]",)),
}

FAMILIES = {
    1: ("gemm", "gemm_fp8", "swiglu", "attention", "grouped_gemm", "rows", "elementwise"),
    2: ("gemm_rs", "ag_gemm", "gemm_ar"),
}
"""Examples on one rank, and on several; `rows` and `elementwise` are drawn from those above."""

VARIANTS = {
    1: ({"stages": "2"}, {"stages": "3"}, {"consumers": "1"}, {"consumers": "2"}, {"consumers": "3"}),
    2: (
        {"consumers": "1"},
        {"separate_loader": "true"},
        *({"overlap": "inter_sm", "comm_sms": str(count)} for count in (4, 8, 16)),
    ),
}
"""What is added to the chosen schedule and to the best of the others."""

CONTENTS = 12
"""How many contents of arrays of integers are drawn for a shape."""

FINALISTS, FIRST, LAST = 3, 3, 9
"""How many are measured again, and the rounds of both measurements."""


@dataclass(frozen=True)
class Shape:
    """A kernel, and its dimensions; `N` is a constant of kernels of rows."""

    family: str
    dims: Mapping[str, int]


@dataclass(frozen=True)
class Regret:
    """What was measured at a shape, in microseconds: `times` of all schedules, `chosen_us` and `best_us` once more."""

    shape: Shape
    chosen: Mapping[str, str]
    best: Mapping[str, str]
    chosen_us: float
    best_us: float
    times: Sequence[tuple[Mapping[str, str], float | None, float]] = ()
    """Schedule, estimate and median of the first rounds, the fastest first."""

    @property
    def share(self) -> float:
        return self.chosen_us / self.best_us - 1

    @property
    def group(self) -> str:
        return group_of(self.shape)


def group_of(shape: Shape) -> str:
    """The family of `FAMILIES` that a kernel is of."""
    if shape.family in ROWS:
        return "rows"
    return "elementwise" if shape.family in ELEMENTWISE else shape.family


def drawn(seed: int, count: int, ranks: int) -> list[Shape]:
    """Shapes of a seed, the families in turns: logarithms of sizes are drawn evenly, sizes are multiples of 8."""
    rng = random.Random(seed)
    families = FAMILIES[min(ranks, 2)]

    def size(least: int, most: int, step: int = 8) -> int:
        return round(least * (most / least) ** rng.random() / step) * step

    def one(family: str) -> Shape:
        if family == "attention":
            length = size(512, 8192)
            return Shape(family, {"B": rng.choice((1, 2, 4)), "H": rng.choice((8, 16, 32)), "S": length, "T": length})
        if family == "grouped_gemm":
            return Shape(
                family, {"E": rng.choice((4, 8, 16)), "P": size(64, 2048), "N": size(256, 4096), "K": size(512, 4096)}
            )
        if family == "rows":
            name = rng.choice(ROWS)
            length = size(128, LONGEST[name])
            return Shape(name, {"M": size(64, max(128, (1 << 28) // length)), "N": length})
        if family == "elementwise":
            return Shape(rng.choice(tuple(ELEMENTWISE)), {"M": size(16, 16384), "N": size(128, 16384)})
        return Shape(family, {"M": size(16, 8192), "N": size(256, 8192), "K": size(512, 8192, 16)})

    return [one(families[number % len(families)]) for number in range(count)]


def program_of(shape: Shape) -> tree.Program:
    """The program that is measured at a shape."""
    if shape.family in KERNELS:
        length = shape.dims["N"]
        return parse_text(Source(f"{shape.family}.pk", text_of(shape.family, length, max(1, 16384 // length))))
    if shape.family in ELEMENTWISE:
        parameters, lines = ELEMENTWISE[shape.family]
        head = f"kernel {shape.family}({parameters}):\n    for m, n in tasks(blocks(M, 64), blocks(N, 128)):\n"
        return parse_text(Source(f"{shape.family}.pk", head + "".join(f"        {line}\n" for line in lines)))
    return load_program(EXAMPLES / f"{shape.family}.pk")


def dims_of(shape: Shape) -> dict[str, int]:
    """The run-time dimensions of the program of a shape."""
    return {dim: size for dim, size in shape.dims.items() if dim != "N" or shape.family not in KERNELS}


def prepared(shape: Shape, ranks: int, most: int) -> list[Ready]:
    """The schedules of a shape, compiled."""
    variants = VARIANTS[min(ranks, 2)]
    return ready(program_of(shape), dims=dims_of(shape), ranks=ranks, most=most, variants=variants)


def measured(shape: Shape, found: Sequence[Ready], clock: Clock) -> Regret:
    """All schedules in turns, then the chosen one and the fastest others again."""
    running = {number: clock(one.artifact) for number, one in enumerate(found) if one.artifact is not None}
    chosen = next(number for number, one in enumerate(found) if one.chosen)
    first = measure(running, FIRST)
    order = sorted(first, key=lambda number: first[number])
    last = measure({number: running[number] for number in dict.fromkeys([*order[:FINALISTS], chosen])}, LAST)
    best = min(last, key=lambda number: last[number])
    times = [(dict(found[number].schedule), found[number].estimated, first[number]) for number in order]
    schedules = dict(found[chosen].schedule), dict(found[best].schedule)
    return Regret(shape, *schedules, last[chosen] / 1000, last[best] / 1000, times)


def sweep(shapes: Iterable[tuple[Shape, Sequence[Ready]]], clock_for: Callable[[Shape], Clock]) -> Iterator[Regret]:
    """Measure the schedules of each shape; `clock_for` gives the clock at a shape."""
    for shape, found in shapes:
        yield measured(shape, found, clock_for(shape))


def compiled(shapes: Sequence[Shape], ranks: int, most: int, jobs: int) -> Iterator[tuple[Shape, list[Ready]]]:
    """Shapes with their schedules, compiled by so many processes while others are measured."""
    with ProcessPoolExecutor(jobs) as pool:
        waiting = [(shape, pool.submit(prepared, shape, ranks, most)) for shape in shapes]
        try:
            for shape, found in waiting:
                yield shape, found.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def summary(found: Sequence[Regret]) -> str:
    """The mean and the worst, of each family too, and a line for each shape, the worst first."""
    if not found:
        return "nothing was measured"
    shares = [one.share for one in found]
    worst = sorted(found, key=lambda one: -one.share)
    lines = [f"{len(found)} shapes: mean regret {statistics.mean(shares):.2%}, worst {max(shares):.2%}"]
    for family in dict.fromkeys(one.group for one in found):
        several = [one.share for one in found if one.group == family]
        lines.append(f"{family}: mean {statistics.mean(several):.2%}, worst {max(several):.2%}")
    for one in worst:
        sizes = ", ".join(f"{dim}={size}" for dim, size in one.shape.dims.items())
        instead = f"  {dict(one.chosen)}, best: {dict(one.best)}" if one.share else ""
        lines.append(f"{one.share:7.2%}  {one.chosen_us:8.1f} us  {one.shape.family} {sizes}{instead}")
    return "\n".join(lines)


@dataclass(frozen=True)
class Kept:
    """What is chosen now at a shape of a file, and how much longer it took than the best of those that were measured;
    `instead` of it the best by estimates of those that were measured, if it was not."""

    shape: Shape
    chosen: Mapping[str, str]
    instead: Mapping[str, str] | None
    share: float

    @property
    def group(self) -> str:
        return group_of(self.shape)


def kept(path: Path) -> list[Kept]:
    """What is chosen now at the shapes of a file."""
    document = json.loads(path.read_text(encoding="utf-8"))
    return [rechosen(Shape(**one["shape"]), one["times"], document["ranks"]) for one in document["shapes"]]


def rechosen(shape: Shape, times: Sequence[tuple[Mapping[str, str], float | None, float]], ranks: int) -> Kept:
    """What is chosen now at a shape, where so much was measured."""
    took = {_settings(schedule): nanoseconds for schedule, _, nanoseconds in times}
    found = autoschedule(program_of(shape), dims=dims_of(shape), ranks=ranks, measured=False)
    chosen = now = _settings(found.schedule)
    if chosen not in took:
        estimates = {_settings(schedule): estimate.total for estimate, schedule in found.others if estimate.stages}
        if found.instead is not None:
            estimates[()] = found.instead.total
        now = min(took.keys() & estimates.keys(), key=lambda settings: estimates[settings])
    return Kept(shape, found.schedule, None if now == chosen else dict(now), took[now] / min(took.values()) - 1)


def _settings(schedule: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(schedule.items()))


def kept_table(files: Mapping[str, Sequence[Kept]]) -> str:
    """Mean and worst by family and file, in per cent, and the shapes whose chosen schedule was not measured."""
    families = list(dict.fromkeys(one.group for found in files.values() for one in found))
    lines = [" ".join(["mean / worst, %".ljust(18), *(name.rjust(24) for name in files)])]
    for family in (*families, "all"):
        several = ([one.share for one in found if family in ("all", one.group)] for found in files.values())
        cells = (f"{statistics.mean(each):.2%} / {max(each):.2%}" if each else "" for each in several)
        lines.append(" ".join([family.ljust(18), *(cell.rjust(24) for cell in cells)]))
    for name, one in ((name, one) for name, found in files.items() for one in found if one.instead is not None):
        what = f"{name}: {one.shape.family} {dict(one.shape.dims)}"
        lines.append(f"{what}: {dict(one.chosen)} was not measured, but {one.instead}: {one.share:.2%}")
    return "\n".join(lines)


def on_gpus(ranks: int) -> Callable[[Shape], Clock]:
    """Clocks of the GPUs of this machine; the arrays of a shape are freed when the next one begins."""
    from pkc.driver.hardware import clock_of
    from pkc.runtime.mesh import Mesh
    from pkc.sim.draw import draw_inputs

    meshes: list[Mesh] = []

    def clock_for(shape: Shape) -> Clock:
        while meshes:
            meshes.pop().close()
        meshes.append(Mesh.single_process(range(ranks)))
        module, dims = compile_program(program_of(shape)).module, dims_of(shape)
        drawn_for = partial(draw_inputs, module, ranks=ranks, dims=dims, period=1 << 20)
        inputs = drawn_for(seed=0)
        counts = [name for name, values in inputs.items() if getattr(values, "dtype", None) == np.int32]
        # A schedule serves all contents: times are means over several of what says how much there is to do.
        seeds = range(sum(dims.values()), sum(dims.values()) + CONTENTS * bool(counts))
        contents = [drawn_for(seed=seed, only=counts) for seed in seeds]
        return clock_of(meshes[0], dims, inputs, contents=contents)

    return clock_for


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--json", type=Path)
    what.add_argument("--from", type=Path, nargs="+", dest="files", metavar="FILE")
    parser.add_argument("--shapes", type=int, default=40)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--most", type=int, default=10)
    parser.add_argument("--seed", type=int, default=time.time_ns() // 10**9)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no shape begins after so long")
    parser.add_argument("--families", nargs="+", metavar="NAME", help="those of the kernels that are measured")
    parser.add_argument("--go-on", action="store_true", help="measure the shapes that are missing in the file")
    options = parser.parse_args(arguments)
    if options.files:
        print(kept_table({path.stem: kept(path) for path in options.files}))
        return
    run = Run(options.seed, options.ranks, options.most)
    if options.go_on:
        run = Run.read(options.json)
    present.gpus(run.ranks)
    end, shapes = time.monotonic() + options.seconds, run.missing(options.shapes, options.families)
    for one in sweep(compiled(shapes, run.ranks, run.most, options.jobs), on_gpus(run.ranks)):
        run.found.append(one)
        run.write(options.json)
        if time.monotonic() > end:
            break
    print(summary(run.found))


@dataclass
class Run:
    """What is measured of the shapes of a seed, with so many schedules of each at most."""

    seed: int
    ranks: int
    most: int
    found: list[Regret] = field(default_factory=list[Regret])

    @classmethod
    def read(cls, path: Path) -> Run:
        written = json.loads(path.read_text(encoding="utf-8"))
        found = [Regret(Shape(**one.pop("shape")), **one) for one in written.pop("shapes")]
        return cls(**written, found=found)

    def write(self, path: Path) -> None:
        """At once: who is cut off leaves what was written before."""
        written = {"seed": self.seed, "ranks": self.ranks, "most": self.most, "shapes": list(map(asdict, self.found))}
        beside = path.with_suffix(".part")
        beside.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
        beside.replace(path)

    def missing(self, count: int, families: Sequence[str] | None) -> list[Shape]:
        """The shapes of the seed, of some families or all, that are not measured yet."""
        done = [one.shape for one in self.found]
        shapes = (shape for shape in drawn(self.seed, count, self.ranks) if shape not in done)
        return [shape for shape in shapes if families is None or group_of(shape) in families]


if __name__ == "__main__":
    main()
