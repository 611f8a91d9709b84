"""Operators under `torch.autocast`: those that multiply take its element type, as `torch.matmul` does."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

torch: Any = importlib.import_module("torch")
_each: Any = importlib.import_module("torch.utils._pytree").tree_map_only


def autocast(device: str, operator: Callable[..., Any], multiplies: bool, kept: int | None) -> Callable[..., Any]:
    """Autocast's kernel of an operator for a device, "CPU" or "CUDA". Operands of an operator that multiplies are cast,
    but for the argument `kept`; nothing is cast further inside, nor in the gradients."""
    inside = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, f"Autocast{device}"))

    def kernel(*arguments: Any, **keywords: Any) -> Any:
        if multiplies:
            cast = partial(_cast, kind=torch.get_autocast_dtype(device.lower()), device=device.lower())
            arguments = tuple(
                [one if at == kept else _each(torch.Tensor, cast, one) for at, one in enumerate(arguments)]
            )
        with torch._C._ExcludeDispatchKeyGuard(inside):
            return operator(*arguments, **keywords)

    return kernel


def _cast(tensor: Any, kind: Any, device: str) -> Any:
    # As for torch's own matmuls, f64 stays.
    stays = not tensor.is_floating_point() or tensor.device.type != device or tensor.dtype == torch.float64
    return tensor if stays else tensor.to(kind)
