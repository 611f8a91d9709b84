"""The pass for torch.compile that replaces matmuls beside collectives by pkc's operators.

    pkc.torch.fuse_in_compile()  # before torch.compile runs

It looks at the functional collectives of a graph (`_c10d_functional`), and says of each that it leaves why.
"""

from __future__ import annotations

import importlib
import operator
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pkc.torch import kernels
from pkc.torch.operators import GATHER, REDUCE, SCATTER

torch: Any = importlib.import_module("torch")
importlib.import_module("torch.distributed._functional_collectives")

_aten: Any = torch.ops.aten
_collectives: Any = torch.ops._c10d_functional
_VIEWS = (_aten.view.default, _aten._unsafe_view.default, _aten.reshape.default)
_PRODUCTS = (_aten.mm.default, _aten.addmm.default)


@dataclass(frozen=True)
class Left:
    """A collective that stays as it is, where the program has it, and why."""

    collective: str
    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.collective} is not fused: {self.reason}"


class _Stays(Exception):
    """Why a collective stays."""


def fuse(graph: Any, types: Sequence[str] = (*kernels.TYPES,)) -> tuple[int, list[Left]]:
    """Replace matmuls beside collectives in an FX graph of aten operators, which has fake values as torch.compile's.

    Returns how many collectives were replaced, and those that were left. Only matmuls of the element `types` are
    replaced, by torch's names; by default those that have kernels.
    """
    forms: dict[Any, Callable[[Any, Sequence[str]], None]] = {
        _collectives.all_gather_into_tensor.default: _gather,
        _collectives.reduce_scatter_tensor.default: _scatter,
        _collectives.all_reduce.default: _reduce,
    }
    count, left = 0, list[Left]()
    for node in list(graph.nodes):
        form = forms.get(node.target) if node.op == "call_function" else None
        if form is None:
            continue
        try:
            form(node, types)
            count += 1
        except _Stays as reason:
            left.append(Left(node.target._schema.name.partition("::")[2], _place(node), str(reason)))
    graph.lint()
    return count, left


def fuse_in_compile(*, say: Callable[[str], object] | None = None) -> None:
    """Let every later `torch.compile` with Inductor replace matmuls beside collectives by pkc's operators.

    `say` gets a line for each collective that is left; by default they go to stderr.
    """
    config: Any = importlib.import_module("torch._inductor.config")
    earlier = config.post_grad_custom_pre_pass
    if hasattr(earlier, "behind"):  # this has been called before
        earlier = earlier.behind
    config.post_grad_custom_pre_pass = _pass(say or (lambda text: sys.stderr.write(f"{text}\n")), earlier)


def _pass(say: Callable[[str], object], behind: Any) -> Any:
    base: Any = importlib.import_module("torch._inductor.custom_graph_pass").CustomGraphPass

    class Fusion(base):
        def __init__(self) -> None:
            self.behind = behind
            """The pass of the caller that stood there, which runs first."""

        def __call__(self, graph: Any) -> None:
            if self.behind is not None:
                self.behind(graph)
            for left in fuse(graph)[1]:
                say(str(left))

        def uuid(self) -> object:
            from pkc import cache

            if self.behind is None:
                return cache.compiler()
            # A plain function has no name that lasts: what it is part of is not cached.
            other = self.behind.uuid() if hasattr(self.behind, "uuid") else None
            return None if other is None else (cache.compiler(), other)

    return Fusion()


# All-gather


def _gather(node: Any, types: Sequence[str]) -> None:
    a, ranks, group = node.args
    _check_type(a, types)
    whole, dim = _gathered(_waited(node), ranks)
    if dim == len(_shape(a)) - 1:
        raise _Stays("it gathers what the matmul sums over")
    readers = list(_readers(whole))
    if not readers:
        raise _Stays("no matmul has the gathered tensor as its left operand")
    order = {other: at for at, other in enumerate(node.graph.nodes)}
    first = min(readers, key=order.__getitem__)
    # Right operands that come later would have to be computed earlier.
    fused = [reader for reader in readers if all(order[used] < order[first] for used in reader.all_input_nodes)]
    views = [user for user in whole.users if user.target in _VIEWS]
    others = [user for owner in (whole, *views) for user in owner.users if user not in (*fused, *views)]
    if any(order[user] < order[first] for user in others):
        raise _Stays("what is gathered is read before the matmul")
    add = _Builder(first)
    rights = [_factors(reader)[1] for reader in fused]
    pair = add(getattr(torch.ops.pkc, GATHER).default, (a, rights, dim, group), {"return_A": bool(others)})
    products = add(operator.getitem, (pair, 1))
    for at, reader in enumerate(fused):
        found = add(_aten.reshape.default, (add(operator.getitem, (products, at)), list(_shape(reader))))
        if reader.target is _aten.addmm.default:
            found = add(_aten.add.Tensor, (found, reader.args[0]))
        reader.replace_all_uses_with(found)
    if others:
        kept = _contiguous(add, add(operator.getitem, (pair, 0)), dim)
        for owner in (whole, *views):
            again = kept if owner is whole else add(owner.target, (kept, *owner.args[1:]))
            for user in [user for user in owner.users if user in others]:
                user.replace_input_with(owner, again)
    for gone in (*fused, *views):
        _erase(gone)


def _gathered(waited: Any, ranks: int) -> tuple[Any, int]:
    """What is gathered, and along which dimension: 0 unless it is split and joined along another one."""
    split = _sole(waited, _aten.split.Tensor)
    # What one rank gave is a part along dimension 0.
    if split is None or _argument(split, 2) != 0:
        return waited, 0
    joined = _joined(split, ranks)
    if joined is None:
        return waited, 0
    return joined, _argument(joined, 1)


def _readers(whole: Any) -> Iterator[Any]:
    """The matmuls whose left operand is a tensor as a matrix: all dimensions but the last one are its rows."""
    for view in (whole, *(user for user in whole.users if user.target in _VIEWS)):
        shape = _shape(view)
        if len(shape) == 2 and shape[1] == _shape(whole)[-1]:
            yield from (user for user in view.users if _multiplies(user, view))


def _multiplies(user: Any, left: Any) -> bool:
    # An `addmm` may have factors.
    return user.target in _PRODUCTS and _factors(user)[0] is left and all(one == 1 for one in user.kwargs.values())


# Sums


def _scatter(node: Any, types: Sequence[str]) -> None:
    summed, op, ranks, group = node.args
    _check_op(op)
    whole, dim = _scattered(summed, ranks)
    a, right, shape = _product(whole, types)
    if dim == len(_shape(whole)) - 1:
        raise _Stays("it scatters columns of the product")
    waited, add = _waited(node), _Builder(node)
    found = add(getattr(torch.ops.pkc, SCATTER).default, (_as(add, a, shape), right, op, dim, group))
    waited.replace_all_uses_with(_contiguous(add, found, dim))
    _erase(waited)


def _scattered(summed: Any, ranks: int) -> tuple[Any, int]:
    """The whole tensor of which a sum is scattered, and along which dimension: it may be split and joined before."""
    if summed.target is not _aten.cat.default or _argument(summed, 1) != 0:
        return summed, 0
    parts = summed.args[0]
    split = parts[0].args[0] if parts[0].target is operator.getitem else None
    if split is None or split.target is not _aten.split.Tensor or _joined(split, ranks) is not summed:
        return summed, 0
    return split.args[0], _argument(split, 2)


def _reduce(node: Any, types: Sequence[str]) -> None:
    whole, op, group = node.args
    _check_op(op)
    a, right, shape = _product(whole, types)
    waited, add = _waited(node), _Builder(node)
    found = add(getattr(torch.ops.pkc, REDUCE).default, (_as(add, a, shape), right, op, group))
    waited.replace_all_uses_with(found)
    _erase(waited)


def _product(whole: Any, types: Sequence[str]) -> tuple[Any, Any, tuple[Any, ...]]:
    """The factors of a product that only a collective reads, and the rows of the tensor that it is seen as."""
    product = whole
    while product.target in _VIEWS and len(product.users) == 1:
        product = product.args[0]
    if product.target is _aten.addmm.default:
        raise _Stays("a bias is added before the sum over ranks")
    if product.target is not _aten.mm.default:
        raise _Stays(f"what it sums is no matmul but {_called(product)}")
    if len(product.users) > 1 or len(whole.users) > 1:
        raise _Stays("the product is read by others too")
    a, right = product.args
    _check_type(a, types)
    if _shape(whole)[-1] != _shape(product)[-1]:
        raise _Stays("the product is seen with other columns")
    if len(_shape(whole)) < 2:
        raise _Stays("the product is seen as a vector")
    return a, right, (*_shape(whole)[:-1], _shape(a)[-1])


def _as(add: _Builder, a: Any, shape: tuple[Any, ...]) -> Any:
    """A left operand with the rows that its product is seen with."""
    return a if tuple(_shape(a)) == shape else add(_aten.reshape.default, (a, list(shape)))


# Graphs


class _Builder:
    """Adds operators in front of a node, with fake values."""

    def __init__(self, before: Any) -> None:
        self._before = before

    def __call__(self, target: Any, arguments: tuple[Any, ...], keywords: dict[str, Any] | None = None) -> Any:
        graph = self._before.graph
        with graph.inserting_before(self._before):
            node = graph.call_function(target, arguments, keywords or {})
        values = torch.fx.node.map_arg((arguments, keywords or {}), _value)
        mode = importlib.import_module("torch._guards").detect_fake_mode(
            [other.meta.get("val") for other in graph.nodes]
        )
        with mode:
            node.meta["val"] = target(*values[0], **values[1])
        return node


def _contiguous(add: _Builder, found: Any, dim: int) -> Any:
    """A result along a dimension with its memory as the collective has it, which readers may view."""
    return add(_aten.clone.default, (found,), {"memory_format": torch.contiguous_format}) if dim else found


def _erase(node: Any) -> None:
    """Erase a node that nothing reads, and what only it has read."""
    if node.users or node.op != "call_function":
        return
    read = node.all_input_nodes
    node.graph.erase_node(node)
    for other in read:
        _erase(other)


def _waited(node: Any) -> Any:
    """What waits for a collective."""
    found = _sole(node, _collectives.wait_tensor.default)
    if found is None:
        raise _Stays("it is not waited for once")
    return found


def _sole(node: Any, target: Any) -> Any:
    """The only user of a node, if it is this operator."""
    users = list(node.users)
    return users[0] if len(users) == 1 and users[0].target is target else None


def _joined(split: Any, ranks: int) -> Any:
    """The `cat` of all parts of a split, in order, if nothing else reads them."""
    parts = list(split.users)
    if len(parts) != ranks or any(part.target is not operator.getitem or len(part.users) != 1 for part in parts):
        return None
    joined = next(iter(parts[0].users))
    in_order = sorted(parts, key=lambda part: part.args[1])
    return joined if joined.target is _aten.cat.default and list(joined.args[0]) == in_order else None


def _argument(node: Any, place: int) -> Any:
    """An argument of an operator; 0, which is left out of graphs, if it has none there."""
    return node.args[place] if len(node.args) > place else 0


def _factors(product: Any) -> tuple[Any, Any]:
    return tuple(product.args[-2:])


def _value(node: Any) -> Any:
    return node.meta["val"]


def _shape(node: Any) -> Any:
    return _value(node).shape


def _check_type(a: Any, types: Sequence[str]) -> None:
    name = str(a.meta["val"].dtype).removeprefix("torch.")
    if name not in types:
        raise _Stays(f"the element type is {name}; kernels multiply {' and '.join(types)}")


def _check_op(op: str) -> None:
    if op not in ("sum", "avg"):
        raise _Stays(f"it reduces by {op}, not by a sum")


def _called(node: Any) -> str:
    return str(node.target) if node.op == "call_function" else node.op


def _place(node: Any) -> str:
    """The last line of the program that led to a node, outside of torch, or the name of the node."""
    own = str(Path(torch.__file__).parent)
    places = re.findall(r'File "(.*?)", line (\d+)', node.meta.get("stack_trace") or "")
    outside = [f"{file}:{line}" for file, line in places if not file.startswith(own)]
    return outside[-1] if outside else node.name
