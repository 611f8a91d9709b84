"""Processes that share one GPU, in place of several GPUs: their kernels take turns. For checks of results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class OnHost:
    """Torch's functional collectives through copies on the host: NCCL refuses processes of one GPU, and gloo's
    gathering of tensors on GPUs crashes (torch 2.11)."""

    def __init__(self, collectives: Any) -> None:
        self._of = collectives

    def __getattr__(self, name: str) -> Callable[..., Any]:
        collective = getattr(self._of, name)

        def call(tensor: Any, *rest: Any) -> Any:
            return self._of.wait_tensor(collective(tensor.cpu(), *rest)).to(tensor.device)

        return call

    def wait_tensor(self, tensor: Any) -> Any:
        return tensor


def use() -> None:
    """Let this process be one of several on a GPU."""
    from pkc.torch import groups, plain

    groups.SHARED_GPU = True
    plain._collectives = OnHost(plain._collectives)  # pyright: ignore[reportPrivateUsage]
