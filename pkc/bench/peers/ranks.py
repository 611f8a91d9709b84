"""The ranks of a measurement: one process for each GPU, and torch in an environment without NVLink multicast."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

NO_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}
"""The environment in which no library uses NVLink multicast; set before torch is imported, and children inherit it."""

TIMEOUT = 120.0
"""Seconds after which GPUs that have not finished count as hung."""


@functools.cache
def torch() -> Any:
    """The module torch, imported in an environment without NVLink multicast."""
    os.environ.update(NO_MULTICAST)
    return importlib.import_module("torch")


def dist() -> Any:
    return torch().distributed


@dataclass(frozen=True)
class Job:
    """This process: its rank, how many there are, its GPU."""

    rank: int
    ranks: int
    device: int

    @property
    def place(self) -> str:
        """Where tensors are, as torch spells it; device -1 is the host, for tests."""
        return "cpu" if self.device < 0 else f"cuda:{self.device}"

    def largest(self, values: Any) -> Any:
        """The element-wise largest of a tensor over all ranks."""
        if self.ranks > 1:
            dist().all_reduce(values, op=dist().ReduceOp.MAX)
        return values

    def total(self, values: Any) -> Any:
        """The element-wise sum of a tensor over all ranks."""
        if self.ranks > 1:
            dist().all_reduce(values)
        return values

    def any(self, problem: bool) -> bool:
        """Whether some rank has a problem."""
        return bool(self.largest(torch().tensor([float(problem)], device=self.place)).item())

    def leave(self) -> None:
        """End the process group, once all ranks have called this."""
        if self.ranks > 1:
            dist().destroy_process_group()


def join(environment: Mapping[str, str] = os.environ) -> Job:
    """Join the job that `torchrun` started, or be alone on the first GPU."""
    rank, ranks, local = (int(environment.get(name, default)) for name, default in _TORCHRUN)
    torch().cuda.set_device(local)
    if ranks > 1:
        device = torch().device("cuda", local)
        dist().init_process_group("nccl", device_id=device, timeout=timedelta(seconds=2 * TIMEOUT))
    return Job(rank, ranks, local)


_TORCHRUN = (("RANK", "0"), ("WORLD_SIZE", "1"), ("LOCAL_RANK", "0"))
