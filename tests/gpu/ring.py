"""Times of the gradients of ring attention, beside cuDNN's of as much work without communication, and beside a gather:

    python -m tests.gpu.ring --ranks 4 --json FILE

`ring_attention_backward` of `torch.ops.pkc` on shards of a sequence; cuDNN's backward of 1 / ranks of the heads over
the whole sequence, which needs no other rank; and what takes the place of the kernels where there are none: keys
gathered and their gradients summed over the ranks by NCCL, around pkc's kernels for one GPU. Milliseconds, the slowest
rank of a round, the median of rounds, which take turns. Results are compared with that of the gather. NVLink multicast
is off.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pkc.bench.peers.ranks import NO_MULTICAST
from tests.gpu import layers, present, processes

LIMIT = 280
SIZES = ((4, 16, 16384, 128), (1, 16, 32768, 128), (4, 16, 8192, 64))
"""Sequences, heads, positions of the whole sequence, features of each."""
ORDERS = {"": {}, "causal, zigzag": {"causal": True, "zigzag": True}}
BOUND = 0.03
"""How far gradients may be apart, relative to the largest: both round probabilities and gradients to bf16."""


def contestants(torch: Any, size: tuple[int, int, int, int], group: str, order: dict[str, bool]) -> dict[str, Any]:
    """The same gradients, by name; those of cuDNN are of other tensors."""
    import torch.distributed as dist

    from pkc.torch import attention

    sequences, heads, length, features = size
    ranks, causal = dist.get_world_size(), order.get("causal", False)
    shape = sequences, heads, length // ranks, features
    q, k, v, given = (torch.randn(*shape, device="cuda", dtype=torch.bfloat16) for _ in range(4))
    out, sums = torch.ops.pkc.ring_attention(q, k, v, group, **order)
    backward = torch.ops.pkc.ring_attention_backward
    whole = sequences, heads // ranks, length, features
    kinds: Any = torch.nn.attention
    of_one = [torch.randn(*whole, device="cuda", dtype=torch.bfloat16).requires_grad_() for _ in range(3)]
    with kinds.sdpa_kernel(kinds.SDPBackend.CUDNN_ATTENTION):
        alone = torch.nn.functional.scaled_dot_product_attention(*of_one, is_causal=causal)
    grad = torch.randn_like(alone)
    zigzag = order.get("zigzag", False)
    gathered = partial(attention._gathered_backward, group=group, causal=causal, scale=None, zigzag=zigzag)
    return {
        "pkc": lambda: backward(given, q, k, v, out, sums, group, **order),
        "cuDNN alone": lambda: torch.autograd.grad(alone, of_one, grad, retain_graph=True),
        "gathered": lambda: gathered(given, q, k, v, out, sums),
    }


def run(rows: list[Any]) -> bool:
    import torch
    import torch.distributed as dist

    import pkc.torch

    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    right = True
    for size in SIZES:
        for name, order in ORDERS.items():
            calls: dict[str, Callable[[], Any]] = contestants(torch, size, pkc.torch.name_of(), order)
            error = max(map(layers.apart, calls["pkc"](), calls["gathered"]()))
            right &= error <= BOUND
            times = {name: time / 1e3 for name, time in layers.measure(torch, calls).items()}
            if rank == 0:
                texts = ", ".join(f"{name} {time:.3f} ms" for name, time in times.items())
                share = times["cuDNN alone"] / times["pkc"]
                listed = " x ".join(map(str, size)) + f" {name}" * bool(name)
                print(f"{ranks} ranks, {listed}: {texts}; {share:.3f} of cuDNN alone, apart {error:.4f}", flush=True)
                rows.append({"size": size, "order": name, "ms": {name: round(time, 4) for name, time in times.items()}})
    if not right:
        print("gradients differ", flush=True)
    return right


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, help="all GPUs, if it is not given")
    parser.add_argument("--json", type=Path, help="where to write all times")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.here:
        rows: list[Any] = []
        right = run(rows)
        processes.end(right, given.json, f"python -m tests.gpu.ring --ranks {os.environ['WORLD_SIZE']}", rows)
    os.environ.update(NO_MULTICAST)
    ranks = present.gpus(given.ranks)
    passed_on = ["--here"] + (["--json", str(given.json.absolute())] if given.json is not None else [])
    return 0 if processes.run("tests.gpu.ring", passed_on, ranks, LIMIT, torchrun=True) else 1


if __name__ == "__main__":
    sys.exit(main())
