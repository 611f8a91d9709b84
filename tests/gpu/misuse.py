"""What users do wrong with arrays, streams, threads and meshes: refused at the line of the call, or right.

python -m tests.gpu.misuse --ranks 2              # on 2 GPUs
python -m tests.gpu.misuse --ranks 2 --virtual    # on one
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pkc.diagnostics import PkcError
from pkc.runtime.mesh import Mesh
from tests.gpu import present
from tests.gpu.calls import SIZES, Failure, GemmRs, Gpus, ag_gemm, compared, gemm, matmul, synchronize

CALLS = 100
"""Calls in a row, on each stream or in each thread."""

MOST_CYCLES = 300_000
"""How late a rank is at most."""


def same_array_twice(gpus: Gpus) -> str:
    """An operand that is the result too."""
    a = _drawn(gpus, 256, 256)
    return _refused("PK867", lambda: gemm(a, a, C=a))


def overlapping_views(gpus: Gpus) -> str:
    """Rows that operand and result share; those that follow each other are right."""
    whole, b = _drawn(gpus, 512, 128), _drawn(gpus, 128, 128)
    gemm(whole[:256], b, C=whole[256:])
    expected, error = matmul(whole[:256], b)
    worst = compared(whole[256:], expected, 2.0**-8 * expected.abs() + error)
    return f"{_refused('PK867', lambda: gemm(whole[:256], b, C=whole[255:-1]))}; side by side: error/bound {worst:.3f}"


def unaligned(gpus: Gpus) -> str:
    """A tensor that begins in the middle of 16 bytes."""
    b, c = _drawn(gpus, 64, 64), _drawn(gpus, 64, 64)
    shifted = _drawn(gpus, 65, 64).flatten()[1 : 1 + 64 * 64].view(64, 64)
    return _refused("PK853", lambda: gemm(shifted, b, C=c))


def not_contiguous(gpus: Gpus) -> str:
    """A transposed tensor, and every second row of one."""
    a, b, c, long = _drawn(gpus, 64, 64), _drawn(gpus, 64, 64), _drawn(gpus, 64, 64), _drawn(gpus, 128, 64)
    return " and ".join(_refused("PK845", lambda left=left: gemm(left, b, C=c)) for left in (a.t(), long[::2]))


def freed(gpus: Gpus) -> str:
    """An array of the mesh whose memory is another one's by now."""
    m, n, k = SIZES[0]
    a, b, c = ag_gemm.empty("A", gpus.mesh, M=m, K=k), gpus.draw(3, k, n), gpus.empty(m, n)
    gpus.fill(a, 4)
    ag_gemm(a, b, c)
    synchronize(gpus)
    a.free()
    other = ag_gemm.empty("A", gpus.mesh, M=m, K=k)
    told = _refused("PK866", lambda: ag_gemm(a, b, c))
    other.free()
    return told


def two_streams(gpus: Gpus) -> str:
    """One kernel on two streams at once, with ranks that are late by other times on each."""
    torch, works = gpus.torch, [GemmRs(gpus, *SIZES[0], seed=seed) for seed in (1, 11)]
    for work in works:
        work.call()
    synchronize(gpus)
    for work in works:
        gpus.poison(work.c)
    synchronize(gpus)
    streams = [[torch.cuda.Stream(device=rank.device) for rank in gpus.mesh.local] for _ in works]
    for number in range(CALLS):
        for work, mine in zip(works, streams, strict=True):
            for at, (rank, stream) in enumerate(zip(gpus.mesh.local, mine, strict=True)):
                with torch.cuda.device(rank.device), torch.cuda.stream(stream):
                    torch.cuda._sleep(1 + (number * 7919 + 31 * at) % 17 * MOST_CYCLES // 17)
            work.call(stream=mine)
    for mine in streams:
        gpus.mesh.synchronize(stream=mine)
    return _right(works, f"{2 * CALLS} launches")


def two_threads(gpus: Gpus) -> str:
    """One kernel from two threads, each with its stream and its arrays."""
    torch, works = gpus.torch, [GemmRs(gpus, *SIZES[0], seed=seed) for seed in (1, 11)]
    works[0].call()
    synchronize(gpus)
    failed: list[BaseException] = []

    def work_on(work: GemmRs) -> None:
        try:
            mine = [torch.cuda.Stream(device=rank.device) for rank in gpus.mesh.local]
            for number in range(CALLS):
                work.call(stream=mine)
                if number % 10 == 0:
                    gpus.mesh.synchronize(stream=mine)
            gpus.mesh.synchronize(stream=mine)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work_on, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return _right(works, f"{2 * CALLS} launches")


def destroyed_stream(gpus: Gpus) -> str:
    """Launches on streams that are destroyed when their work is done."""
    work, driver = GemmRs(gpus, *SIZES[0]), gpus.mesh.driver
    for _ in range(3):
        mine: list[int] = []
        for rank in gpus.mesh.local:
            with gpus.mesh.current(rank):
                mine.append(int(driver.cuStreamCreate(int(driver.api.CUstream_flags.CU_STREAM_NON_BLOCKING))))
        work.call(stream=mine)
        gpus.mesh.synchronize(stream=mine)
        for rank, stream in zip(gpus.mesh.local, mine, strict=True):
            with gpus.mesh.current(rank):
                driver.cuStreamDestroy(stream)
    work.call()
    synchronize(gpus)
    return _right([work], "4 launches")


def closed(gpus: Gpus) -> str:
    """A mesh after its end; another one works."""
    m, n, k = SIZES[0]
    mesh = _mesh(gpus.mesh.ranks, virtual=gpus.mesh.shares_gpu)
    others = Gpus(mesh, gpus.torch)
    work = GemmRs(others, m, n, k)
    work.call()
    synchronize(gpus)
    mesh.close()
    told = _refused("PK857", work.call)
    again = GemmRs(Gpus(_mesh(gpus.mesh.ranks, virtual=gpus.mesh.shares_gpu), gpus.torch), m, n, k)
    again.call()
    synchronize(gpus)
    return f"{told}; {_right([again], 'on another mesh')}"


CHECKS: Sequence[Callable[[Gpus], str]] = (
    same_array_twice,
    overlapping_views,
    unaligned,
    not_contiguous,
    freed,
    two_streams,
    two_threads,
    closed,
    destroyed_stream,
)


def _refused(code: str, call: Callable[[], object]) -> str:
    """The call is refused with this code, at a line of this file or of the one that makes the call."""
    try:
        call()
    except PkcError as error:
        text = str(error)
        if code in text and "tests/gpu/" in text:
            return code
        raise Failure(text) from None
    raise Failure(f"it is launched, without {code}")


def _right(works: Sequence[GemmRs], what: str) -> str:
    worst = max(work.check() for work in works)
    return f"{what}, error/bound {worst:.3f}"


def _drawn(gpus: Gpus, *shape: int) -> Any:
    """A private array of one GPU."""
    return gpus.of_rank(1, 0, gpus.mesh.local[0].device, *shape)


def _mesh(ranks: int, *, virtual: bool) -> Mesh:
    return Mesh.virtual(ranks) if virtual else Mesh.single_process(range(ranks))


def _told(gpus: Gpus) -> Iterator[bool]:
    for check in CHECKS:
        began = time.perf_counter()
        try:
            told, right = check(gpus), True
        except (PkcError, Failure) as error:
            told, right = f"FAILED: {error}", False
        print(f"{check.__name__:18} {time.perf_counter() - began:6.2f} s  {told}", flush=True)
        yield right


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--virtual", action="store_true", help="all ranks on one GPU")
    given = parser.parse_args(arguments)
    present.gpus(1 if given.virtual else given.ranks)
    torch = importlib.import_module("torch")
    gpus = Gpus(_mesh(given.ranks, virtual=given.virtual), torch)
    right = list(_told(gpus))
    print(f"{sum(right)} of {len(right)} kinds of misuse are refused or right", flush=True)
    sys.stdout.flush()
    # A kernel that hangs would keep the interpreter from ending.
    os._exit(not all(right))


if __name__ == "__main__":
    main(sys.argv[1:])
