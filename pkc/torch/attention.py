"""What the attention operators of `torch.ops.pkc` do, the shapes of their results, and their gradients.

Tensors are [batch, heads, positions, features]. K and V may have fewer heads than Q, of which each serves several of Q
that lie side by side. With `causal` the last row sees all keys, and each row before it one less. `scale` multiplies the
scores; by default it is 1 / sqrt(features).
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pkc.dialect.blocks import Block, zigzag_halves
from pkc.torch import attending, fused, plain
from pkc.torch.groups import calls_of, keep
from pkc.torch.operators import layout_of, ranks_of

torch: Any = importlib.import_module("torch")
_c10d: Any = importlib.import_module("torch.distributed.distributed_c10d")

ATTENTION, RING, ULYSSES = "attention", "ring_attention", "ulysses_attention"
BACKWARD, RING_BACKWARD, ULYSSES_BACKWARD = (f"{name}_backward" for name in (ATTENTION, RING, ULYSSES))

_calls: dict[object, Any] = {}
"""What attention on one device does, by layout of its tensors."""


def attention(Q: Any, K: Any, V: Any, causal: bool = False, scale: float | None = None) -> tuple[Any, Any]:
    """softmax(Q K^T * scale) V, and the log-sum-exp of each row of scores, to base 2, as f32 (f64 for f64).

    Rows that see nothing give zeros. Raises `ValueError` and `PkcError`.
    """
    layout = causal, scale, *map(layout_of, (Q, K, V))
    call = _calls.get(layout)
    if call is None:
        factor = _checked(ATTENTION, Q, K, V, scale)
        if _has_kernel(ATTENTION, Q, K):
            call = attending.Attention(Q, K, causal=causal, scale=factor)
        else:
            call = partial(plain.attention, causal=causal, scale=factor)
        keep(_calls, layout, call)
    return call(Q, K, V)


def attention_backward(
    grad: Any, Q: Any, K: Any, V: Any, out: Any, sums: Any, causal: bool = False, scale: float | None = None
) -> tuple[Any, Any, Any]:
    """The gradients of Q, K and V, from that of what `attention` gave for them, `out` and `sums`. Raises `PkcError`."""
    layout = BACKWARD, causal, scale, *map(layout_of, (grad, Q, K, V, out, sums))
    call = _calls.get(layout)
    if call is None:
        factor = _checked(BACKWARD, Q, K, V, scale)
        if _has_kernel(BACKWARD, Q, K, attending.MOST_BACKWARD):
            call = attending.AttentionBackward(Q, K, causal=causal, scale=factor)
        else:
            call = partial(plain.attention_backward, causal=causal, scale=factor)
        keep(_calls, layout, call)
    return call(grad, Q, K, V, out, sums)


def ring_attention(
    Q: Any,
    K: Any,
    V: Any,
    group_name: str,
    causal: bool = False,
    scale: float | None = None,
    zigzag: bool = False,
) -> tuple[Any, Any]:
    """Attention over a sequence of which each rank has a shard, equally long ones, and the log-sum-exp of each row, as
    of `attention`; K and V come round the ring.

    With `zigzag` shards are in zigzag order (docs/language.md, section 3), so that with `causal` all ranks have the
    same work. Raises `ValueError` and `PkcError`.
    """
    kernel, shards = attending.RingAttention, (Q, K, V)
    return _spread(RING, shards, kernel, _gathered, shards, group_name, causal=causal, scale=scale, zigzag=zigzag)


def ring_attention_backward(
    grad: Any,
    Q: Any,
    K: Any,
    V: Any,
    out: Any,
    sums: Any,
    group_name: str,
    causal: bool = False,
    scale: float | None = None,
    zigzag: bool = False,
) -> tuple[Any, Any, Any]:
    """The gradients of this rank's shards of Q, K and V, from that of what `ring_attention` gave for them, `out` and
    `sums`. Raises `PkcError`."""
    ways = attending.RingBackward, _gathered_backward
    given = grad, Q, K, V, out, sums
    return _spread(RING_BACKWARD, (Q, K, V), *ways, given, group_name, causal=causal, scale=scale, zigzag=zigzag)


def ulysses_attention(Q: Any, K: Any, V: Any, group_name: str, causal: bool = False, scale: float | None = None) -> Any:
    """Attention over a sequence of which each rank has a shard, equally long ones; each rank computes some heads.

    Raises `ValueError` and `PkcError`.
    """
    shards = Q, K, V
    return _spread(ULYSSES, shards, _by_heads, _result_alone, shards, group_name, causal=causal, scale=scale)


def _spread(
    operator: str,
    shards: tuple[Any, Any, Any],
    kernel: Callable[..., Any],
    otherwise: Callable[..., Any],
    given: Sequence[Any],
    group: str,
    *,
    causal: bool,
    scale: float | None,
    zigzag: bool = False,
) -> Any:
    """What `kernel`, made for shards of Q, K and V, does with the tensors `given`; `otherwise`, where none can be."""
    calls = calls_of(group)
    layout = operator, causal, scale, zigzag, *map(layout_of, given)
    call = calls.get(layout)
    if call is None:
        most = attending.MOST_BACKWARD if operator == RING_BACKWARD else attending.MOST
        factor, (q, k, _) = _checked(operator, *shards, scale), shards
        options = {"group": group, "causal": causal, "scale": factor, "zigzag": zigzag}
        spread = ranks_of(group) > 1 and _has_kernel(operator, q, k, most)
        call = kernel(q, k, **options) if spread else partial(otherwise, **options)
        keep(calls, layout, call)
    return call(*given)


def _by_heads(q: Any, k: Any, *, group: str, causal: bool, scale: float, zigzag: bool) -> Callable[..., Any]:
    assert not zigzag
    attend = attending.UlyssesAttention(q, group, causal=causal, scale=scale)
    return partial(_for_each_head, attend, q.shape[1] // k.shape[1])


def _for_each_head(attend: Callable[..., Any], each: int, q: Any, k: Any, v: Any) -> Any:
    """Attention with heads of K and V as often as heads of Q use them."""
    return attend(q, *(tensor.repeat_interleave(each, 1) if each > 1 else tensor for tensor in (k, v)))


def _gathered(
    Q: Any, K: Any, V: Any, *, group: str, causal: bool, scale: float | None, zigzag: bool = False
) -> tuple[Any, Any]:
    """The same by a gather of all keys, one piece of this rank's rows after the other, and log-sum-exps."""
    order = _Order(Q, group, zigzag=zigzag)
    k, v = order.gathered(K), order.gathered(V)
    pieces = [attention(q, k[:, :, :stop], v[:, :, :stop], causal, scale) for q, stop in order.pieces(Q, causal)]
    out, sums = zip(*pieces, strict=True)
    return torch.cat(out, 2), torch.cat(sums, 2)


def _result_alone(*given: Any, **options: Any) -> Any:
    return _gathered(*given, **options)[0]


def _gathered_backward(
    grad: Any,
    Q: Any,
    K: Any,
    V: Any,
    out: Any,
    sums: Any,
    *,
    group: str,
    causal: bool,
    scale: float | None,
    zigzag: bool = False,
) -> tuple[Any, Any, Any]:
    """Gradients by a gather of all keys; those of keys and values are summed over the ranks in f32."""
    order = _Order(Q, group, zigzag=zigzag)
    k, v = order.gathered(K), order.gathered(V)
    wide = torch.promote_types(K.dtype, torch.float32)
    totals = [torch.zeros_like(k, dtype=wide, memory_format=torch.contiguous_format) for _ in range(2)]
    of_rows: list[Any] = []
    for (q, stop), *others in zip(*(order.pieces(tensor, causal) for tensor in (Q, grad, out, sums)), strict=True):
        g, o, logs = (piece for piece, _ in others)
        mine, *others = attention_backward(g, q, k[:, :, :stop], v[:, :, :stop], o, logs, causal, scale)
        of_rows.append(mine)
        for total, other in zip(totals, others, strict=True):
            total[:, :, :stop] += other
    return torch.cat(of_rows, 2), *(order.scattered(total).to(K.dtype).contiguous() for total in totals)


class _Order:
    """The positions of the ranks' shards."""

    def __init__(self, like: Any, group: str, *, zigzag: bool) -> None:
        self._group, self._ranks = group, ranks_of(group)
        self._rank: int = _c10d._resolve_process_group(group).rank()
        length = like.shape[2]
        self.extent = length * self._ranks
        self._halves: list[list[Block]] = [
            zigzag_halves(self.extent, self._ranks, rank) if zigzag else [Block(rank * length, length)]
            for rank in range(self._ranks)
        ]

    def pieces(self, mine: Any, causal: bool) -> list[tuple[Any, int]]:
        """This rank's rows that lie side by side, each with the number of keys that its last row sees; at least one."""
        found: list[tuple[Any, int]] = []
        at = 0
        for half in self._halves[self._rank]:
            found.append((mine.narrow(2, at, half.length), half.start + half.length if causal else self.extent))
            at += half.length
        return [piece for piece in found if piece[0].shape[2]] or found[:1]

    def gathered(self, mine: Any) -> Any:
        """All ranks' shards in the order of positions."""
        shards = plain.gather(mine, 2, self._ranks, self._group).chunk(self._ranks, 2)
        pieces: list[tuple[int, Any]] = []
        for shard, halves in zip(shards, self._halves, strict=True):
            at = 0
            for half in halves:
                pieces.append((half.start, shard.narrow(2, at, half.length)))
                at += half.length
        return torch.cat([piece for _, piece in sorted(pieces, key=lambda found: found[0])], 2)

    def scattered(self, whole: Any) -> Any:
        """This rank's shard of the sum of what all ranks have for all positions."""
        pieces = [whole.narrow(2, half.start, half.length) for halves in self._halves for half in halves]
        return plain.scatter(torch.cat(pieces, 2), 2, self._ranks, self._group)


def _has_kernel(operator: str, Q: Any, K: Any, most: int = attending.MOST) -> bool:
    if Q.device.type != "cuda":
        return False
    reason = attending.obstacle(Q, K, most)
    if reason:
        fused.tell(operator, reason)
    return not reason


def _checked(operator: str, Q: Any, K: Any, V: Any, scale: float | None) -> float:
    """The factor of scores. Raises `ValueError` unless Q can attend to these keys and values."""
    if len(Q.shape) != 4 or len(K.shape) != 4:
        raise ValueError(f"{operator}: tensors have four dimensions: batch, heads, positions, features")
    if K.shape != V.shape or K.shape[0] != Q.shape[0] or K.shape[3] != Q.shape[3]:
        raise ValueError(f"{operator}: K is {list(K.shape)} and V is {list(V.shape)}, Q is {list(Q.shape)}")
    if not (Q.dtype == K.dtype == V.dtype):
        raise ValueError(f"{operator}: K is {K.dtype} and V is {V.dtype}, Q is {Q.dtype}")
    if Q.shape[1] % K.shape[1]:
        raise ValueError(f"{operator}: {Q.shape[1]} heads of Q cannot share {K.shape[1]} of K and V evenly")
    if operator in (RING, RING_BACKWARD, ULYSSES) and Q.shape[2] != K.shape[2]:
        raise ValueError(f"{operator}: a shard has {Q.shape[2]} positions of Q and {K.shape[2]} of K")
    if scale is not None and not scale > 0:
        raise ValueError(f"{operator}: scale is {scale}; it must be greater than 0")
    return 1 / math.sqrt(Q.shape[3]) if scale is None else scale


# Shapes


def fake_attention(Q: Any, K: Any, V: Any, causal: bool = False, scale: float | None = None) -> tuple[Any, Any]:
    _checked(ATTENTION, Q, K, V, scale)
    return _fake_rows(Q)


def _fake_rows(Q: Any) -> tuple[Any, Any]:
    sums = torch.promote_types(Q.dtype, torch.float32)
    return Q.new_empty(Q.shape), Q.new_empty(Q.shape[:-1], dtype=sums)


def fake_backward(
    grad: Any, Q: Any, K: Any, V: Any, out: Any, sums: Any, causal: bool = False, scale: float | None = None
) -> tuple[Any, Any, Any]:
    return Q.new_empty(Q.shape), K.new_empty(K.shape), V.new_empty(V.shape)


def fake_ring(
    Q: Any, K: Any, V: Any, group_name: str, causal: bool = False, scale: float | None = None, zigzag: bool = False
) -> tuple[Any, Any]:
    _checked(RING, Q, K, V, scale)
    return _fake_rows(Q)


def fake_ring_backward(
    grad: Any,
    Q: Any,
    K: Any,
    V: Any,
    out: Any,
    sums: Any,
    group_name: str,
    causal: bool = False,
    scale: float | None = None,
    zigzag: bool = False,
) -> tuple[Any, Any, Any]:
    return fake_backward(grad, Q, K, V, out, sums)


def fake_ulysses(Q: Any, K: Any, V: Any, group_name: str, causal: bool = False, scale: float | None = None) -> Any:
    _checked(ULYSSES, Q, K, V, scale)
    return Q.new_empty(Q.shape)


# Gradients


def attention_context(ctx: Any, inputs: Any, output: Any) -> None:
    Q, K, V, ctx.causal, ctx.scale = inputs
    ctx.save_for_backward(Q, K, V, *output)
    ctx.mark_non_differentiable(output[1])


def attention_gradients(ctx: Any, grad: Any, _: Any) -> tuple[Any, ...]:
    found = torch.ops.pkc.attention_backward(grad, *ctx.saved_tensors, ctx.causal, ctx.scale)
    return *found, None, None


def ring_context(ctx: Any, inputs: Any, output: Any) -> None:
    Q, K, V, ctx.group, ctx.causal, ctx.scale, ctx.zigzag = inputs
    ctx.save_for_backward(Q, K, V, *output)
    ctx.mark_non_differentiable(output[1])


def ring_gradients(ctx: Any, grad: Any, _: Any) -> tuple[Any, ...]:
    found = torch.ops.pkc.ring_attention_backward(
        grad, *ctx.saved_tensors, ctx.group, ctx.causal, ctx.scale, ctx.zigzag
    )
    return *found, None, None, None, None


def ulysses_context(ctx: Any, inputs: Any, output: Any) -> None:
    Q, K, V, ctx.group, ctx.causal, ctx.scale = inputs
    ctx.save_for_backward(Q, K, V)


def ulysses_gradients(ctx: Any, grad: Any) -> tuple[Any, ...]:
    found = torch.ops.pkc.ulysses_attention_backward(grad, *ctx.saved_tensors, ctx.group, ctx.causal, ctx.scale)
    return *found, None, None, None


def ulysses_attention_backward(
    grad: Any, Q: Any, K: Any, V: Any, group_name: str, causal: bool = False, scale: float | None = None
) -> tuple[Any, Any, Any]:
    """The gradients of this rank's shards of Q, K and V, from that of what `ulysses_attention` gave for them, which is
    computed again as ring attention computes it. Raises `PkcError`."""
    found = ring_attention(Q, K, V, group_name, causal, scale)
    return ring_attention_backward(grad, Q, K, V, *found, group_name, causal, scale)


def fake_ulysses_backward(
    grad: Any, Q: Any, K: Any, V: Any, group_name: str, causal: bool = False, scale: float | None = None
) -> tuple[Any, Any, Any]:
    return Q.new_empty(Q.shape), K.new_empty(K.shape), V.new_empty(V.shape)
