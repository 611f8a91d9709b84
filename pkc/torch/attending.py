"""Attention by pkc's kernels: on one GPU, and over a sequence that is spread over the ranks of a group."""

from __future__ import annotations

import importlib
import math
from collections.abc import Collection, Mapping
from typing import Any

from pkc.runtime.arrays import Array
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

RING, BACKWARD = "ring_attention", "backward"

_BY_ALL = {"overlap": "inter_sm", "comm_sms": "0"}
"""Gradients set their tiles, so that nothing is chosen for them. What comes round the ring all SMs fetch, beside their
MMAs: few SMs of its own are too slow for four ranks."""

_BY_FEW = {"overlap": "inter_sm", "comm_sms": "4"}
"""SMs that fetch and do nothing else, where the blocks of a task leave no room to fetch."""


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
        dims = {"B": batch, "H": heads, "G": groups, **_for_schedule(S=rows, T=keys)}
        constants = {"D": features, "group": heads // groups, "causal": causal}

        # Of keys that the diagonal cuts, a shorter block has fewer that are masked.
        shorter = {"tile_T": "96"} if causal else {}
        of_rows = loaded(place, kernels.example("attention_dq", kernels.type_name(q.dtype)), dims, constants, shorter)
        # Addresses that tasks share cost the MMAs of narrow heads less than the next task's keys are worth.
        single = {"task_stages": "1"} if features <= _NARROW and not causal else {}
        of_keys = loaded(place, kernels.example("attention_dkdv", kernels.type_name(q.dtype)), dims, constants, single)
        fixed = {"scale": scale * LOG2E}
        self.delta = _delta(q)
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


class UlyssesAttention:
    """Attention of tensors that are laid out as these, each of which is this rank's shard of the sequence."""

    def __init__(self, q: Any, group: str, *, causal: bool, scale: float) -> None:
        place = place_of(group)
        batch, heads, rows, features = q.shape
        shape = batch, heads, rows * place.mesh.ranks, features
        key = "ulysses_attention", q.dtype, shape, causal, scale
        if key not in place.sizes:
            arrays = [place.array(shape, q.dtype, "shard", 2, number=number) for number in range(4)]
            dims = {"B": batch, "H": heads, **_for_schedule(S=shape[2])}
            program = kernels.example("ulysses_attention", kernels.type_name(q.dtype))
            kernel = loaded(place, program, dims, {"D": features, "causal": causal})
            fixed = dict(zip("QKVO", arrays, strict=True))
            launch = Launch(kernel, (), {**fixed, "scale": scale * LOG2E})
            place.sizes[key] = launch, [array.tensor() for array in arrays]
        self._launch, self._shards = place.sizes[key]
        self._turn = place.turn

    def __call__(self, *given: Any) -> Any:
        *operands, out = self._shards
        with self._turn:
            for shard, tensor in zip(operands, given, strict=True):
                shard.copy_(tensor)
            self._launch()
            return out.clone(memory_format=torch.contiguous_format)


class RingAttention:
    """Attention of tensors that are laid out as these, each of which is this rank's shard of the sequence, and the
    log-sum-exp of each row, to base 2. K and V come round the ring."""

    def __init__(self, q: Any, k: Any, group: str, *, causal: bool, scale: float, zigzag: bool) -> None:
        ring = _Ring(q, k, group, causal=causal, scale=scale, zigzag=zigzag)
        if ring.key not in ring.place.sizes:
            arrays = {name: ring.array(k.shape) for name in ("K", "V")}
            spare = {"Q": ring.array(q.shape), "O": ring.array(q.shape), "L": ring.array(q.shape[:-1], torch.float32)}
            launch = ring.launch("grouped_ring_attention", spare, "OL", arrays, ring.groups)
            ring.place.sizes[ring.key] = launch, {name: array.tensor() for name, array in arrays.items()}
        self._launch, self._shards = ring.place.sizes[ring.key]
        self._turn = ring.place.turn

    def __call__(self, q: Any, k: Any, v: Any) -> tuple[Any, Any]:
        q = as_kernels_read(q)
        out, sums = torch.empty_like(q), q.new_empty(q.shape[:-1], dtype=torch.float32)
        with self._turn:
            for name, tensor in (("K", k), ("V", v)):
                self._shards[name].copy_(tensor)
            self._launch(q, out, sums)
        return out, sums


class RingBackward:
    """The gradients of attention of tensors that are laid out as these, each of which is this rank's shard of the
    sequence. For those of Q, K and V come round the ring; for those of K and V, Q and what belongs to its rows.

    Nothing is added up over ranks, and sums have one order. For their gradients K and V have as many heads as Q, which
    crosses no link; those of heads that share one are added up in f32.
    """

    def __init__(self, q: Any, k: Any, group: str, *, causal: bool, scale: float, zigzag: bool) -> None:
        ring = _Ring(q, k, group, causal=causal, scale=scale, zigzag=zigzag)
        self._shape, self._each = k.shape, ring.each
        key = BACKWARD, *ring.key
        if key not in ring.place.sizes:
            arrays = {name: ring.array(shape) for name, shape in (("Q", q.shape), ("dO", q.shape))}
            arrays |= {name: ring.array(k.shape) for name in ("K", "V")}
            arrays |= {name: ring.array(q.shape[:-1], torch.float32) for name in ("L", "delta")}
            found = {name: ring.array(q.shape) for name in ("dQ", "dK", "dV")}
            heads = {name: ring.array(q.shape) for name in ("K", "V")} if ring.each > 1 else {}
            rows, keys = ({name: found[name] for name in some} for some in (("dQ",), ("dK", "dV")))
            fetched = _fetched(q.shape[-1], causal=causal)
            of_rows = ring.launch("ring_attention_dq", rows, rows, arrays, ring.groups | ring.keys, fetched)
            of_keys = ring.launch("ring_attention_dkdv", keys, keys, arrays | heads, ring.keys, _BY_ALL)
            shards, more = ({name: one.tensor() for name, one in some.items()} for some in (arrays, heads))
            ring.place.sizes[key] = _delta(q), of_rows, of_keys, shards, more
        self._delta, self._of_rows, self._of_keys, self._shards, self._heads = ring.place.sizes[key]
        self._turn = ring.place.turn

    def __call__(self, grad: Any, q: Any, k: Any, v: Any, out: Any, logs: Any) -> tuple[Any, Any, Any]:
        shards, out = self._shards, as_kernels_read(out)
        found = torch.empty_like(q, memory_format=torch.contiguous_format)
        of_keys = [torch.empty_like(found) for _ in range(2)]
        with self._turn:
            for name, tensor in (("dO", grad), ("Q", q), ("K", k), ("V", v), ("L", logs)):
                shards[name].copy_(tensor)
            for name, shard in self._heads.items():
                shard.view(*self._shape[:2], self._each, *self._shape[2:]).copy_(shards[name][:, :, None])
            self._delta(shards["dO"], out, shards["delta"])
            self._of_rows(found)
            self._of_keys(*of_keys)
        return found, *map(self._of_heads, of_keys)

    def _of_heads(self, found: Any) -> Any:
        """The gradient of heads of K or V, of which each serves several of Q."""
        if self._each == 1:
            return found
        each = found.view(*self._shape[:2], self._each, *self._shape[2:])
        return each.sum(2, dtype=torch.float32).to(found.dtype)


class _Ring:
    """The arrays and kernels of a ring over which a sequence is spread."""

    def __init__(self, q: Any, k: Any, group: str, *, causal: bool, scale: float, zigzag: bool) -> None:
        self.place = place_of(group)
        batch, heads, rows, features = q.shape
        self.each = heads // k.shape[1]
        self.key = RING, q.dtype, q.shape, k.shape, causal, zigzag, scale
        self.groups = {"G": k.shape[1]}
        # Shards begin where TMA reads if their lengths, not that of the whole, are multiples.
        length = _for_schedule(shard=rows)["shard"] * self.place.mesh.ranks
        self.keys = {"T": length}
        self._dims = {"B": batch, "H": heads, "S": length}
        self._dtype, self._scale, self._arrays = q.dtype, scale * LOG2E, 0
        self._constants = {"D": features, "causal": causal, "zigzag": zigzag}

    def array(self, shard: tuple[int, ...], dtype: Any = None) -> Array:
        """An array of shards of this shape in memory that all ranks reach."""
        batch, heads, rows, *features = shard
        shape = batch, heads, rows * self.place.mesh.ranks, *features
        number, self._arrays = self._arrays, self._arrays + 1
        zigzag = bool(self._constants["zigzag"])
        return self.place.array(shape, dtype or self._dtype, "shard", 2, number=number, zigzag=zigzag)

    def launch(
        self,
        example: str,
        spare: Mapping[str, Array],
        results: Collection[str],
        arrays: Mapping[str, Array],
        dims: Mapping[str, int],
        schedule: Mapping[str, str] | None = None,
    ) -> Launch:
        """Launches of an example on its arrays, whose dimensions are those of Q and `dims`, and on tensors
        in place of the `spare` ones, the `results` among them."""
        constants = self._constants | ({"group": self.each} if "G" in dims else {})
        program = kernels.example(example, kernels.type_name(self._dtype))
        kernel = loaded(self.place, program, {**self._dims, **dims}, constants, schedule)
        return Launch(kernel, [*spare], {**arrays, "scale": self._scale}, (), spare, results)


def _delta(q: Any) -> Launch:
    """The sums of dO * O in each row."""
    batch, heads, rows, features = q.shape
    program = kernels.example("attention_delta", kernels.type_name(q.dtype))
    sizes = {"B": batch, "H": heads, **_for_schedule(S=rows)}
    return Launch(loaded(place_on(q.device.index), program, sizes, {"D": features}), ("dO", "O", "delta"), {})


def _tiles(features: int, *, causal: bool) -> dict[str, str]:
    """What is chosen for long sequences, whatever the sizes: the bits of a row then do not change with its batch."""
    if features <= _NARROW:
        return {"tile_S": "192", "tile_T": "128", "consumers": "3"}
    if features <= MOST_BACKWARD:
        return {"tile_S": "128", "tile_T": "128" if causal else "160"}
    return {"tile_S": "128", "tile_T": "80"}


def _fetched(features: int, *, causal: bool) -> dict[str, str]:
    """How the gradients of Q get keys of other ranks."""
    if features <= _NARROW:
        return _BY_ALL
    # Of keys that the diagonal cuts, a shorter block has fewer that are masked.
    return _BY_ALL | {"tile_T": "96"} if causal else _BY_FEW


def as_kernels_read(tensor: Any) -> Any:
    return aligned(tensor.contiguous())


def _for_schedule(**lengths: int) -> dict[str, int]:
    """Lengths for which schedules are chosen. Rows of f32 of any other multiple of 4 begin where TMA reads, too."""
    return {name: length if length % _TMA_ROW else kernels.rows_of_schedule(length) for name, length in lengths.items()}
