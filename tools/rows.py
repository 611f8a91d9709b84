"""Kernels of rows on one GPU, beside torch.compile and a copy: `python -m tools.rows [--json FILE] [--seconds 95]`.

Each kernel and each peer is two processes, for every second length; they compile at the same time and measure one after
the other, while no other process fills its arrays. Times are medians of rounds of launches one after the other, of
arrays of 1 GiB. Of pkc all blocks, pieces and clusters listed are measured; without any of these it is what comes
without a schedule.
"""

from __future__ import annotations

import argparse
import fcntl
import importlib
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import log2
from pathlib import Path
from typing import Any

from tests.gpu import present
from tools.launches import median

ROOT = Path(__file__).parents[1]
BYTES = 1 << 30
LENGTHS = (128, 1024, 2984, 4096, 4328, 8192, 16384, 32768, 151936)
ELEMENTS = (16384, 8192, 32768)
"""Elements of a tile, about: from them the number of its rows follows, a power of two."""
PIECES, CLUSTERS = (8192, 16384), (2, 4, 8)
"""What is tried of rows longer than the longest of these pieces: pieces, and rows in clusters of CTAs."""

LAUNCHES, ROUNDS, CHECKED = 5, 5, 64

KERNELS: dict[str, tuple[str, tuple[str, ...]]] = {
    "copy": ("X: bf16[M, N], Y: bf16[M, N]", ("Y[m, :] = X[m, :]",)),
    "silu": ("X: bf16[M, N], Y: bf16[M, N]", ("x = cast(X[m, :], f32)", "Y[m, :] = x * sigmoid(x)")),
    "softmax": (
        "X: bf16[M, N], Y: bf16[M, N]",
        ("x = cast(X[m, :], f32)", "e = exp(x - rowmax(x))", "Y[m, :] = e / rowsum(e)"),
    ),
    "rmsnorm": (
        "X: bf16[M, N], w: bf16[N], Y: bf16[M, N]",
        ("x = cast(X[m, :], f32)", "Y[m, :] = x * rsqrt(rowsum(x * x) / N.0 + 0.00001) * w[:]"),
    ),
    "layernorm": (
        "X: bf16[M, N], w: bf16[N], v: bf16[N], Y: bf16[M, N]",
        (
            "x = cast(X[m, :], f32)",
            "c = x - rowsum(x) / N.0",
            "Y[m, :] = c * rsqrt(rowsum(c * c) / N.0 + 0.00001) * w[:] + v[:]",
        ),
    ),
    "logsumexp": (
        "X: bf16[M, N], Y: f32[M]",
        ("x = cast(X[m, :], f32)", "top = rowmax(x)", "Y[m] = log(rowsum(exp(x - top))) + top"),
    ),
}


def text_of(name: str, length: int, rows: int) -> str:
    parameters, lines = KERNELS[name]
    head = f"kernel {name}({parameters}):\n    for m in {'tasks(M)' if rows == 1 else f'tasks(blocks(M, {rows}))'}:\n"
    return (head + "".join(f"        {line}\n" for line in lines)).replace("N", str(length))


def peers(torch: Any) -> dict[str, Callable[..., Any]]:
    of = torch.nn.functional
    return {
        "copy": lambda x, w, v: x.clone(),
        "silu": lambda x, w, v: of.silu(x),
        "softmax": lambda x, w, v: torch.softmax(x, -1),
        "rmsnorm": lambda x, w, v: of.rms_norm(x, (x.shape[1],), w, 1e-5),
        "layernorm": lambda x, w, v: of.layer_norm(x, (x.shape[1],), w, v, 1e-5),
        "logsumexp": lambda x, w, v: torch.logsumexp(x.float(), -1),
    }


def timed(launch: Callable[..., Any], *given: Any) -> float:
    """Milliseconds of a launch."""
    return median(partial(launch, *given), LAUNCHES, ROUNDS)


@contextmanager
def alone(lock: Path, *, measuring: bool) -> Generator[None]:
    """While one process measures no other one does, or fills its arrays."""
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX if measuring else fcntl.LOCK_SH)
        yield


def arrays(torch: Any, length: int, lock: Path) -> tuple[Any, Any, Any]:
    with alone(lock, measuring=False):
        found = _arrays(torch, length)
        torch.cuda.synchronize()
    return found


def _arrays(torch: Any, length: int) -> tuple[Any, Any, Any]:
    x = torch.randn(BYTES // 2 // length, length, device="cuda", dtype=torch.bfloat16)
    return x, *(torch.rand(length, device="cuda", dtype=torch.bfloat16) for _ in range(2))


def measure_peer(name: str, lengths: Sequence[int], lock: Path) -> Iterator[dict[str, Any]]:
    torch: Any = importlib.import_module("torch")
    for length in lengths:
        x, w, v = arrays(torch, length, lock)
        compiled = torch.compile(peers(torch)[name], dynamic=False)
        compiled(x, w, v)
        torch.cuda.synchronize()
        with alone(lock, measuring=True):
            yield {"peer": "torch.compile", "length": length, "ms": timed(compiled, x, w, v)}
            if name == "copy":
                yield {"peer": "copy_", "length": length, "ms": timed(torch.empty_like(x).copy_, x)}


def tried(length: int) -> list[dict[str, str]]:
    """Settings of a schedule for rows of a length."""
    if length <= PIECES[-1]:
        return [{}]
    return [{}, *({"row": str(size)} for size in PIECES), *({"cluster": str(count)} for count in CLUSTERS)]


def measure_pkc(name: str, lengths: Sequence[int], lock: Path, *, shares: bool) -> Iterator[dict[str, Any]]:
    torch: Any = importlib.import_module("torch")
    from pkc.driver.builder import artifact_for
    from pkc.frontend.parse import parse_text
    from pkc.location import Source
    from pkc.runtime.launch import LoadedKernel
    from pkc.runtime.mesh import Mesh

    mesh = Mesh.single_process([0])
    for length in lengths:
        x, w, v = arrays(torch, length, lock)
        y = torch.empty(len(x), device="cuda") if name == "logsumexp" else torch.empty_like(x)
        ends = torch.cat((x[:CHECKED], x[-CHECKED:]))
        wanted = peers(torch)[name](ends, w, v).float()
        ready: list[tuple[dict[str, Any], Any]] = []
        blocks = dict.fromkeys(
            max(1, 1 << round(log2(elements / length))) for elements in ELEMENTS if elements >= length
        )
        equal: list[dict[str, str]] = [{}, {"queue": "false"}] if shares else [{}]
        for rows, tiles, of in itertools.product(blocks or (1,), tried(length), equal):
            given = {**tiles, **of}
            program = parse_text(Source("rows.pk", text_of(name, length, rows)))
            entry = {"length": length, "rows": rows, "schedule": given}
            try:
                artifact = artifact_for(program, dims={"M": len(x)}, ranks=1, schedule=given)
                ready.append((entry, LoadedKernel(artifact, mesh)))
            except Exception as error:
                yield {**entry, "error": str(error)[:200]}
        named = {key: value for key, value in zip("XwvY", (x, w, v, y), strict=True) if f"{key}: " in KERNELS[name][0]}
        with alone(lock, measuring=True):
            for entry, kernel in ready:
                ms = timed(partial(kernel, stream=torch.cuda.current_stream()), named)
                off = (torch.cat((y[:CHECKED], y[-CHECKED:])).float() - wanted).abs().max() / wanted.abs().max()
                yield {**entry, "ms": ms, "error of the largest": float(off)}


def measure_here(who: str, name: str, lengths: Sequence[int], lock: Path, *, shares: bool) -> None:
    pkc = partial(measure_pkc, shares=shares)
    for found in (pkc if who == "pkc" else measure_peer)(name, lengths, lock):
        print(json.dumps({"kernel": name, "who": who, **found}), flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seconds", type=float, default=95)
    parser.add_argument("--kernels", default=",".join(KERNELS))
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)))
    parser.add_argument("--shares", action="store_true", help="also with an equal share of the tasks for each CTA")
    parser.add_argument("--here", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    lengths = [int(length) for length in options.lengths.split(",")]
    if options.here:
        who, name, lock = options.here
        measure_here(who, name, lengths, Path(lock), shares=options.shares)
        return
    present.gpus(1)
    end = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as folder:
        lock = Path(folder) / "lock"
        lock.touch()
        running: list[tuple[subprocess.Popen[bytes], Path]] = []
        for half, who, name in [
            (half, who, name)
            for half in (lengths[::2], lengths[1::2])
            for who, name in itertools.product(("pkc", "peer"), options.kernels.split(","))
            if half
        ]:
            out = Path(folder) / f"{who}_{name}_{half[0]}"
            command = [sys.executable, "-m", "tools.rows", "--lengths", ",".join(map(str, half))]
            command += ["--here", who, name, str(lock), *(["--shares"] if options.shares else [])]
            with out.open("wb") as stream:
                running.append((subprocess.Popen(command, cwd=ROOT, stdout=stream), out))
        results: list[dict[str, Any]] = []
        for process, out in running:
            try:
                process.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
            results += [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines() if line[:1] == "{"]
    if options.json is not None:
        options.json.write_text(json.dumps({"bytes": BYTES, "results": results}, indent=1) + "\n", encoding="utf-8")
    report(results)


def report(results: list[dict[str, Any]]) -> None:
    """A line for each kernel and length: GB/s do not differ by kernel but for what is read and written."""
    for name, length in itertools.product(KERNELS, sorted({one["length"] for one in results})):
        mine = [one for one in results if (one["kernel"], one["length"]) == (name, length)]
        ours = [one for one in mine if one["who"] == "pkc" and "ms" in one]
        theirs = ", ".join(f"{one['peer']} {one['ms']:.3f}" for one in mine if one["who"] == "peer")
        best = min(ours, key=lambda one: one["ms"], default=None)
        each = " ".join(
            f"{one['rows']}{'' if not one['schedule'] else one['schedule']}:{one['ms']:.3f}" for one in ours
        )
        how = f"{best['ms']:.3f} ({best['rows']} rows {best['schedule']})" if best else "none"
        print(f"{name} {length}: pkc {how}; {theirs} | {each}")


if __name__ == "__main__":
    main()
