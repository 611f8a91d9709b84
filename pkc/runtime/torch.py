"""Arrays of a mesh as torch tensors, and the streams of torch. Only this module imports torch, when it is called."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pkc.diagnostics import PkcError
from pkc.location import NOWHERE
from pkc.runtime.element import ELEMENTS
from pkc.runtime.errors import CaptureElsewhere, NoTorch, TorchNeeded

if TYPE_CHECKING:
    from pkc.runtime.arrays import View
    from pkc.runtime.mesh import Mesh


class NoTorchError(PkcError, ImportError):
    """Raised without torch by modules that need it; an `ImportError` as of any module that is missing."""


def require(module: str) -> None:
    """Import torch for a module of pkc. Raises `PkcError`."""
    try:
        importlib.import_module("torch")
    except ImportError as error:
        raise NoTorchError(TorchNeeded(NOWHERE, module, str(error))) from None


def tensor(view: View) -> Any:
    """A torch tensor in the memory of a view: what `array.local(rank)` gives, without a copy. Raises `PkcError`."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise PkcError(NoTorch(NOWHERE, str(error))) from None
    plain = torch.as_tensor(view, device=f"cuda:{view.device}")
    return plain.view(getattr(torch, ELEMENTS[view.dtype].torch))


def current_streams(mesh: Mesh) -> tuple[list[int], int | None] | None:
    """Torch's current streams of the ranks of this process, as `Mesh.streams` gives streams.

    `None` if the program does not use torch on GPUs. In a stream capture, and if ranks share a GPU, all are forked
    from one stream. Raises `PkcError`.
    """
    torch, devices = sys.modules.get("torch"), mesh.devices
    stream_of = None if torch is None else _streams(torch)
    if torch is None or stream_of is None:
        return None
    if len(devices) == 1:
        return [stream_of(devices[0])], None
    cuda, first = torch.cuda, mesh.local[0]
    if cuda.is_current_stream_capturing():
        if cuda.current_device() != first.device:
            raise PkcError(CaptureElsewhere(NOWHERE, cuda.current_device(), first.rank, first.device))
        return mesh.streams(cuda.current_stream(first.device))
    if mesh.shares_gpu:
        return mesh.streams(cuda.current_stream(first.device))
    return [stream_of(rank.device) for rank in mesh.local], None


@functools.cache
def _streams(torch: Any) -> Callable[[int], int] | None:
    """The current stream of a GPU as a number; `None` if torch has no GPUs."""
    cuda = torch.cuda
    if not cuda.is_available():
        return None
    number = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)
    if number is None:
        return lambda device: cuda.current_stream(device).cuda_stream
    cuda.init()  # as a stream in Python would
    return number
