"""Tensor maps: the shards of arrays, and what the hardware does not support."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pkc.diagnostics import PkcError
from pkc.dialect import blocks
from pkc.dialect.types import bf16, dtype_bytes, e4m3, e5m2, f16, f32, i8, i32
from pkc.runtime import tensor_map
from pkc.runtime.element import ELEMENTS
from pkc.runtime.tensor_map import Maps, Memory, Tiling, tilings

driver: Any = importlib.import_module("cuda.bindings.driver")
STRIDE = 1 << 38
TYPES = {"bf16": bf16, "f16": f16, "f32": f32, "i32": i32, "i8": i8, "e4m3": e4m3, "e5m2": e5m2}
GOOD = Tiling("A", "bf16", 4096, (72, 100), (144,), (64, 100), 128, ("`K`", "`M`"))


def memory(extents: tuple[int, ...], ranks: int, *, heap: bool, shard: int | None = None) -> Memory:
    """An i32 array from address 0 on."""
    shape = list(extents)
    if shard is not None:
        shape[shard] = blocks.shard_length(shape[shard], ranks)
    strides = [4 * int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
    dims = tuple("MNK"[: len(extents)])
    return Memory("A", "i32", 0, extents, tuple(strides), dims, ranks, STRIDE if heap else None, shard is not None)


def addresses(tiling: Tiling) -> np.ndarray:
    """The address of each element, outermost first."""
    found = np.full((), tiling.address, np.int64)
    for extent, stride in reversed(list(zip(tiling.extents, (4, *tiling.strides), strict=True))):
        found = found[..., None] + stride * np.arange(extent)
    return found


@pytest.mark.parametrize("extents", [(40, 12), (7, 5), (3, 8), (1, 4)])
@pytest.mark.parametrize("split", [0, 1])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("heap", [False, True])
def test_parts(extents: tuple[int, int], split: int, ranks: int, heap: bool) -> None:
    """Shard p of the two maps is where shard p of the array is, element for element."""
    array = memory(extents, ranks, heap=heap, shard=split if heap else None)
    whole = np.full((), 0, np.int64)
    for extent, stride in zip(extents, array.strides, strict=True):
        whole = whole[..., None] + stride * np.arange(extent)
    first, second = map(addresses, tilings(array, (), 0, split))
    full = extents[split] // blocks.shard_length(extents[split], ranks)
    assert len(first) == full
    for rank in range(ranks):
        start, stop = blocks.shard_bounds(extents[split], ranks, rank)
        if start == stop:
            continue
        expected = np.take(whole, range(start, stop), axis=split)
        if heap:
            expected = np.take(whole, range(stop - start), axis=split) + rank * STRIDE
        found = first[rank] if rank < full else second[0]
        assert (found == expected).all()
    if extents[split] % blocks.shard_length(extents[split], ranks) == 0:
        assert (second == first).all()


@pytest.mark.parametrize("extents", [(40, 12), (7, 5), (3, 8), (1, 4)])
@pytest.mark.parametrize("split", [0, 1])
@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
def test_parts_of_copies(extents: tuple[int, int], split: int, ranks: int) -> None:
    """Every rank has all shards, next to each other: they are counted first, then the ranks."""
    array = memory(extents, ranks, heap=True)
    copy = memory(extents, ranks, heap=False)
    first, second = tilings(array, (), 0, split)
    assert (first.names[-2:], first.strides[-1]) == (("the shards", "the ranks"), STRIDE)
    assert (second.names[-2:], second.strides[-1]) == (("the shards", "the ranks"), STRIDE)
    for whole, one in zip((first, second), tilings(copy, (), 0, split), strict=True):
        found, expected = addresses(whole), addresses(one)
        assert len(found) == ranks
        for rank in range(ranks):
            assert (found[rank] == expected + rank * STRIDE).all()


def test_without_parts() -> None:
    private, heap = memory((6, 8), 4, heap=False), memory((6, 8), 4, heap=True)
    assert tilings(private, (8, 6), 0, None) == (Tiling("A", "i32", 0, (8, 6), (32,), (8, 6), 0, ("`N`", "`M`")),) * 2
    assert (
        tilings(heap, (8, 6, 1), 0, None)
        == (Tiling("A", "i32", 0, (8, 6, 4), (32, STRIDE), (8, 6, 1), 0, ("`N`", "`M`", "the ranks")),) * 2
    )


def test_a_vector_over_all_ranks() -> None:
    first, second = tilings(memory((10,), 4, heap=True, shard=0), (4, 1), 0, 0)
    assert (first.extents, first.strides, first.address) == ((3, 3), (STRIDE,), 0)
    assert (second.extents, second.strides, second.address) == ((1, 1), (STRIDE,), 3 * STRIDE)


def test_what_the_hardware_can_do() -> None:
    GOOD.check()
    replace(GOOD, swizzle=0, box=(256, 256)).check()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"address": 4104},
            "its address is 0x1008\n  = help: an address must be a multiple of 16 bytes",
        ),
        (
            {"extents": (70, 100), "strides": (140,)},
            "the distance from one position of `M` to the next is 140 bytes\n"
            "  = help: it must be a multiple of 16 bytes: let `K` be a multiple of 8",
        ),
        (
            {"extents": (68, 100), "strides": (136,)},
            "the distance from one position of `M` to the next is 136 bytes\n"
            "  = help: it must be a multiple of 16 bytes: let `K` be a multiple of 8",
        ),
        (
            {"strides": (1 << 40,)},
            "the distance from one position of `M` to the next is 1099511627776 bytes\n"
            "  = help: it must be less than 2^40",
        ),
        ({"box": (64, 257)}, "the box along `M` is 257\n  = help: a box has 1 to 256 positions"),
        ({"box": (64, 0)}, "the box along `M` is 0\n  = help: a box has 1 to 256 positions"),
        ({"box": (36, 8)}, "the box along `K` is 72 bytes\n  = help: it must be a multiple of 16 bytes"),
        (
            {"box": (128, 8)},
            "the box along `K` is 256 bytes\n  = help: with a swizzle of 128 bytes it must not be longer",
        ),
        ({"box": (64,)}, "the number of dimensions is 2\n  = help: its boxes have 1"),
        ({"extents": (8,) * 6, "strides": (16,) * 5}, "the number of dimensions is 6\n  = help: TMA knows at most 5"),
    ],
)
def test_what_it_cannot(change: dict[str, object], expected: str) -> None:
    with pytest.raises(PkcError) as raised:
        replace(GOOD, **change).check()
    assert str(raised.value) == f"error[PK847]: TMA cannot move `A`: {expected}"


@pytest.mark.parametrize("extents", [(40, 12), (7, 8), (3, 8), (40, 7), (1, 4), (5, 24)])
@pytest.mark.parametrize("split", [None, 0, 1])
@pytest.mark.parametrize("where", ["private", "replicate", "shard"])
@pytest.mark.parametrize("parts", [False, True])
def test_maps_of_any_size(
    monkeypatch: pytest.MonkeyPatch, extents: tuple[int, int], split: int | None, where: str, parts: bool
) -> None:
    """They are those of the array with its extents, or there are none if these do not check."""
    found: list[Tiling] = []

    def encode(_: Any, _dtype: int, rank: int, place: Any, sizes: Any, steps: Any, box: Any, *rest: Any) -> int:
        strides, address = tuple(steps)[: rank - 1], place.value or 0
        found.append(Tiling("A", "i32", address, tuple(sizes), strides, tuple(box), rest[2], names[len(found)]))
        return 0

    monkeypatch.setattr(tensor_map, "_encode_tiled", lambda: encode)
    for ranks in (1, 3, 4):
        shard, heap = (split or 0) if where == "shard" else None, where != "private"
        array = memory(extents, ranks, heap=heap, shard=shard)
        count = 2 + (split is not None) + (where == "replicate") + parts
        box = (4, *[1] * (count - 1))
        expected = tilings(array, box, 0, split)
        names = [tiling.names for tiling in expected]
        found.clear()
        maps = Maps("i32", "MN", box, 0, ranks=ranks, heap_stride=STRIDE if heap else None, shard=shard, split=split)
        places = maps.encode(dict(zip("MN", extents, strict=True)), 0, 128)
        try:
            for tiling in expected:
                tiling.check()
        except PkcError:
            assert places is None
            continue
        assert places is not None
        assert found == list(expected)[: len(places)]
        assert (len(places) == 1) == (expected[0] is expected[1])
        assert [begin for _, begin, _ in places] == [tiling.address for tiling in found]


ENUMERATORS = {
    "bf16": "BFLOAT16",
    "f16": "FLOAT16",
    "f32": "FLOAT32",
    "i32": "INT32",
    "e4m3": "UINT8",
    "e5m2": "UINT8",
    "i8": "UINT8",
}


@pytest.mark.parametrize("dtype", ELEMENTS)
@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
def test_what_the_driver_is_told(monkeypatch: pytest.MonkeyPatch, dtype: str, swizzle: int) -> None:
    """By the names that the driver's header has; TMA moves 8-bit floats as integers of their size."""
    given: list[tuple[Any, ...]] = []
    monkeypatch.setattr(tensor_map, "_encode_tiled", lambda: lambda *arguments: given.append(arguments) or 0)
    size = np.dtype(ELEMENTS[dtype].typestr).itemsize
    row = swizzle or 256
    maps = Maps(dtype, ("M", "K"), (row // size, 50), swizzle, ranks=1)
    assert maps.encode({"M": 100, "K": 1024}, 4096, 128) == ((0, 0, True),)
    ((target, kind, rank, address, *rest),) = given
    *arrays, interleave, mode, promotion, fill = rest
    assert (target.value, rank, address.value) == (128, 2, 4096)
    assert kind == getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{ENUMERATORS[dtype]}")
    assert [list(array) for array in arrays] == [[1024, 100], [1024 * size], [row // size, 50], [1, 1]]
    assert interleave == driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE
    name = f"CU_TENSOR_MAP_SWIZZLE_{f'{swizzle}B' if swizzle else 'NONE'}"
    assert mode == getattr(driver.CUtensorMapSwizzle, name)
    assert promotion == driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B
    assert fill == driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE


@pytest.mark.parametrize("dtype", ELEMENTS)
def test_bytes_of_an_element(dtype: str) -> None:
    assert ELEMENTS[dtype].bytes == np.dtype(ELEMENTS[dtype].typestr).itemsize == dtype_bytes(TYPES[dtype])


@pytest.mark.parametrize("extents", [(5, 24), (3, 5, 24), (24,)])
def test_parts_of_rows(extents: tuple[int, ...]) -> None:
    """A box of one dimension more has parts of 8 elements of rows: the outermost dimension counts them."""
    array = memory(extents, 1, heap=False)
    whole = addresses(tilings(array, (8, *[1] * (len(extents) - 1)), 0, None)[0])
    parts, again = tilings(array, (8, *[1] * (len(extents) - 1), 3), 0, None)
    parts.check()
    assert parts == again
    found = addresses(parts)
    assert found.shape == (3, *extents[:-1], 8)
    for part in range(3):
        np.testing.assert_array_equal(found[part], whole[..., 8 * part : 8 * part + 8])
