"""Litmus tests on one GPU: what PTX or pkc forbids must never be seen.

    python -m tests.gpu.litmus                           # tests/litmus/*.litmus, a million instances of each
    python -m tests.gpu.litmus --only mma. --json out.json

Each test is compiled from its statement (`tests/litmus/cuda.py`); ranks are CTAs of this GPU. Prints for each how often
the outcome that it asks for was seen, of how many instances, apart for those whose locations had been read before.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import multiprocessing
import os
import struct
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pkc.codegen.nvrtc import compile_cuda
from pkc.runtime.driver import Driver, load
from pkc.targets import DEFAULT
from pkc.targets.target import lookup
from tests.gpu import present
from tests.litmus.__main__ import FILES, ptx
from tests.litmus.cuda import source_of, threads_of
from tests.litmus.kernel import locations_of, ranks_of, uses_mma, weakened
from tests.litmus.places import OPERAND, Places, counters_of, outcomes_of
from tests.litmus.statements import Litmus, parse_file
from tests.litmus.verdicts import verdict_of

WAYS = ((16, 4), (512, 32), (4096, 8), (8192, 8))
"""How instances are launched, in equal shares: the bytes of a location, and the most CTAs of an SM."""

MMA_WAYS = ((OPERAND, 2), (OPERAND, 16))

BYTES = 1 << 28
"""The most bytes of a location, of all instances of a launch."""

MOST_GROUPS = 1 << 13
"""More than fit a GPU."""

say = partial(print, flush=True)


@dataclass(frozen=True)
class Seen:
    """What a test has shown."""

    name: str
    ptx: str
    pkc: str
    hole: bool
    """Whether the test says that pkc forbids more than PTX."""
    async_proxy: bool
    """Whether a thread copies, adds or multiplies through the async proxy."""
    instances: int
    seen: int
    seen_after_reading: int
    """Of the half of the instances that had read their locations before."""
    hung: int
    seconds: float

    @property
    def wrong(self) -> bool:
        """Whether something was seen that PTX forbids, or pkc without saying that PTX does not."""
        return self.was_seen and (self.ptx == "forbidden" or (self.pkc == "forbidden" and not self.hole))

    @property
    def was_seen(self) -> bool:
        return self.seen + self.seen_after_reading > 0


@dataclass(frozen=True)
class Made:
    test: Litmus
    pkc: str
    cubin: bytes


def make(test: Litmus) -> Made:
    """The machine code of a test, and pkc's verdict."""
    name = "".join(letter if letter.isalnum() else "_" for letter in test.name)
    return Made(test, str(verdict_of(test)), compile_cuda(source_of(test), lookup(DEFAULT).code, name).cubin)


class Gpu:
    """One GPU, with memory for the instances of a launch."""

    def __init__(self, driver: Driver, bytes_needed: int) -> None:
        self._driver = driver
        device = driver.cuDeviceGet(0)
        driver.cuCtxSetCurrent(driver.cuDevicePrimaryCtxRetain(device))
        self.name = bytes(driver.cuDeviceGetName(100, device)).split(b"\0")[0].decode()
        self._sms = driver.attribute("MULTIPROCESSOR_COUNT", device)
        self._bytes = bytes_needed
        self._memory = int(driver.cuMemAlloc(bytes_needed))

    def run(self, made: Made, instances: int) -> Seen:
        """As many launches as `instances` take."""
        driver, test = self._driver, made.test
        module = driver.cuModuleLoadData(made.cubin)
        litmus, count = (driver.cuModuleGetFunction(module, name) for name in (b"litmus", b"count"))
        began, seen, read, hung = time.monotonic(), 0, 0, 0
        ways = _ways(test)
        done = 0
        for size, most in ways:
            for number in range(-(-instances // len(ways) // _instances(size))):
                found = self._launch(test, litmus, count, size, most, number)
                done += _instances(size)
                seen, read, hung = seen + found[0], read + found[1], hung + found[2]
        driver.cuModuleUnload(module)
        seconds = round(time.monotonic() - began, 3)
        kind = test.explained.startswith("hole"), _through_async_proxy(test)
        return Seen(test.name, ptx(test), made.pkc, *kind, done, seen, read, hung, seconds)

    def _launch(self, test: Litmus, litmus: Any, count: Any, size: int, most: int, seed: int) -> Sequence[int]:
        driver, ranks, threads = self._driver, ranks_of(test), threads_of(test)
        resident = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(litmus, threads, 0)
        groups = min(int(resident), most) * self._sms // ranks
        places, end = places_of(test, size, groups)
        driver.cuMemsetD8(self._memory, 0, end)
        pointers = [self._memory + places[name] for name in ("data", "counters", "outcome", "meet", "counts")]
        run = struct.pack("<5Q4I", *pointers, groups, _instances(size), size, 7919 * seed)
        given = ctypes.create_string_buffer(run, len(run))
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(given))
        at = ctypes.addressof(parameters)
        driver.cuLaunchCooperativeKernel(litmus, groups * ranks, 1, 1, threads, 1, 1, 0, 0, at)
        driver.cuLaunchKernel(count, 4 * self._sms, 1, 1, 128, 1, 1, 0, 0, at, 0)
        found = bytearray(24)
        driver.cuMemcpyDtoH(found, pointers[4], len(found))
        return struct.unpack("<3Q", found)


def _through_async_proxy(test: Litmus) -> bool:
    return any(s.op.startswith(("tma.", "mma")) for thread in test.threads for s in thread.body)


def _ways(test: Litmus) -> Sequence[tuple[int, int]]:
    if uses_mma(test):
        return MMA_WAYS
    return [(size, most) for size, most in WAYS if size <= Places(test).stage_bytes]


def _instances(size: int) -> int:
    """The instances of a launch, for so many bytes of a location."""
    return min(1 << 17, BYTES // size)


def places_of(test: Litmus, size: int, groups: int) -> tuple[Mapping[str, int], int]:
    """Where the parts of memory begin, in bytes, and where the last one ends."""
    ranks, instances = ranks_of(test), _instances(size)
    sizes = {
        "data": len(locations_of(weakened(test))) * ranks * instances * size,
        "counters": len(counters_of(test)) * ranks * instances * 16,
        "outcome": (len(outcomes_of(test)) + 1) * instances * 16,
        "meet": groups * 16,
        "counts": 256,
    }
    places: dict[str, int] = {}
    end = 0
    for name, needed in sizes.items():
        places[name] = end
        end += -(-needed // 256) * 256
    return places, end


def chosen(only: str, files: Sequence[Path]) -> Iterator[Litmus]:
    """The tests that are modelled and whose name begins so."""
    for path in files:
        yield from (test for test in parse_file(path) if not test.unmodelled and test.name.startswith(only))


def line_of(seen: Seen) -> str:
    """A line of the table."""
    note = "  WRONG" if seen.wrong else ""
    return (
        f"{seen.name:28} PTX {seen.ptx:9}  pkc {seen.pkc:13} {seen.seen:8} + {seen.seen_after_reading:8} of"
        f" {seen.instances}, {seen.hung} hung, {seen.seconds:.2f} s{note}"
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.litmus", description=__doc__)
    parser.add_argument("--only", default="", help="tests whose name begins so")
    parser.add_argument("--instances", type=int, default=1_000_000)
    parser.add_argument("--json", type=Path, help="write what was seen here")
    parser.add_argument("--build", action="store_true", help="compile alone, into the cache")
    parser.add_argument("files", nargs="*", type=Path, default=FILES)
    given = parser.parse_args(arguments)
    if not given.build:
        present.gpus(1)
    tests = list(chosen(given.only, given.files))
    began = time.monotonic()
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        made = list(pool.map(make, tests))
    say(f"{len(made)} tests compiled and explored in {time.monotonic() - began:.1f} s")
    if given.build:
        return 0
    gpu = Gpu(load(), max(places_of(test, size, MOST_GROUPS)[1] for test in tests for size, _ in _ways(test)))
    found: list[Seen] = []
    for one in made:
        found.append(gpu.run(one, given.instances))
        say(line_of(found[-1]))
    return summed(gpu.name, found, given.json)


def summed(name: str, found: Sequence[Seen], path: Path | None) -> int:
    """Print the last lines, and write what was seen to a file; 1 if something forbidden was, or a wait did not end."""
    wrong = [seen for seen in found if seen.wrong]
    hung = [seen.name for seen in found if seen.hung and not seen.seen]
    total, seconds = sum(seen.instances for seen in found), sum(seen.seconds for seen in found)
    say(f"{name}: {len(found)} tests, {total} instances in {seconds:.1f} s")
    kinds = {
        "forbidden": [seen for seen in found if seen.ptx == "forbidden" or (seen.pkc == "forbidden" and not seen.hole)],
        "allowed by PTX, forbidden by pkc": [seen for seen in found if seen.hole],
    }
    kinds["allowed"] = [seen for seen in found if not any(seen in some for some in kinds.values())]
    for kind, some in kinds.items():
        through = [seen for seen in some if seen.async_proxy]
        say(
            f"{kind}: {sum(seen.was_seen for seen in some)} of {len(some)} were seen,"
            f" {sum(seen.was_seen for seen in through)} of {len(through)} through the async proxy"
        )
    for seen in wrong:
        say(f"- {seen.name} is forbidden, and was seen")
    for name in hung:
        say(f"- {name}: a wait did not end")
    if path is not None:
        lines = ",\n".join(json.dumps(asdict(seen)) for seen in found)
        path.write_text(f'{{"gpu": {json.dumps(name)}, "tests": [\n{lines}\n]}}\n', encoding="utf-8")
    return int(bool(wrong) or bool(hung))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
