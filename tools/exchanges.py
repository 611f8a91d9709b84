"""all_to_all for every pair of dimensions of an array, beside NCCL, on all GPUs of a job.

    torchrun --nproc-per-node 2 -m tools.exchanges [--json FILE]
    python -m tools.exchanges --virtual 4                        # on one GPU: are results right?

What is sharded along one dimension becomes sharded along another. `nccl` is `all_to_all_single` of what lies in its
order already, `nccl_transposed` the same between the copies that bring it into that order and the result into its own.
Every result of pkc is compared with that of NCCL. Times are as of `pkc bench`: medians of the slowest rank, L2 cold.
Virtual ranks share one GPU, so that no time says anything: each result is the array itself, sharded otherwise.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pkc.bench import kernels, record
from pkc.bench.peers.contest import WARMUP
from pkc.bench.peers.ranks import Job, dist, join, torch
from pkc.bench.peers.timing import measure, summary
from pkc.dialect.numeric import numpy_dtype
from pkc.dialect.types import bf16
from pkc.driver.builder import artifact_for
from pkc.driver.hardware import run_on_gpus
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.runtime.launch import LoadedKernel
from pkc.runtime.mesh import Mesh
from pkc.runtime.torch import tensor
from tests.exchanges import DIMS, PAIRS, exchange
from tests.gpu import present

SIZES = ((16, 1024, 512), (32, 2048, 1024), (64, 4096, 2048))
"""16 MiB, 128 MiB and 1 GiB of bf16, of all ranks together."""
RAGGED = (5, 57, 131)
"""Shards of several lengths, and rows that begin at no multiple of 16 bytes."""


def with_pkc(sizes: Sequence[int], pair: tuple[int, int], x: Any, mesh: Mesh, job: Job) -> Callable[[], Any]:
    """The kernel that the autoschedule chooses."""
    program = parse_text(Source("exchange.pk", exchange(*pair)).remember())
    dims = dict(zip(DIMS, sizes, strict=True))
    artifact = artifact_for(program, dims=dims, ranks=job.ranks)
    arrays = {name: mesh.empty(tuple(sizes), "bf16", "shard", at) for name, at in zip("XY", pair, strict=True)}
    tensor(arrays["X"].local(job.rank)).copy_(x)
    loaded, result = LoadedKernel(artifact, mesh), tensor(arrays["Y"].local(job.rank))

    def run() -> Any:
        loaded(arrays, stream=torch().cuda.current_stream())
        return result

    return run


def with_nccl(pair: tuple[int, int], x: Any, ranks: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """NCCL alone, and between the copies that it needs; the second gives the result."""
    before, after = pair
    pieces = torch().stack(x.chunk(ranks, after))
    came, sent = torch().empty_like(pieces), torch().empty_like(pieces)
    result = torch().cat(list(pieces), before)

    def alone() -> Any:
        dist().all_to_all_single(came, pieces)
        return came

    def transposed() -> Any:
        torch().stack(x.chunk(ranks, after), out=sent)
        dist().all_to_all_single(came, sent)
        return torch().cat(list(came), before, out=result)

    return alone, transposed


def measured(sizes: Sequence[int], pair: tuple[int, int], job: Job, repetitions: int) -> dict[str, Any]:
    """Times by contestant. Raises `AssertionError` if results differ."""
    local = [size // job.ranks if at == pair[0] else size for at, size in enumerate(sizes)]
    generator = torch().Generator(device=job.place).manual_seed(job.rank)
    x = torch().randn(local, device=job.place, dtype=torch().bfloat16, generator=generator)
    mesh = kernels.make_mesh(job)
    ours, (alone, transposed) = with_pkc(sizes, pair, x, mesh, job), with_nccl(pair, x, job.ranks)
    ours().fill_(float("nan"))
    assert torch().equal(ours(), transposed())
    runs = {"pkc": ours, "nccl": alone, "nccl_transposed": transposed}
    times = measure(list(runs.values()), job, repetitions=repetitions, warmup=WARMUP)
    mesh.close()
    return {name: summary(timed.samples) for name, timed in zip(runs, times, strict=True)}


def all_right(mesh: Mesh, sizes: Sequence[int], launches: int = 3) -> bool:
    """Whether every pair gives the array as it was, bit by bit, on a mesh whose ranks are all of this process."""
    whole = np.random.default_rng(0).standard_normal(tuple(sizes), np.float32).astype(numpy_dtype(bf16))
    dims, right = dict(zip(DIMS, sizes, strict=True)), 0
    for before, after in PAIRS:
        program = parse_text(Source("exchange.pk", exchange(before, after)).remember())
        artifact = artifact_for(program, dims=dims, ranks=mesh.ranks)
        (found,) = run_on_gpus(artifact, mesh, dims, {"X": whole}, launches=launches)
        same = found["Y"].tobytes() == whole.tobytes()
        right += same
        told = "right" if same else "WRONG"
        print(f"{tuple(sizes)} {DIMS[before]} to {DIMS[after]}, {mesh.ranks} ranks: {told}", flush=True)
    return right == len(PAIRS)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="where to write all figures")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--virtual", type=int, metavar="RANKS", help="only whether results are right, on one GPU")
    given = parser.parse_args(arguments)
    present.gpus(1)
    if given.virtual:
        mesh = Mesh.virtual(given.virtual)
        wrong = [sizes for sizes in (RAGGED, SIZES[0]) if not all_right(mesh, sizes)]
        return 1 if wrong else 0
    job = join()
    found: dict[str, Any] = record.header(job, given.repetitions, WARMUP) | {"command": "python -m tools.exchanges"}
    for sizes in SIZES:
        for pair in PAIRS:
            times = measured(sizes, pair, job, given.repetitions)
            entry = {"sizes": sizes, "from": DIMS[pair[0]], "to": DIMS[pair[1]], "ranks": job.ranks}
            found["results"].append({**entry, "contestants": times})
            if job.rank:
                continue
            ours, *others = (times[name]["median_ms"] for name in ("pkc", "nccl", "nccl_transposed"))
            shares = ", ".join(f"{other:.4f} ({other / ours:.2f})" for other in others)
            print(f"{sizes} {entry['from']} to {entry['to']}: {ours:.4f} ms, NCCL {shares} with copies", flush=True)
            if given.json is not None:
                given.json.write_text(json.dumps(found, indent=1))
    job.leave()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
