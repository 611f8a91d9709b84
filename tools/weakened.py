"""Mistakes made in a copy of pkc, each of which a named test must catch: the table of docs/testing.md, tried.

    python -m tools.weakened             # all, seven minutes on 16 cores; first every test as it is
    python -m tools.weakened barrier     # those whose words have this one
    python -m tools.weakened --jobs 8    # in so many copies at once; as many as there are cores by default

A mistake in one of these places changes nothing on the simulator.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from tools.mistake import Mistake
from tools.weakened_lately import LATELY
from tools.weakened_operands import OPERANDS

ROOT = Path(__file__).parents[1]

T = TypeVar("T")

_FAMILIES, _TABLE = "targets/sm_90a/families.py", "targets/sm_90a/synchronization.py"
_INLINE = "targets/sm_90a/inline_ptx.py"
_CHANNELS = "passes/machine/lowering/channels.py"
_BUILDING, _KEY = "driver/building.py", "cache.compiler(), release(), target, kernel, added, print_ir"

MISTAKES = (
    Mistake(
        "a barrier expects too many bytes",
        _CHANNELS,
        "emit.const(ring.by_bytes)",
        "emit.const(ring.by_bytes + 16)",
        "codegen/test_barriers.py",
    ),
    Mistake(
        "a barrier expects too few bytes",
        _CHANNELS,
        "emit.const(ring.by_bytes)",
        "emit.const(ring.by_bytes - 16)",
        "codegen/test_barriers.py",
    ),
    Mistake(
        "a barrier: one arrival more fills a stage",
        "passes/machine/lower_tiles.py",
        "emit.const(ring.filling)",
        "emit.const(ring.filling + 1)",
        "codegen/test_barriers.py",
    ),
    Mistake(
        "a barrier: one arrival more empties a stage",
        "passes/machine/lower_tiles.py",
        "emit.const(ring.emptying)",
        "emit.const(ring.emptying + 1)",
        "codegen/test_barriers.py",
    ),
    Mistake(
        "a barrier: waits for the other parity",
        _CHANNELS,
        'emit.bit_xor(phase, 1), "free"',
        'phase, "free"',
        "codegen/test_barriers.py",
    ),
    Mistake(
        "stores have been read, for complete",
        _TABLE,
        '"cp.async.bulk.wait_group 0;"',
        '"cp.async.bulk.wait_group.read 0;"',
        "codegen/test_instructions.py",
        "bulk or complete or stores",
    ),
    Mistake(
        "some stores have been read, for complete",
        _FAMILIES,
        'form, left = (".read" if match[1] == "read" else "")',
        'form, left = ".read"',
        "codegen/test_instructions.py",
        "bulk or complete or stores",
    ),
    Mistake("a masked access is not masked", _FAMILIES, "@p {ptx}", "{ptx}", "codegen/test_instructions.py", "masked"),
    Mistake(
        "halves of f16 swapped",
        "targets/sm_90a/instructions.py",
        "cvt.rn.f16x2.f32 %0, %2, %1;",
        "cvt.rn.f16x2.f32 %0, %1, %2;",
        "codegen/test_instructions.py",
        "low_half",
    ),
    Mistake(
        "the major of A is the other",
        _FAMILIES,
        "int(major_a == 'm')",
        "int(major_a == 'k')",
        "codegen/test_instructions.py",
        "major or mma",
    ),
    Mistake(
        "the major of B is the other",
        _FAMILIES,
        '{int(major_b == \'n\')}" if k == 16 and source == "s"',
        '{int(major_b == \'k\')}" if k == 16 and source == "s"',
        "codegen/test_instructions.py",
        "major or mma",
    ),
    Mistake(
        "modes of 32 and 64 bytes swapped",
        "passes/machine/lowering/mma.py",
        "64: 2, 32: 3",
        "64: 3, 32: 2",
        "codegen/test_mma.py",
    ),
    Mistake(
        "tensor maps of f16 for bf16",
        "runtime/element.py",
        '"bf16": Element(2, 9',
        '"bf16": Element(2, 6',
        "runtime/test_tensor_map.py",
    ),
    Mistake(
        "fast functions",
        "codegen/nvrtc.py",
        '"-lineinfo", ',
        '"-lineinfo", "--use_fast_math", ',
        "codegen/test_functions.py",
    ),
    Mistake(
        "a counter is compared without its sign",
        _TABLE,
        '" while ((int)(v - (unsigned)b) < 0);"',
        '" while (v < (unsigned)b);"',
        "codegen/test_instructions.py",
        "modulo",
    ),
    Mistake(
        "a counter is compared without its sign, guarded",
        _TABLE,
        '"if ((int)(v - (unsigned)b) >= 0) return;"',
        '"if (v >= (unsigned)b) return;"',
        "codegen/test_instructions.py",
        "guarded",
    ),
    Mistake(
        "a guarded wait has no limit",
        _INLINE,
        "if (now <= limit) continue;",
        "continue;",
        "codegen/test_instructions.py",
        "guarded",
    ),
    Mistake(
        "a guarded wait does not see the alarm",
        _INLINE,
        "if (!s) {{",
        "{{",
        "codegen/test_instructions.py",
        "guarded",
    ),
    Mistake(
        "a guarded wait gives up for what has come",
        _TABLE,
        "        _COUNTED,\n        report(",
        "        report(",
        "codegen/test_instructions.py",
        "guarded",
    ),
    Mistake(
        "waits in tasks report as those outside of them",
        "passes/machine/bound_waits.py",
        '"spin_guarded" if task is None else "spin_guarded_in_task"',
        '"spin_guarded"',
        "passes",
        "guard_waits",
    ),
    Mistake(
        "a launch does not look at the alarm",
        "runtime/launch.py",
        "if self._raised.value:",
        "if False:",
        "runtime/test_reports.py",
    ),
    Mistake(
        "nobody sees that a process has ended",
        "runtime/faults.py",
        "self._group.left() if",
        "() if",
        "runtime/test_faults.py",
    ),
    Mistake(
        "what waits for another process sees no alarm",
        "runtime/group.py",
        "            self.interrupt()\n",
        "",
        "runtime/test_faults.py",
    ),
    Mistake(
        "the cache has no instruments",
        _BUILDING,
        _KEY,
        _KEY.replace("added, ", ""),
        "codegen/test_build.py",
        "machine_code_depends",
    ),
    Mistake(
        "the cache has no passes",
        _BUILDING,
        _KEY,
        _KEY.replace("cache.compiler(), ", ""),
        "codegen/test_build.py",
        "machine_code_depends",
    ),
    Mistake(
        "the cache has no target",
        _BUILDING,
        _KEY,
        _KEY.replace("target, ", ""),
        "codegen/test_build.py",
        "machine_code_depends",
    ),
    Mistake(
        "the cache of texts has no instruments",
        "driver/builder.py",
        '"artifact of 1", about, release(), added, ',
        '"artifact of 1", about, release(), ',
        "codegen/test_build.py",
        "machine_code_depends",
    ),
    Mistake(
        "the cache of texts has no passes",
        "driver/kept.py",
        '"program 1", cache.compiler(), target, ',
        '"program 1", target, ',
        "codegen/test_build.py",
        "machine_code_depends",
    ),
    Mistake(
        "the cache of texts has no target",
        "driver/kept.py",
        '"program 1", cache.compiler(), target, ',
        '"program 1", cache.compiler(), ',
        "codegen/test_build.py",
        "machine_code_depends",
    ),
    Mistake(
        "the bound of functions is eight times as large",
        "dialect/error_bounds.py",
        "return 2 * ulps * UNIT",
        "return 16 * ulps * UNIT",
        "sim/test_ranges.py",
    ),
    Mistake(
        "rows of a stage at multiples of 8 bytes",
        "targets/layout.py",
        "CHUNK = 16",
        "CHUNK = 8",
        "codegen/test_layouts.py",
    ),
    Mistake(
        "one right output is enough",
        "cli/run.py",
        "return all(item.ok",
        "return any(item.ok",
        "cli/test_cli.py",
        "run or right or wrong",
    ),
    Mistake(
        "records that other ranks lose",
        "timeline/records.py",
        "sum(lost for _, _, lost in found)",
        "found[0][2]",
        "timeline/test_timeline.py",
    ),
    Mistake(
        "the first that is right, for the first that is wrong",
        "check/parallel.py",
        "strict=True) if yes",
        "strict=True) if not yes",
        "check/test_parallel.py",
    ),
    Mistake(
        "fetched stages take no room",
        "cost/estimate.py",
        "once += sum(fetched.stage_bytes",
        "once += 0 * sum(fetched.stage_bytes",
        "cost/test_estimate.py",
    ),
    Mistake(
        "streams beside a kernel are not forked",
        "runtime/beside.py",
        "                driver.cuStreamWaitEvent(first.stream, cleared, 0)\n",
        "                pass\n",
        "runtime/test_beside.py",
        "any_order or capture",
    ),
    Mistake(
        "streams beside a kernel are not joined",
        "runtime/beside.py",
        "                driver.cuStreamWaitEvent(stream, first.event, 0)\n",
        "                pass\n",
        "runtime/test_beside.py",
        "any_order or capture",
    ),
    *LATELY,
    *OPERANDS,
)
"""In the order of the table."""


def main(words: Sequence[str], jobs: int) -> int:
    """Print for each mistake whether its test fails; the exit status is 1 if one does not, or fails without it. Each of
    so many `jobs` has a copy of its own."""
    chosen = [mistake for mistake in MISTAKES if all(word in mistake.what for word in words)]
    tests = list(dict.fromkeys((mistake.test, mistake.select) for mistake in chosen))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        free, names = SimpleQueue[Path](), _tracked()
        for number in range(jobs):
            free.put(_copied(names, Path(folder) / str(number)))
        passed = pool.map(partial(_in_one, free, _passes), tests)
        wrong = [test for test, passes in zip(tests, passed, strict=True) if not passes]
        for test, select in wrong:
            print(f"fails as it is, or selects nothing: {test} {select}", flush=True)
        caught = sum(pool.map(partial(_in_one, free, _caught), chosen))
    print(f"{caught} of {len(chosen)} mistakes are caught")
    return int(caught < len(chosen) or bool(wrong))


def _in_one(free: SimpleQueue[Path], tried: Callable[[Path, T], bool], what: T) -> bool:
    """What is found in a copy that nobody else has meanwhile."""
    copy = free.get()
    try:
        return tried(copy, what)
    finally:
        free.put(copy)


def _tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.splitlines() if (ROOT / name).is_file()]


def _copied(names: Sequence[str], copy: Path) -> Path:
    for name in names:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)
    return copy


def _caught(copy: Path, mistake: Mistake) -> bool:
    path = copy / "pkc" / mistake.file
    text = path.read_text(encoding="utf-8")
    if mistake.old not in text:
        print(f"NOT THERE  {mistake.what}: {mistake.file} has no `{mistake.old}`", flush=True)
        return False
    path.write_text(text.replace(mistake.old, mistake.new), encoding="utf-8")
    caught = not _passes(copy, (mistake.test, mistake.select))
    path.write_text(text, encoding="utf-8")
    print(f"{'caught    ' if caught else 'NOT CAUGHT'} {mistake.what}: {mistake.test}", flush=True)
    return caught


def _passes(copy: Path, named: tuple[str, str]) -> bool:
    test, select = named
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"tests/{test}"]
    words = select.replace(",", " ").split()
    # The name of a case is no expression.
    is_name = not {"and", "or", "not"} & set(words)
    command += ["-k", " and ".join(words) if is_name else select] if select else []
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(copy)}
    return subprocess.run(command, cwd=copy, env=environment, capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help="only mistakes whose words have these; all without one"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="copies in which mistakes are made")
    options = parser.parse_args()
    sys.exit(main(options.words, options.jobs))
