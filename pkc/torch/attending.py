"""Attention by pkc's kernels: on one GPU, and over a sequence that is spread over the ranks of a group."""

from __future__ import annotations

import importlib
import math
from typing import Any

from pkc.runtime.launch import runs_on
from pkc.targets import DEFAULT, code_of
from pkc.torch import kernels
from pkc.torch.groups import place_of
from pkc.torch.launches import Launch, aligned, loaded, place_on

torch: Any = importlib.import_module("torch")

_STEP = 16
"""What the number of elements of a head is a multiple of."""

MOST, MOST_BACKWARD = 256, 128
"""The most elements of a head, and for gradients."""

_TMA_ROW = 4
"""Elements of f32 that TMA needs rows to be a multiple of."""

_NARROW = 64
"""Elements of heads of which an SM has three blocks of rows."""

_BESIDE = 2**28
"""Scores from which on it is worth two events that SMs go on with one gradient when they are done with the other."""

LOG2E = math.log2(math.e)


def obstacle(q: Any, k: Any, most: int = MOST) -> str:
    """Why no kernel attends to these; empty if one does."""
    features = q.shape[-1]
    if not q.numel() or not k.numel():
        return "a tensor has no elements"
    if features % _STEP or features > most:
        return f"heads of {features} elements; kernels take multiples of {_STEP} up to {most}"
    return unknown(q)


def unknown(tensor: Any) -> str:
    """Why kernels know nothing of a tensor's element type or GPU; empty if they do."""
    name = kernels.type_name(tensor.dtype)
    if name not in kernels.TYPES:
        return f"the element type is {name}; kernels take {' and '.join(kernels.TYPES)}"
    found = torch.cuda.get_device_capability(tensor.device)
    if not runs_on(code_of(DEFAULT), found):
        return f"the GPU has compute capability {found[0]}.{found[1]}; kernels are for {DEFAULT}"
    return ""


class Attention:
    """Attention of tensors that are laid out as these, and the log-sum-exp of each row, to base 2."""

    def __init__(self, q: Any, k: Any, *, causal: bool, scale: float) -> None:
        place = place_on(q.device.index)
        batch, heads, rows, features = q.shape
        groups, keys = k.shape[1:3]
        self._rows = q.shape[:-1]
        dims = {"B": batch, "H": heads, "G": groups, **_for_schedule(S=rows, T=keys)}
        constants = {"D": features, "group": heads // groups, "causal": causal}
        program = kernels.example("grouped_attention", kernels.type_name(q.dtype))
        kernel = loaded(place, program, dims, constants, _tiles(features, causal=causal))
        self._launch = Launch(kernel, ("Q", "K", "V", "O", "L"), {"scale": scale * LOG2E})

    def __call__(self, q: Any, k: Any, v: Any) -> tuple[Any, Any]:
        q = as_kernels_read(q)
        out, sums = torch.empty_like(q), q.new_empty(self._rows, dtype=torch.float32)
        self._launch(q, as_kernels_read(k), as_kernels_read(v), out, sums)
        return out, sums


class AttentionBackward:
    """The gradients of attention of tensors that are laid out as these. Sums have one order: results are the same each
    time."""

    def __init__(self, q: Any, k: Any, *, causal: bool, scale: float) -> None:
        place = place_on(q.device.index)
        batch, heads, rows, features = q.shape
        groups, keys = k.shape[1:3]
        own = {"B": batch, "H": heads, **_for_schedule(S=rows)}
        dims = {**own, "G": groups, **_for_schedule(T=keys)}
        constants = {"D": features, "group": heads // groups, "causal": causal}

        # Of keys that the diagonal cuts, a shorter block has fewer that are masked.
        shorter = {"tile_T": "96"} if causal else {}
        delta = loaded(place, kernels.example("attention_delta", kernels.type_name(q.dtype)), own, {"D": features})
        of_rows = loaded(place, kernels.example("attention_dq", kernels.type_name(q.dtype)), dims, constants, shorter)
        # Addresses that tasks share cost the MMAs of narrow heads less than the next task's keys are worth.
        single = {"task_stages": "1"} if features <= _NARROW and not causal else {}
        of_keys = loaded(place, kernels.example("attention_dkdv", kernels.type_name(q.dtype)), dims, constants, single)
        fixed = {"scale": scale * LOG2E}
        self.delta = Launch(delta, ("dO", "O", "delta"), {})
        self.of_rows = Launch(of_rows, ("Q", "K", "V", "dO", "L", "delta", "dQ"), fixed)
        self.of_keys = Launch(of_keys, ("Q", "K", "V", "dO", "L", "delta", "dK", "dV"), fixed)
        self._beside = torch.cuda.Stream(q.device) if batch * heads * rows * keys >= _BESIDE else None

    def __call__(self, grad: Any, q: Any, k: Any, v: Any, out: Any, logs: Any) -> tuple[Any, Any, Any]:
        q, k, v, grad, out, logs = map(as_kernels_read, (q, k, v, grad, out, logs))
        delta, found = torch.empty_like(logs), [torch.empty_like(tensor) for tensor in (q, k, v)]
        self.delta(grad, out, delta)
        here = torch.cuda.current_stream(q.device)
        if self._beside is not None:
            self._beside.wait_stream(here)
        self.of_rows(q, k, v, grad, logs, delta, found[0])
        with torch.cuda.stream(self._beside):
            self.of_keys(q, k, v, grad, logs, delta, *found[1:])
        if self._beside is not None:
            here.wait_stream(self._beside)
        return tuple(found)


class SpreadAttention:
    """Attention of tensors that are laid out as these, each of which is this rank's shard of the sequence."""

    def __init__(
        self, example: str, q: Any, group: str, *, causal: bool, scale: float, zigzag: bool | None = None
    ) -> None:
        place = place_of(group)
        batch, heads, rows, features = q.shape
        shape = batch, heads, rows * place.mesh.ranks, features
        key = example, q.dtype, shape, causal, zigzag, scale
        if key not in place.sizes:
            order = {} if zigzag is None else {"zigzag": zigzag}
            arrays = [place.array(shape, q.dtype, "shard", 2, number=number, **order) for number in range(4)]
            dims = {"B": batch, "H": heads, **_for_schedule(S=shape[2])}
            constants = {"D": features, "causal": causal, **order}
            kernel = loaded(place, kernels.example(example, kernels.type_name(q.dtype)), dims, constants)
            fixed = dict(zip("QKVO", arrays, strict=True))
            launch = Launch(kernel, (), {**fixed, "scale": scale * LOG2E})
            place.sizes[key] = launch, [array.tensor() for array in arrays]
        self._launch, self._shards = place.sizes[key]

    def __call__(self, *given: Any) -> Any:
        *operands, out = self._shards
        for shard, tensor in zip(operands, given, strict=True):
            shard.copy_(tensor)
        self._launch()
        return out.clone(memory_format=torch.contiguous_format)


def _tiles(features: int, *, causal: bool) -> dict[str, str]:
    """What is chosen for long sequences, whatever the sizes: the bits of a row then do not change with its batch."""
    if features <= _NARROW:
        return {"tile_S": "192", "tile_T": "128", "consumers": "3"}
    if features <= MOST_BACKWARD:
        return {"tile_S": "128", "tile_T": "128" if causal else "160"}
    return {"tile_S": "128", "tile_T": "80"}


def as_kernels_read(tensor: Any) -> Any:
    return aligned(tensor.contiguous())


def _for_schedule(**lengths: int) -> dict[str, int]:
    """Lengths for which schedules are chosen. Rows of f32 of any other multiple of 4 begin where TMA reads, too."""
    return {name: length if length % _TMA_ROW else kernels.rows_of_schedule(length) for name, length in lengths.items()}
