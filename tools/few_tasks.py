"""Kernels of few tasks with long loops, on one GPU: `python -m tools.few_tasks [--json FILE]`.

Each runs with the schedule that is chosen for its sizes, of which loops may be divided into splits; with as many splits
halved and doubled; without splits; and by torch, where the fastest of its ways counts. All are captured in graphs of
several launches, which are replayed in turns: the times are medians of rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pkc.codegen.artifact import Artifact
from pkc.driver.autoschedule import autoschedule
from pkc.driver.builder import artifact_for
from pkc.frontend import tree
from pkc.frontend.parse import parse_text
from pkc.frontend.schedule import SPLIT
from pkc.location import Source
from pkc.runtime.launch import LoadedKernel
from pkc.runtime.mesh import Mesh
from tests.gpu import present
from tools.launches import batch

LAUNCHES, ROUNDS = 10, 15
MOST = 128
"""Splits of a loop."""

MATMUL = """kernel matmul(A: bf16[M, K], B: bf16[K, N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] = acc
"""
DECODE = """kernel decode(Q: bf16[B, G, R, D], K: bf16[B, G, T, D], V: bf16[B, G, T, D], length: i32[B],
              O: bf16[B, G, R, D], D: const = 128, R: const = 8):
    for b, g in tasks(B, G):
        q = Q[b, g]
        top = full(f32, -inf, R); total = zeros(f32, R); o = zeros(f32, R, D)
        for kv in blocks(T, 64, stop=length[b]):
            s = q @ K[b, g, kv].T * 0.1275174
            t = max(top, rowmax(s)); p = exp2(s - t); c = exp2(top - t)
            total = total * c + rowsum(p)
            o = o * c + cast(p, bf16) @ V[b, g, kv]
            top = t
        O[b, g] = o / total
"""
LOGSUMEXP = """kernel logsumexp(X: bf16[M, N], Y: f32[M]):
    for m in tasks(blocks(M, 8)):
        top = full(f32, -inf, m); total = zeros(f32, m)
        for n in blocks(N, 256):
            x = cast(X[m, n], f32)
            t = max(top, rowmax(x))
            total = total * exp(top - t) + rowsum(exp(x - t))
            top = t
        Y[m] = top + log(total)
"""
SUMS = """kernel sums(X: bf16[M, N], Y: f32[N]):
    for n in tasks(blocks(N, 128)):
        acc = zeros(f32, n)
        for m in blocks(M, 64):
            acc += rowsum(cast(X[m, n], f32).T)
        Y[n] = acc
"""

Tensors = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """A kernel at some sizes; `torch` gives calls that do the same, of which the first is the reference."""

    text: str
    dims: Mapping[str, int]
    output: str
    torch: Callable[[Any, Tensors], Mapping[str, Callable[[], Any]]]

    @property
    def program(self) -> tree.Program:
        return parse_text(Source("few.pk", self.text))


def _matmul(torch: Any, t: Tensors) -> Mapping[str, Callable[[], Any]]:
    return {"cuBLAS": lambda: t["A"] @ t["B"]}


def _decode(torch: Any, t: Tensors) -> Mapping[str, Callable[[], Any]]:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def by(backend: Any) -> Any:
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(t["Q"], t["K"], t["V"])

    backends = {"flash": SDPBackend.FLASH_ATTENTION, "cuDNN": SDPBackend.CUDNN_ATTENTION}
    return {name: lambda backend=backend: by(backend) for name, backend in backends.items()}


def _logsumexp(torch: Any, t: Tensors) -> Mapping[str, Callable[[], Any]]:
    compiled = torch.compile(lambda x: torch.logsumexp(x.float(), -1), dynamic=False)
    return {"torch": lambda: torch.logsumexp(t["X"].float(), -1), "torch.compile": lambda: compiled(t["X"])}


def _sums(torch: Any, t: Tensors) -> Mapping[str, Callable[[], Any]]:
    compiled = torch.compile(lambda x: x.float().sum(0), dynamic=False)
    return {"torch": lambda: t["X"].sum(0, dtype=torch.float32), "torch.compile": lambda: compiled(t["X"])}


CASES = {
    **{
        f"matmul {m} x {n} x {k}": Case(MATMUL, {"M": m, "N": n, "K": k}, "C", _matmul)
        for m, n, k in (
            (1, 1024, 8192),
            (16, 2048, 16384),
            (64, 2048, 8192),
            (128, 1024, 32768),
            (256, 256, 65536),
            (512, 512, 8192),
            (1024, 512, 4096),
        )
    },
    **{
        f"decode {b} x {g} x {t}": Case(DECODE, {"B": b, "G": g, "T": t}, "O", _decode)
        for b, g, t in ((1, 8, 32768), (1, 1, 131072), (2, 8, 8192), (4, 4, 4096), (7, 8, 16384))
    },
    **{
        f"logsumexp {m} x {n}": Case(LOGSUMEXP, {"M": m, "N": n}, "Y", _logsumexp)
        for m, n in ((8, 151936), (64, 128256), (512, 32000))
    },
    **{f"sums {m} x {n}": Case(SUMS, {"M": m, "N": n}, "Y", _sums) for m, n in ((65536, 512), (16384, 4096))},
}


def built(name: str) -> dict[str, tuple[dict[str, str], Artifact]]:
    """The machine code of a case, and its schedule: what is chosen, half and twice as many splits, and none."""
    case = CASES[name]
    program, dims = case.program, dict(case.dims)
    chosen = autoschedule(program, dims=dims, ranks=1, measured=False)
    split = next(((key, int(value)) for key, value in chosen.schedule.items() if key.startswith(SPLIT)), None)
    found = {"chosen": dict(chosen.schedule)}
    if split is not None:
        key, number = split
        others = {
            f"{count} splits": {**chosen.schedule, key: str(count)} for count in (number // 2, min(2 * number, MOST))
        }
        found |= {what: schedule for what, schedule in others.items() if schedule[key] not in ("1", str(number))}
        alone = autoschedule(program, dims=dims, ranks=1, schedule={key: "1"}, measured=False)
        found["no splits"] = {**alone.schedule, key: "1"}
    return {
        what: (schedule, artifact_for(program, dims=dims, ranks=1, schedule=schedule))
        for what, schedule in found.items()
    }


def launching(kernel: LoadedKernel, arrays: Tensors, dims: Mapping[str, int]) -> Callable[[], None]:
    """A call that launches a kernel on the current stream."""
    import torch

    given, known = {name: [array] for name, array in arrays.items()}, dict(dims)
    return lambda: kernel(given, dims=known, stream=[torch.cuda.current_stream()])


def measured(mesh: Mesh, name: str, variants: Mapping[str, tuple[dict[str, str], Artifact]]) -> dict[str, float]:
    """Microseconds of each contestant. Raises `AssertionError` if a result is not that of torch's within 2 %."""
    import torch

    case, sizes = CASES[name], dict(CASES[name].dims)
    (_, first), *_ = variants.values()
    arrays: dict[str, Any] = {}
    kinds = {"bf16": torch.bfloat16, "f32": torch.float32, "i32": torch.int32}
    for array in first.arrays:
        if not array.scratch:
            shape = [sizes[dim] if isinstance(dim, str) else dim for dim in array.dims]
            made = torch.full(shape, sizes.get("T", 0)) if array.dtype == "i32" else torch.randn(shape)
            arrays[array.name] = made.cuda().to(kinds[str(array.dtype)])
    calls = dict(case.torch(torch, arrays))
    expected = next(iter(calls.values()))().float()
    for what, (_, artifact) in variants.items():
        calls[what] = launching(LoadedKernel(artifact, mesh), arrays, case.dims)
        arrays[case.output].fill_(float("nan"))
        calls[what]()
        torch.cuda.synchronize()
        worst = float((arrays[case.output].float() - expected).abs().max() / expected.abs().max())
        assert worst < 0.02, f"{name}, {what}: off by {worst:.3f}"
    graphs: dict[str, Any] = {}
    for what, call in calls.items():
        call()
        torch.cuda.synchronize()
        graphs[what] = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graphs[what]):
            for _ in range(LAUNCHES):
                call()
    times: dict[str, list[float]] = {what: [] for what in graphs}
    for number in range(ROUNDS + 2):
        for what, graph in graphs.items():
            taken = batch(graph.replay, 1) / LAUNCHES * 1e3
            if number > 1:  # the first rounds warm up
                times[what].append(taken)
    return {what: round(statistics.median(found), 2) for what, found in times.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *CASES])
    parser.add_argument("--json", type=Path, help="where to write all figures")
    given = parser.parse_args(arguments)
    present.gpus(1)
    import torch

    mesh, found, names = Mesh.single_process([0]), list[dict[str, Any]](), given.names or list(CASES)
    with ProcessPoolExecutor(12) as pool:
        for name, variants in zip(names, pool.map(built, names), strict=True):
            times = measured(mesh, name, variants)
            schedules = {what: schedule for what, (schedule, _) in variants.items()}
            found.append({"kernel": name, "us": times, "schedules": schedules})
            print(f"{name:28}", *(f"{what} {us:.1f} " for what, us in times.items()), schedules["chosen"], flush=True)
            if given.json is not None:
                about = {"command": "python -m tools.few_tasks", "gpu": torch.cuda.get_device_name()}
                given.json.write_text(json.dumps({**about, "times": found}, indent=1) + "\n", encoding="utf-8")
    os._exit(0)


if __name__ == "__main__":
    main()
