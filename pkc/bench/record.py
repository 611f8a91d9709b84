"""What makes a figure reproducible: machine, versions, commit, command; and the file of a measurement."""

from __future__ import annotations

import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pkc.bench.peers.ranks import Job, torch
from pkc.bench.peers.timing import FLUSH_BYTES
from pkc.version import VERSION

SCHEMA = 1
_SMI = "nvidia-smi"


def header(job: Job, repetitions: int, warmup: int) -> dict[str, Any]:
    """A record without results."""
    cuda = torch().cuda
    properties = cuda.get_device_properties(job.device)
    limits = _query("driver_version,clocks.max.sm,clocks.max.mem,power.limit")
    return {
        "schema": SCHEMA,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": shlex.join(["pkc", *sys.argv[1:]]),
        "commit": commit(),
        "machine": {
            "gpu": properties.name,
            "gpus": job.ranks,
            "sms": properties.multi_processor_count,
            "memory_gib": round(properties.total_memory / 2**30, 1),
            **dict(zip(("driver", "max_sm_mhz", "max_memory_mhz", "power_limit_w"), limits, strict=False)),
        },
        "versions": {
            "pkc": VERSION,
            "python": platform.python_version(),
            "torch": torch().__version__,
            "cuda": torch().version.cuda,
            "nccl": ".".join(map(str, cuda.nccl.version())),
        },
        "method": {
            "repetitions": repetitions,
            "warmup": warmup,
            "time": "of the slowest rank, by CUDA events, host excluded",
            "flush_bytes": FLUSH_BYTES,
            "hold": "verified in each repetition",
            "checked": "before timing, and what the last timed repetition made of poisoned results",
            "multicast": "off",
        },
        "results": [],
    }


def commit() -> str:
    """The commit of this copy of pkc, `+` if it has changes; `PKC_COMMIT` sets it for a copy without git history."""
    told = os.environ.get("PKC_COMMIT")
    if told:
        return told
    folder = Path(__file__).parents[2]
    if not (folder / ".git").exists():
        return "unknown"
    head = _output(["git", "-C", str(folder), "rev-parse", "HEAD"])
    changed = _output(["git", "-C", str(folder), "status", "--porcelain", "--untracked-files=no"])
    return (head.strip() or "unknown") + "+" * bool(changed.strip())


def write(path: Path, record: dict[str, Any]) -> None:
    """Write a file atomically. Raises `OSError`."""
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(f"{json.dumps(record, indent=1)}\n", encoding="utf-8")
    temporary.replace(path)


class Clocks:
    """The SM clock of a GPU in MHz, sampled by another process while something runs."""

    def __init__(self, device: int) -> None:
        command = [_SMI, f"--id={device}", "--query-gpu=clocks.sm", "--format=csv,noheader,nounits", "--loop-ms=100"]
        try:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except OSError:
            self._process = None

    def stop(self) -> dict[str, int]:
        """The least, the median and the highest of the samples; empty if there are none."""
        if self._process is None:
            return {}
        self._process.terminate()
        output, _ = self._process.communicate()
        return spread(output.splitlines())


def spread(lines: Sequence[str]) -> dict[str, int]:
    """The least, the median and the highest of the lines that are numbers."""
    values = [int(line) for line in lines if line.strip().isdecimal()]
    if not values:
        return {}
    return {"min": min(values), "median": int(statistics.median(values)), "max": max(values)}


def _query(fields: str) -> list[str]:
    output = _output([_SMI, f"--query-gpu={fields}", "--format=csv,noheader,nounits"])
    first, _, _ = output.partition("\n")
    return [value.strip() for value in first.split(",")] if first else []


def _output(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
