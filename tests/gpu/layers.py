"""Times of a tensor-parallel MLP, forward, beside NCCL with cuBLAS and torch's fused operators:

    python -m tests.gpu.layers --ranks 2 --hidden 4096 --tokens 512 4096 8192

Prints, for each number of tokens, microseconds eager and as a CUDA graph: the slowest rank of a round, the median of
rounds, which take turns. NVLink multicast is off for all.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pkc.bench.peers.ranks import NO_MULTICAST
from tests.gpu import present, processes

LIMIT = 280
ROUNDS, CALLS = 5, 20
BOUND = 0.05
"""How far results may be from those of NCCL and cuBLAS, relative to the largest: all round to bf16 several times."""


ALONE = "cuBLAS alone"
"""The matmuls and the activation of all tokens without communication, which nothing has to beat."""


def contestants(torch: Any, hidden: int, inner: int, group: str, gated: bool) -> dict[str, Callable[[Any], Any]]:
    """The same layers with the same weights, by name."""
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symmetric

    import pkc.nn

    symmetric.enable_symm_mem_for_group(group)
    functional = torch.nn.functional
    activation, name = (functional.silu, "silu") if gated else (functional.gelu, "gelu")
    options = {"sequence_parallel": True, "device": "cuda", "dtype": torch.bfloat16}
    mlp = pkc.nn.TensorParallelMLP(hidden, inner, False, activation=name, gated=gated, **options)
    first = [mlp.gate.weight.t(), mlp.up.weight.t()] if gated else [mlp.up.weight.t()]
    down, ranks = mlp.down.weight.t(), dist.get_world_size()
    # One kernel for what is between the matmuls, as compilers make of it.
    between = torch.compile(lambda gate, up: activation(gate) * up) if gated else activation
    wholes: dict[int, Any] = {}

    def gathered(x: Any) -> Any:
        whole = x.new_empty((ranks * x.shape[0], hidden))
        dist.all_gather_into_tensor(whole, x)
        return whole

    def nccl(x: Any) -> Any:
        whole = gathered(x)
        out = between(*(whole @ right for right in first)) @ down
        mine = torch.empty_like(x)
        dist.reduce_scatter_tensor(mine, out)
        return mine

    def fused(x: Any) -> Any:
        _, wide = torch.ops.symm_mem.fused_all_gather_matmul(x, first, 0, group, return_A=False)
        return torch.ops.symm_mem.fused_matmul_reduce_scatter(between(*wide), down, "sum", 0, group)

    def alone(x: Any) -> Any:
        if x.shape[0] not in wholes:
            wholes[x.shape[0]] = gathered(x)
        whole = wholes[x.shape[0]]
        return between(*(whole @ right for right in first)) @ down

    return {"pkc": mlp, "NCCL + cuBLAS": nccl, "torch fused": fused, ALONE: alone}


def measure(torch: Any, calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Microseconds of each; they take turns."""
    import torch.distributed as dist

    found: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(3):
            call()
    for _ in range(ROUNDS):
        for name, call in calls.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            dist.barrier()
            begin.record()
            for _ in range(CALLS):
                call()
            end.record()
            torch.cuda.synchronize()
            took = torch.tensor(begin.elapsed_time(end) / CALLS * 1e3, device="cuda")
            dist.all_reduce(took, dist.ReduceOp.MAX)
            found[name].append(took.item())
    return {name: statistics.median(times) for name, times in found.items()}


def apart(found: Any, expected: Any) -> float:
    """How far results are apart, relative to the largest."""
    return ((found.float() - expected.float()).abs().max() / expected.float().abs().max()).item()


def captured(torch: Any, call: Callable[[], Any]) -> Callable[[], Any]:
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def run(tokens: Sequence[int], hidden: int, inner: int, gated: bool, rows: list[Any]) -> bool:
    import torch
    import torch.distributed as dist

    import pkc.torch

    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    right = True
    with torch.no_grad():
        forms = contestants(torch, hidden, inner, pkc.torch.name_of(), gated)
        for count in tokens:
            x = torch.randn(count // ranks, hidden, device="cuda", dtype=torch.bfloat16)
            results = {name: form(x) for name, form in forms.items() if name != ALONE}
            errors = {name: apart(found, results["NCCL + cuBLAS"]) for name, found in results.items()}
            right &= max(errors.values()) <= BOUND
            eager = {name: partial(form, x) for name, form in forms.items()}
            graphs = {name: captured(torch, call) for name, call in eager.items()}
            for kind, calls in (("eager", eager), ("graph", graphs)):
                times = measure(torch, calls)
                if rank == 0:
                    texts = ", ".join(f"{name} {time:.1f}" for name, time in times.items())
                    best = min(time for name, time in times.items() if name not in ("pkc", ALONE))
                    row: dict[str, Any] = {
                        "hidden": hidden,
                        "inner": inner,
                        "gated": gated,
                        "tokens": count,
                        "how": kind,
                    }
                    rows.append({**row, "us": {name: round(time, 1) for name, time in times.items()}})
                    what = ", ".join(f"{key} {value}" for key, value in row.items())
                    share = best / times["pkc"]
                    print(f"{ranks} ranks, {what}: {texts} us; {share:.2f} times the best other", flush=True)
    if not right:
        print(f"results differ: {errors}", flush=True)
    return right


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, help="all GPUs, if it is not given")
    parser.add_argument("--hidden", type=int, default=4096)
    parser.add_argument("--inner", type=int, help="four times the hidden size, if it is not given")
    parser.add_argument("--gated", action="store_true", help="SwiGLU in place of GELU")
    parser.add_argument("--tokens", type=int, nargs="+", default=[512, 4096, 8192])
    parser.add_argument("--json", type=Path, help="where to write all times")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    inner = given.inner or 4 * given.hidden
    if given.here:
        rows: list[Any] = []
        right = run(given.tokens, given.hidden, inner, given.gated, rows)
        form = f"--hidden {given.hidden} --inner {inner} --tokens {' '.join(map(str, given.tokens))}"
        form += " --gated" * given.gated
        command = f"python -m tests.gpu.layers --ranks {os.environ['WORLD_SIZE']} {form}"
        processes.end(right, given.json, command, rows)
    os.environ.update(NO_MULTICAST)
    ranks = present.gpus(given.ranks)
    others = ["--gated"] * given.gated + (["--json", str(given.json.absolute())] if given.json is not None else [])
    passed_on = [
        "--here",
        *others,
        "--hidden",
        str(given.hidden),
        "--inner",
        str(inner),
        "--tokens",
        *map(str, given.tokens),
    ]
    return 0 if processes.run("tests.gpu.layers", passed_on, ranks, LIMIT, torchrun=True) else 1


if __name__ == "__main__":
    sys.exit(main())
