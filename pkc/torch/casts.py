"""Operators under `torch.autocast`: those that multiply take its element type, as `torch.matmul` does."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

torch: Any = importlib.import_module("torch")


def autocast(device: str, operator: Callable[..., Any], multiplies: bool, kept: int | None) -> Callable[..., Any]:
    """Autocast's kernel of an operator for a device, "CPU" or "CUDA". Operands of an operator that multiplies are cast,
    but for the argument `kept`; nothing is cast further inside, nor in the gradients."""
    inside = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, f"Autocast{device}"))

    def kernel(*arguments: Any, **keywords: Any) -> Any:
        if multiplies:
            kind = torch.get_autocast_dtype(device.lower())
            arguments = tuple(one if at == kept else _cast(one, kind, device) for at, one in enumerate(arguments))
        with torch._C._ExcludeDispatchKeyGuard(inside):
            return operator(*arguments, **keywords)

    return kernel


def _cast(argument: Any, kind: Any, device: str) -> Any:
    if isinstance(argument, list | tuple):
        several: Sequence[Any] = argument
        return [_cast(one, kind, device) for one in several]
    if not isinstance(argument, torch.Tensor) or not argument.is_floating_point():
        return argument
    # As for torch's own matmuls, f64 stays.
    other = argument.device.type != device.lower() or argument.dtype in (kind, torch.float64)
    return argument if other else argument.to(kind)
