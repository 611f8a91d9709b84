"""What passes are worth: attention on one GPU, with single passes left out. `python -m tools.without [--json FILE]`.

Each variant is a process of its own with a compilation cache of its own: the cache does not know of passes that were
left out. Times are medians of rounds in which all variants take turns; TFLOP/s are 4 B H S S D, halved if causal.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from xdsl.passes import ModulePass

from tests.gpu import present

ROOT = Path(__file__).parents[1]

VARIANTS: dict[str, tuple[str, ...]] = {
    "all passes": (),
    "without pk-pipeline-mma": ("pk-pipeline-mma",),
    "without pk-split-edges": ("pk-split-edges",),
    "without pk-drop-clips": ("pk-drop-clips",),
    "without pk-hoist-loads": ("pk-hoist-loads",),
    "without pk-skip-blocks": ("pk-skip-blocks",),
    "without pk-balance-tasks": ("pk-balance-tasks",),
    "without pk-share-stages": ("pk-share-stages",),
    "without all of these": (
        "pk-pipeline-mma",
        "pk-split-edges",
        "pk-drop-clips",
        "pk-hoist-loads",
        "pk-skip-blocks",
        "pk-balance-tasks",
        "pk-share-stages",
    ),
}

SHAPE = (4, 16, 8192, 128)
LAUNCHES, BATCHES = 5, 3


def run_here(left_out: Sequence[str]) -> None:
    """Print the TFLOP/s of attention, without and with a causal mask, as JSON."""
    import torch

    import pkc
    from pkc import passes
    from pkc.driver import compiler

    def kept(steps: Sequence[ModulePass]) -> tuple[ModulePass, ...]:
        return tuple(step for step in steps if step.name not in left_out)

    compiler.TILE_PIPELINE = kept(passes.TILE_PIPELINE)
    compiler.roles_pipeline = lambda target: kept(passes.roles_pipeline(target))
    batch, heads, length, width = SHAPE
    kernel = pkc.load(ROOT / "examples" / "attention.pk").with_schedule(tile_T=128)
    q, k, v, o = (torch.randn(SHAPE, device="cuda", dtype=torch.bfloat16) for _ in range(4))
    scale = math.log2(math.e) / math.sqrt(width)
    found: dict[str, float] = {}
    for causal in (False, True):
        batches: list[float] = []
        for number in range(BATCHES + 1):
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            for _ in range(LAUNCHES):
                kernel(q, k, v, o, scale=scale, D=width, causal=causal)
            last.record()
            torch.cuda.synchronize()
            if number:  # the first batch compiles
                batches.append(first.elapsed_time(last) / LAUNCHES)
        flops = 4 * batch * heads * length**2 * width / (2 if causal else 1)
        found["causal" if causal else "all"] = flops / statistics.median(batches) / 1e9
    print(json.dumps(found), flush=True)
    os._exit(0)  # what a driver frees at the end takes longer than the measurement


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path, help="where to write all figures")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.here is not None:
        run_here(VARIANTS[given.here])
    present.gpus(1)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in VARIANTS}
    with tempfile.TemporaryDirectory() as caches:
        for _ in range(given.rounds):
            for number, name in enumerate(VARIANTS):
                environment = {**os.environ, "PKC_CACHE_DIR": f"{caches}/{number}", "PYTHONPATH": _path()}
                command = [sys.executable, "-m", "tools.without", "--here", name]
                done = subprocess.run(
                    command, check=False, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
                )
                if done.returncode:
                    print(f"{name}: {done.stderr.strip()}", file=sys.stderr)
                    return 1
                found[name].append(json.loads(done.stdout.splitlines()[-1]))
    print(f"{'TFLOP/s':28}{'all':>8}{'causal':>8}")
    for name, runs in found.items():
        numbers = (statistics.median(run[key] for run in runs) for key in ("all", "causal"))
        print(f"{name:28}{''.join(f'{number:8.0f}' for number in numbers)}")
    if given.json is not None:
        shape = dict(zip("BHSD", SHAPE, strict=True))
        given.json.write_text(
            json.dumps({"command": "python -m tools.without", "shape": shape, "tflops": found}, indent=1)
        )
    return 0


def _path() -> str:
    return os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])


if __name__ == "__main__":
    raise SystemExit(main())
