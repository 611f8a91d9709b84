"""Ctrl-C while a kernel waits for ever: the process ends at once, nothing is left, and the GPU is usable.

    python -m tests.gpu.interrupt                # 2 virtual ranks of one GPU

A process launches gemm_rs without its signals (`tests.gpu.hang`), whose waits end after 30 s, and waits in
`mesh.synchronize`; it is interrupted there. Then another one runs the whole kernel.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pkc.codegen.build import build
from pkc.driver.compiler import load
from pkc.driver.hardware import Call, run_on_gpus
from pkc.runtime.mesh import Mesh
from pkc.sim.draw import draw_inputs
from pkc.sim.program import Program
from pkc.sim.reference import compare, reference
from tests.gpu import present
from tests.gpu.hang import DIMS, PATH, mutant

AT_ONCE = 5.0
WAITING = "waiting"

say = partial(print, flush=True)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--role", choices=("waits", "runs"), help="what a process of this script does")
    given = parser.parse_args(arguments)
    if given.role == "waits":
        return _waits()
    if given.role == "runs":
        return _runs()
    present.gpus(1)
    before = set(Path("/dev/shm").iterdir())
    passed = _interrupted()
    left = [path.name for path in set(Path("/dev/shm").iterdir()) - before]
    again = subprocess.run(_command("runs"), check=False).returncode
    say(f"ended {passed:.2f} s after it was interrupted; left in shared memory: {left or 'nothing'}")
    say(f"the whole kernel, by another process: {'right' if again == 0 else 'WRONG'}")
    return int(passed > AT_ONCE or bool(left) or again != 0)


def _command(role: str) -> list[str]:
    return [sys.executable, "-m", "tests.gpu.interrupt", "--role", role]


def _interrupted() -> float:
    """The seconds until a process that waits has ended."""
    process = subprocess.Popen(_command("waits"), stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if line.strip() == WAITING:
                break
        time.sleep(1.0)
        began = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        process.wait(60)
        return time.monotonic() - began
    finally:
        process.kill()


def _waits() -> int:
    mesh = Mesh.virtual(2)
    inputs = draw_inputs(load(PATH).module, ranks=mesh.ranks, dims=DIMS, seed=1)
    call = Call(mutant(), mesh, DIMS, inputs)
    call.launch()
    say(WAITING)
    mesh.synchronize(60.0)
    return 0


def _runs() -> int:
    mesh, compiled = Mesh.virtual(2), load(PATH)
    inputs = draw_inputs(compiled.module, ranks=mesh.ranks, dims=DIMS, seed=2)
    (outputs,) = run_on_gpus(build(load(PATH, level="machine").module), mesh, DIMS, inputs)
    expected = reference(compiled.module, ranks=mesh.ranks, dims=DIMS, inputs=inputs)
    found = compare({array: outputs[array] for array in Program(compiled.kernel).outputs}, expected)
    return int(not all(item.ok for item in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
