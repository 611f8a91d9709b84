"""Times two checkouts of pkc beside each other on the GPUs of this machine: what has become slower?

    git worktree add ../before HEAD~20
    python -m tools.versions ../before --json bench/results/versions/x4.json

Kernels of the GEMM families, collectives and attention over ranks run in the checkout `before` and in this one, in turn
and in processes of their own. A time is the median of the slowest GPU over seven batches of eight launches; the least
of all rounds is compared. The exit status is 1 if a kernel takes more than 2 % longer.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SLOWER = 1.02
BATCHES, LAUNCHES = 7, 8
SIZES = (4096, 8192, 16384)
"""Smaller ones take less time than a launch from Python."""

Times = dict[str, dict[str, list[float]]]
"""Milliseconds by kernel and version, one for each round."""


def measure(tree: Path, cache: str, limit: float, only: str = "") -> dict[str, float]:
    """The times of one version, in a process of its own that sees no other one."""
    environment = os.environ | {"PKC_CACHE_DIR": cache, "PYTHONPATH": os.pathsep.join([str(tree), *sys.path[1:]])}
    environment |= {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}
    command = [sys.executable, str(Path(__file__).resolve()), "--here", "--only", only]
    done = subprocess.run(
        command, cwd=tree, env=environment, stdout=subprocess.PIPE, text=True, timeout=limit, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def table(times: Times) -> tuple[list[str], bool]:
    """A line for each kernel that both versions ran, and whether none has become slower."""
    lines, fine = [f"{'ms':34} {'before':>9} {'after':>9} {'ratio':>7}"], True
    for kernel, versions in times.items():
        before, after = (min(versions[version]) for version in ("before", "after"))
        slower = after > SLOWER * before
        fine &= not slower
        lines.append(f"{kernel:34} {before:9.4f} {after:9.4f} {after / before:7.3f}{'  SLOWER' if slower else ''}")
    return lines, fine


def run_here(only: str) -> None:
    """Time the version that is imported here, and print its times as one line of JSON."""
    import torch

    import pkc

    mesh = pkc.mesh()
    devices = [rank.device for rank in mesh.local]
    ranks = len(devices)

    def private(*shape: int) -> list[Any]:
        return [torch.randn(*shape, device=f"cuda:{device}", dtype=torch.bfloat16) for device in devices]

    def drawn(array: Any) -> Any:
        for rank in range(ranks):
            array.tensor(rank).normal_()
        return array

    def launched(call: Callable[[], None]) -> float:
        for _ in range(3):
            call()
        batches: list[float] = []
        for _ in range(BATCHES):
            torch.cuda.synchronize()
            marks = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in devices]
            for number, device in enumerate(devices):
                marks[number][0].record(torch.cuda.current_stream(device))
            for _ in range(LAUNCHES):
                call()
            for number, device in enumerate(devices):
                marks[number][1].record(torch.cuda.current_stream(device))
            for device in devices:
                torch.cuda.synchronize(device)
            batches.append(max(first.elapsed_time(last) for first, last in marks) / LAUNCHES)
        return statistics.median(batches)

    def cases() -> Iterator[tuple[str, Callable[[], None]]]:
        load = {path.stem: pkc.load(path) for path in Path("examples").glob("*.pk")}
        rs, ar, ag = (load[name] for name in ("gemm_rs", "gemm_ar", "ag_gemm"))
        for n in SIZES:
            a, b = private(n, n // ranks), private(n // ranks, n)
            for kernel in (rs, ar):
                c = kernel.empty("C", M=n, N=n)
                yield f"{kernel.name} {n}", lambda kernel=kernel, a=a, b=b, c=c: kernel(a, b, c)
            shards, columns, product = drawn(ag.empty("A", M=n, K=n)), private(n, n // ranks), private(n, n // ranks)
            yield f"ag_gemm {n}", lambda a=shards, b=columns, c=product: ag(a, b, c)
        m, n = 4096, 8192
        x, y = drawn(load["all_gather"].empty("X", M=m, N=n)), load["all_gather"].empty("Y", M=m, N=n)
        yield f"all_gather {m} x {n}", lambda: load["all_gather"](x, y)
        summed = private(m, n)
        for name in ("reduce_scatter", "all_reduce"):
            y = load[name].empty("Y", M=m, N=n)
            yield f"{name} {m} x {n}", lambda name=name, y=y: load[name](summed, y)
        for name, length in (("ring_attention", 8192), ("ring_attention", 32768), ("ulysses_attention", 8192)):
            sizes = {"B": 1, "H": 16, "S": length}
            q, k, v = (drawn(load[name].empty(array, **sizes)) for array in "QKV")
            o = load[name].empty("O", **sizes)
            yield f"{name} {length}", lambda name=name, q=q, k=k, v=v, o=o: load[name](q, k, v, o, scale=0.1)

    print(json.dumps({name: launched(call) for name, call in cases() if name.startswith(only)}), flush=True)
    os._exit(0)  # what a driver frees at the end takes longer than the measurement


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, nargs="?", help="another checkout")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--limit", type=float, default=120, help="seconds for one process")
    parser.add_argument("--only", default="", metavar="KERNEL", help="kernels whose names begin so")
    parser.add_argument("--json", type=Path, help="where to write all times")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.here:
        run_here(given.only)
    if given.before is None:
        parser.error("which checkout is to be compared with this one?")
    from tests.gpu import present  # not where another checkout is timed

    present.gpus(1)
    times: Times = {}
    with tempfile.TemporaryDirectory() as caches:
        for _ in range(given.rounds):
            for version, tree in (("before", given.before.resolve()), ("after", ROOT)):
                for kernel, ms in measure(tree, f"{caches}/{version}", given.limit, given.only).items():
                    times.setdefault(kernel, {"before": [], "after": []})[version].append(round(ms, 5))
    lines, fine = table(times)
    print("\n".join(lines))
    if given.json is not None:
        given.json.write_text(json.dumps(times, indent=1) + "\n", encoding="utf-8")
    return int(not fine)


if __name__ == "__main__":
    sys.exit(main())
