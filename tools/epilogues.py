"""What is computed beside matmuls costs how much? `python -m tools.epilogues [GROUP ...] [--json FILE]`, on GPUs.

Each group has a plain kernel and others that do more with its result, all at 8192 with the schedule that is chosen for
them. They take turns, a batch of launches each, in one process for each group. At the limit of power a kernel is as
fast as those before it leave the clock; so the order is drawn for each round, and each batch is between two of the
plain kernel. A share is the time of these, for as many FLOPs, over that of the other, the median of rounds; the exit
status is 1 if a share is below its bar.
Groups whose names begin with `rs` or `ag` run on all GPUs of this machine, at most four, the others on one.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from pkc.codegen.artifact import ArrayParameter, Scalar
from pkc.dialect.types import RANKS
from pkc.driver.builder import artifact_for
from pkc.driver.compiler import load_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.runtime.launch import LoadedKernel
from pkc.runtime.mesh import Mesh
from pkc.runtime.torch import tensor
from tests.gpu import present
from tests.tiles import EPILOGUES, OVER_RANKS
from tools.launches import batch

EXAMPLES = Path(__file__).parents[1] / "examples"
SIZE, MOST_RANKS = 8192, 4
ROUNDS, LAUNCHES = 15, 4
LIMIT = 90
"""Seconds for the process of a group."""

Times: TypeAlias = dict[str, list[tuple[float, float]]]
"""Milliseconds of each kernel and, beside it, of the plain one, for each round."""


@dataclass(frozen=True)
class Group:
    """`plain` and `others` are names of programs, some with a schedule; these have `work` times the FLOPs of the plain
    one."""

    plain: str
    others: tuple[str, ...]
    bar: float = 0.97
    work: dict[str, int] = field(default_factory=dict[str, int])


GROUPS: dict[str, Group] = {
    "gemm": Group(
        "gemm",
        (
            "gemm_bias",
            "gemm_gelu",
            "gemm_bias_gelu_tanh",
            "gemm_silu",
            "gemm_scale_both",
            "gemm_residual",
            "gemm_residual_f32",
            "gemm_bias_residual_gelu",
            "swiglu",
        ),
        work={"swiglu": 2},
    ),
    "fp8": Group("gemm_fp8", ("gemm_fp8_blocks", "gemm_fp8_blocks tile_M=256", "gemm_fp8_blocks tile_M=128"), bar=0.92),
    "rs": Group("gemm_rs", ("rs_bias_before", "rs_bias_after", "rs_residual_after", "rs_gelu_after")),
    "ag": Group("ag_gemm", ("ag_bias_gelu", "ag_residual", "ag_scale_row", "ag_swiglu"), work={"ag_swiglu": 2}),
}


def run_here(name: str) -> None:
    """Print the milliseconds of each kernel of a group, and of the plain one beside it, one for each round, as JSON."""
    import torch

    group, devices = GROUPS[name], list(range(torch.cuda.device_count()))
    mesh = Mesh.single_process(devices[: MOST_RANKS if name.startswith(("rs", "ag")) else 1])
    plain, calls = _call(group.plain, mesh), {each: _call(each, mesh) for each in group.others}
    times: Times = {each: [] for each in calls}
    order = random.Random(ROUNDS)
    for number in range(ROUNDS + 1):
        for each in order.sample(group.others, len(calls)):
            before, taken, after = (
                batch(call, launches, _streams(mesh))
                for call, launches in ((plain, LAUNCHES), (calls[each], 2 * LAUNCHES), (plain, LAUNCHES))
            )
            if number:  # the first round allocates and warms up
                times[each].append((round(taken, 5), round((before + after) / 2, 5)))
    print(json.dumps(times), flush=True)
    os._exit(0)  # what a driver frees at the end takes longer than the measurement


def _call(name: str, mesh: Mesh) -> Callable[[], None]:
    texts = EPILOGUES | OVER_RANKS
    name, _, schedule = name.partition(" ")
    path = EXAMPLES / f"{name}.pk"
    program = parse_text(Source(f"{name}.pk", texts[name])) if name in texts else load_program(path)
    dims = {"M": SIZE, "N": SIZE, "K": SIZE, "G": SIZE // 128, "H": SIZE // 128}
    if mesh.ranks > 1:
        # A rank has as much work whatever the number of ranks is: its part of what the collective is over.
        dims["K" if name.startswith(("gemm_rs", "rs")) else "N"] //= mesh.ranks
    artifact = artifact_for(program, dims=dims, ranks=mesh.ranks, schedule=_settings(schedule))
    dims = {dim: size for dim, size in dims.items() if dim in artifact.interface.dims}
    kernel = LoadedKernel(artifact, mesh)
    sizes = {**dims, RANKS: mesh.ranks}
    arguments = {array.name: _array(array, sizes, mesh) for array in artifact.arrays if not array.scratch}
    scalars = {each.name: 1.0 for each in artifact.fields if isinstance(each, Scalar)}
    return lambda: kernel(arguments | scalars, dims=dims, stream=_streams(mesh))


def _settings(schedule: str) -> dict[str, str]:
    return dict(setting.split("=") for setting in schedule.split(",") if setting)


def _array(parameter: ArrayParameter, sizes: dict[str, int], mesh: Mesh) -> Any:
    """An array of normally distributed numbers."""
    import torch

    shape = [sizes[dim] if isinstance(dim, str) else dim for dim in parameter.dims]
    layout = "symmetric" if parameter.layout == "private" else parameter.layout
    array = mesh.empty(shape, parameter.dtype, layout, parameter.shard)
    views = [array.local(rank) for rank in range(mesh.ranks)]
    for view in views:
        made = tensor(view)
        scale = 1 / math.sqrt(shape[-1]) if len(shape) > 1 else 1.0
        made.copy_(torch.randn(made.shape, device=made.device) * scale)
    return views if parameter.layout == "private" else array


def _streams(mesh: Mesh) -> list[Any]:
    import torch

    return [torch.cuda.current_stream(rank.device) for rank in mesh.local]


def table(name: str, times: Times) -> tuple[list[str], bool]:
    """A line for each kernel of a group, and whether all reach the bar."""
    group = GROUPS[name]
    lines, fine = [f"{name + ', ms':32} {'median':>9} {group.plain:>9} {'share':>7}"], True
    for each in group.others:
        taken, plain = (statistics.median(side) for side in zip(*times[each], strict=True))
        share = statistics.median(beside / own for own, beside in times[each]) * group.work.get(each, 1)
        fine &= share >= group.bar
        below = "" if share >= group.bar else f"  below {group.bar}"
        lines.append(f"{each:32} {taken:9.4f} {plain:9.4f} {share:7.3f}{below}")
    return lines, fine


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)}; by default all")
    parser.add_argument("--json", type=Path, help="where to write all times")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.here is not None:
        run_here(given.here)
    present.gpus(1)
    found: dict[str, Times] = {}
    fine = True
    for name in given.groups or GROUPS:
        command = [sys.executable, "-m", "tools.epilogues", "--here", name]
        try:
            done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            print(f"{name}: not done after {LIMIT} seconds")
            fine = False
            continue
        if done.returncode:
            print(f"{name}: {done.stderr.strip()}")
            fine = False
            continue
        found[name] = json.loads(done.stdout.splitlines()[-1])
        lines, reached = table(name, found[name])
        fine &= reached
        print("\n".join(lines), flush=True)
    if given.json is not None:
        content = {"command": "python -m tools.epilogues", "size": SIZE, "ms, and of the plain one": found}
        given.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return int(not fine)


if __name__ == "__main__":
    sys.exit(main())
