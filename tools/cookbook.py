"""What the kernels of docs/cookbook.md take on GPUs: `python -m tools.cookbook --json FILE [--ranks 1]`.

Each is launched one after the other with the schedule that is chosen, on matrices of 8192 or on arrays that do not fit
into L2. Those with matmuls are compared with `examples/gemm.pk` for the same FLOPs, the others with a copy for the same
bytes, each array counted once; both are measured in the same run. The page's kernels over ranks run on all `ranks`.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

from pkc.codegen.artifact import Artifact
from pkc.driver.builder import artifact_for
from pkc.driver.compiler import compile_program
from pkc.driver.tune import measure
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.runtime.element import ELEMENTS
from tests.gpu import present

PAGE = Path(__file__).parents[1] / "docs" / "cookbook.md"

_MATRICES = {"M": 8192, "N": 8192, "K": 8192}
SIZES: dict[str, dict[str, int]] = {
    "softmax": {"M": 65536, "N": 4096},
    "layernorm": {"M": 65536, "N": 4096},
    "add_rmsnorm": {"M": 65536, "N": 4096},
    "cross_entropy": {"M": 4096, "V": 151936},
    "rope": {"S": 32768, "H": 64, "D": 64},
    "gemm_bias_gelu": _MATRICES,
    "swiglu": _MATRICES,
    "gemm_rs_residual": _MATRICES,
    "all_reduce_rmsnorm": {"M": 16384, "H": 8192},
    "ag_rmsnorm_gemm": _MATRICES,
    "gemm_rs_rmsnorm": _MATRICES,
    "vocab_cross_entropy": {"M": 4096, "V": 37984},
}
"""Dimensions and constants by kernel."""

BESIDE = {
    "copy": "kernel copy(X: bf16[M, N], Y: bf16[M, N]):\n    for m, n in tasks(blocks(M, 32), blocks(N, 512)):\n"
    "        Y[m, n] = X[m, n]\n",
    "gemm": (PAGE.parents[1] / "examples" / "gemm.pk").read_text(encoding="utf-8"),
}
_BESIDE_SIZES = {"copy": {"M": 65536, "N": 4096}, "gemm": _MATRICES}
ROUNDS = 9


def recipes() -> dict[str, str]:
    """The kernels of the page by name."""
    texts = re.findall(r"```\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return {found[1]: text for text in texts if (found := re.search(r"^kernel (\w+)", text, re.MULTILINE))}


def split(text: str, sizes: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """Dimensions and constants."""
    constant = {name for name in sizes if re.search(rf"\b{name}: const", text)}
    return (
        {name: size for name, size in sizes.items() if name not in constant},
        {name: size for name, size in sizes.items() if name in constant},
    )


def built(name: str, ranks: int) -> Artifact:
    text, sizes = (BESIDE | recipes())[name], (_BESIDE_SIZES | SIZES)[name]
    dims, constants = split(text, sizes)
    return artifact_for(parse_text(Source(f"{name}.pk", text)), dims=dims, ranks=ranks, constants=constants)


def work(name: str, artifact: Artifact) -> tuple[float, float]:
    """FLOPs of the matmuls, bytes of the arrays that are passed."""
    text, sizes = (BESIDE | recipes())[name], (_BESIDE_SIZES | SIZES)[name]
    matmuls = sum(line.partition("#")[0].count(" @ ") for line in text.splitlines())
    flops = 2.0 * matmuls * prod(sizes.get(dim, 0) for dim in "MNK")
    lengths = [
        (array.dtype, [sizes[dim] if isinstance(dim, str) else dim for dim in array.dims])
        for array in artifact.arrays
        if not array.scratch
    ]
    return flops, float(sum(prod(length) * ELEMENTS[kind].bytes for kind, length in lengths))


def measured(name: str, artifact: Artifact, ranks: int) -> float:
    """Milliseconds of a launch."""
    from pkc.driver.hardware import clock_of
    from pkc.runtime.mesh import Mesh
    from pkc.sim.draw import draw_inputs

    text, sizes = (BESIDE | recipes())[name], (_BESIDE_SIZES | SIZES)[name]
    dims, constants = split(text, sizes)
    module = compile_program(parse_text(Source(f"{name}.pk", text)), constants=constants).module
    mesh = Mesh.single_process(range(ranks))
    inputs = draw_inputs(module, ranks=ranks, dims=dims, seed=0, period=1 << 20)
    took = measure({0: clock_of(mesh, dims, inputs)(artifact)}, ROUNDS)[0]
    mesh.close()
    return took / 1e6


def sweep(ranks: int, jobs: int) -> Iterator[dict[str, Any]]:
    """A record for each kernel that can be compared on so many ranks; the two that others are compared with first."""
    names = [*BESIDE, *recipes()]
    with ProcessPoolExecutor(jobs) as pool:
        artifacts = dict(zip(names, pool.map(partial(built, ranks=ranks), names), strict=True))
    rates: dict[str, float] = {}
    for name, artifact in artifacts.items():
        flops, size = work(name, artifact)
        ms = measured(name, artifact, ranks)
        unit, rate = ("TFLOP/s", flops / ms / 1e9) if flops else ("GB/s", size / ms / 1e6)
        beside = rates.setdefault(unit, rate)  # of the copy and of the matmul, which come first
        yield {"kernel": name, "sizes": (_BESIDE_SIZES | SIZES)[name], "ms": ms, unit: rate, "share": rate / beside}


RESULTS = PAGE.parents[1] / "bench" / "results" / "cookbook" / "cookbook_x1.json"


def table(found: Sequence[Mapping[str, Any]]) -> str:
    """The rows of the page's table."""
    lines = ["| kernel | sizes | ms | rate | of the copy or the GEMM |", "|---|---|---|---|---|"]
    for one in found:
        sizes = ", ".join(f"{dim} = {size}" for dim, size in one["sizes"].items())
        unit, rate = next((unit, rate) for unit, rate in one.items() if unit.endswith("/s"))
        lines.append(f"| `{one['kernel']}` | {sizes} | {one['ms']:.3f} | {rate:.0f} {unit} | {one['share']:.2f} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=8)
    options = parser.parse_args(arguments)
    present.gpus(options.ranks)
    found: list[dict[str, Any]] = []
    for one in sweep(options.ranks, options.jobs):
        found.append(one)
        kept = {
            "command": f"python -m tools.cookbook --ranks {options.ranks}",
            "ranks": options.ranks,
            "results": found,
        }
        options.json.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        rate = next(f"{value:.0f} {unit}" for unit, value in one.items() if "/s" in unit)
        print(f"{one['kernel']:20} {one['ms']:8.3f} ms  {rate:>14}  {one['share']:.2f}", flush=True)


if __name__ == "__main__":
    main()
