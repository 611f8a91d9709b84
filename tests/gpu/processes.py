"""Scripts that run in a process for each GPU, under torchrun, within a time limit."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from pkc.bench.record import commit
from tests.gpu import present

ROOT = Path(__file__).parents[2]


def run(script: str, arguments: Sequence[str], ranks: int, limit: float, *, torchrun: bool) -> bool:
    """Run a module or a file in other processes: one for each of the first `ranks` GPUs, or one without `torchrun`.

    Returns whether it ended well in time.
    """
    command = [sys.executable]
    if torchrun:
        command += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    command += [script] if script.endswith(".py") else ["-m", script]
    environment = dict(os.environ)
    environment["CUDA_VISIBLE_DEVICES"] = ",".join(present.names(ranks)[:ranks])
    for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        environment.pop(name, None)
    process = subprocess.Popen([*command, *arguments], cwd=ROOT, env=environment)
    try:
        return process.wait(limit) == 0
    except subprocess.TimeoutExpired:
        print(f"{script} {' '.join(arguments)} FAILED: not done after {limit} s", flush=True)
        return False
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(40)
        process.kill()


def end(right: bool, path: Path | None, command: str, rows: Sequence[Any]) -> NoReturn:
    """End a process that has measured, and write its figures, if it has any, with what makes them reproducible."""
    if path is not None and rows:
        torch: Any = importlib.import_module("torch")
        device = torch.cuda.get_device_name()
        about = {"command": command, "commit": commit(), "device": device, "torch": torch.__version__}
        path.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n", "utf-8")
    sys.stdout.flush()
    os._exit(not right)
