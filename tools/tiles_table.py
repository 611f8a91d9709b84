"""Times with other tiles, beside their estimates: `python -m tools.tiles_table RESULTS.json... [--toml FILE]`.

RESULTS are files of `pkc bench` whose variants set the tiles of M, N and K. Prints for each size what was chosen, what
was best, and how far the estimates are off; `--toml` writes the times in the form of `bench/tiles/`.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pkc.cost.estimate import estimate
from pkc.cost.work import count_work
from pkc.driver.autoschedule import autoschedule
from pkc.driver.compiler import load, load_program
from pkc.passes import ROLES_PIPELINE
from pkc.passes.roles.plan_overlap import PlanOverlap
from pkc.passes.run import run_pipeline
from pkc.targets import DEFAULT
from pkc.targets.target import lookup

EXAMPLES = Path(__file__).parents[1] / "examples"
VARIANT = re.compile(r"pkc tile_M=(\d+),tile_N=(\d+),tile_K=(\d+)")
PEERS = ("cublas_nccl", "cublas", "torch_fused", "pkc")

Tiles = tuple[int, int, int]


def dims_of(result: dict[str, Any]) -> dict[str, int]:
    """The dimensions of one rank."""
    m, n, k, ranks = (result[key] for key in ("m", "n", "k", "ranks"))
    summed, gathered = result["kernel"] == "gemm_rs", result["kernel"] == "ag_gemm"
    return {"M": m, "N": n // ranks if gathered else n, "K": k // ranks if summed else k}


def estimated(result: dict[str, Any], tiles: Tiles) -> float:
    """Milliseconds."""
    schedule = {f"tile_{dim}": str(size) for dim, size in zip("MNK", tiles, strict=True)}
    compiled = load(EXAMPLES / f"{result['kernel']}.pk", schedule=schedule)
    run_pipeline(compiled.module, [step for step in ROLES_PIPELINE if isinstance(step, PlanOverlap)])
    target, ranks = lookup(DEFAULT), result["ranks"]
    return estimate(count_work(compiled.kernel, dims_of(result), ranks, target), ranks, target).total / 1e6


def times(result: dict[str, Any]) -> dict[Tiles, float]:
    """Milliseconds by tiles."""
    found = ((VARIANT.fullmatch(name), values.get("median_ms")) for name, values in result["contestants"].items())
    return {(int(m[1]), int(m[2]), int(m[3])): ms for m, ms in found if m is not None and ms is not None}


def lines(result: dict[str, Any]) -> Iterator[str]:
    measured = times(result)
    peers = {name: result["contestants"].get(name, {}).get("median_ms") for name in PEERS}
    size = f"{result['m']}x{result['n']}x{result['k']}"
    shown = ", ".join(f"{name} {ms * 1000:.1f}" for name, ms in peers.items() if ms)
    yield f"{result['kernel']} {size} on {result['ranks']}: {shown} us"
    program = load_program(EXAMPLES / f"{result['kernel']}.pk")
    yield f"  {autoschedule(program, dims=dims_of(result), ranks=result['ranks'])}".replace(f"{EXAMPLES}/", "")
    for tiles, ms in sorted(measured.items(), key=lambda item: item[1]):
        guess = estimated(result, tiles)
        yield f"  {'x'.join(map(str, tiles)):>12} {ms * 1000:8.1f} us, estimated {guess * 1000:8.1f} ({guess / ms:.2f})"
    failed = [name for name, values in result["contestants"].items() if "error" in values and name.startswith("pkc")]
    yield from (f"  FAILED {name}: {result['contestants'][name]['error'].splitlines()[0]}" for name in failed)


def summary(results: list[dict[str, Any]]) -> str:
    errors = [math.log(estimated(result, tiles) / ms) for result in results for tiles, ms in times(result).items()]
    worse: list[float] = []
    for result in results:
        measured, chosen = times(result), result["contestants"].get("pkc", {}).get("median_ms")
        if measured and chosen:
            worse.append(chosen / min(*measured.values(), chosen))
    spread = math.sqrt(sum(error * error for error in errors) / max(1, len(errors)))
    return (
        f"{len(errors)} times; estimates off by {math.expm1(spread):.0%} in the geometric mean;"
        f" the chosen tiles take {sum(worse) / max(1, len(worse)):.3f} times as long as the best,"
        f" {max(worse, default=0):.3f} at most"
    )


def toml(results: list[dict[str, Any]]) -> str:
    entries: list[str] = []
    for result in results:
        size = [result[key] for key in ("m", "n", "k")]
        found = "".join(f"{'x'.join(map(str, tiles))} = {ms:.4f}\n" for tiles, ms in times(result).items())
        entries.append(f'[[measured]]\nkernel = "{result["kernel"]}"\nsize = {size}\n[measured.ms]\n{found}')
    return "\n".join(entries)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--toml", type=Path)
    given = parser.parse_args()
    results = [result for path in given.files for result in json.loads(path.read_text(encoding="utf-8"))["results"]]
    for result in results:
        print("\n".join(lines(result)))
    print(summary(results))
    if given.toml is not None:
        given.toml.write_text(toml(results), encoding="utf-8")


if __name__ == "__main__":
    main()
