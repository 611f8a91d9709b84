"""Arrays of a mesh as torch tensors. Only this module imports torch, and only when it is called."""

from __future__ import annotations

import importlib
from typing import Any

from pkc.runtime.arrays import View
from pkc.runtime.element import ELEMENTS


def tensor(view: View) -> Any:
    """A torch tensor in the memory of a view: what `array.local(rank)` gives, without a copy."""
    torch = importlib.import_module("torch")
    plain = torch.as_tensor(view, device=f"cuda:{view.device}")
    return plain.view(getattr(torch, ELEMENTS[view.dtype].torch))
