"""The meaning of tile operations against independent formulas; the bounds against what f32 really does."""

import math

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import IndexType
from xdsl.utils.test_value import create_ssa_value

from pkc.dialect import elementwise, interleaved, reductions, tile, windows
from pkc.dialect.attributes import Predicate
from pkc.dialect.blocks import Block
from pkc.dialect.declaration import OPERATIONS
from pkc.dialect.numeric import numpy_dtype
from pkc.dialect.pk import TILE
from pkc.dialect.ranges import Bounded
from pkc.dialect.types import BlockType, TileType, bf16, e4m3, e5m2, f16, f32, i1, i8, i32
from pkc.semantics import tile_ops

SHAPE = (5, 7)
RNG = np.random.default_rng(0)
FIRST = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def _begin():
    """A test draws the same numbers whichever tests ran before it."""
    RNG.bit_generator.state = FIRST


def of(element, shape=SHAPE):
    return create_ssa_value(TileType(shape, element))


def floats(shape=SHAPE, scale=3.0):
    return (RNG.standard_normal(shape) * scale).astype(np.float32)


def ints(low=-9, high=9, shape=SHAPE):
    return RNG.integers(low, high, shape).astype(np.int32)


def test_every_tile_operation_has_a_meaning():
    assert {*tile_ops._STRUCTURE, *OPERATIONS} == {*TILE}


FORMULAS = {
    elementwise.NegOp: lambda a: -a,
    elementwise.AbsOp: abs,
    elementwise.ExpOp: math.exp,
    elementwise.SteepExpOp: math.exp,
    elementwise.Exp2Op: lambda a: 2.0**a,
    elementwise.Log2Op: lambda a: math.log2(a) if a > 0 else math.nan,
    elementwise.SqrtOp: lambda a: math.sqrt(a) if a >= 0 else math.nan,
    elementwise.TanhOp: math.tanh,
    elementwise.LogOp: lambda a: math.log(a) if a > 0 else math.nan,
    elementwise.ErfOp: math.erf,
    elementwise.RoundOp: round,
    elementwise.FloorOp: math.floor,
    elementwise.SinOp: math.sin,
    elementwise.CosOp: math.cos,
    elementwise.RsqrtOp: lambda a: 1 / math.sqrt(a) if a >= 0 else math.nan,
    elementwise.SigmoidOp: lambda a: 1 / (1 + math.exp(-a)),
    elementwise.StepTanhOp: lambda a: 0.5 + 0.5 * math.tanh(a),
    elementwise.StepErfOp: lambda a: math.erfc(-a) / 2,
}


def test_every_function_has_a_formula_of_its_own():
    assert FORMULAS.keys() == {op for op in OPERATIONS if issubclass(op, elementwise.Unary)} - {elementwise.NotOp}


@pytest.mark.parametrize(("kind", "formula"), FORMULAS.items())
@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_unary(kind, formula, real):
    a = floats().astype(real)
    want = np.vectorize(formula, otypes=[np.float64])(a.astype(np.float64))
    found = tile_ops.value(kind(of(f32)), real)(a)
    assert found.dtype == real
    np.testing.assert_allclose(found, want, rtol=4e-7)


@pytest.mark.parametrize(
    ("kind", "formula"),
    [
        (elementwise.AddOp, lambda a, b: a + b),
        (elementwise.SubOp, lambda a, b: a - b),
        (elementwise.MulOp, lambda a, b: a * b),
        (elementwise.DivOp, lambda a, b: a / b),
        (elementwise.MaxOp, max),
        (elementwise.MinOp, min),
    ],
)
def test_binary_of_floats(kind, formula):
    a, b = floats(), floats()
    want = np.vectorize(formula, otypes=[np.float64])(a.astype(np.float64), b.astype(np.float64))
    found = tile_ops.value(kind(of(f32), of(f32)))(a, b)
    np.testing.assert_array_equal(found, want.astype(np.float32))


def wrapped(value):
    return (int(value) + 2**31) % 2**32 - 2**31


@pytest.mark.parametrize(
    ("kind", "formula"),
    [
        (elementwise.AddOp, lambda a, b: wrapped(a + b)),
        (elementwise.SubOp, lambda a, b: wrapped(a - b)),
        (elementwise.MulOp, lambda a, b: wrapped(a * b)),
        (elementwise.FloorDivOp, lambda a, b: wrapped(a // b) if b else 0),
        (elementwise.BitAndOp, lambda a, b: a & b),
        (elementwise.BitOrOp, lambda a, b: a | b),
        (elementwise.BitXorOp, lambda a, b: a ^ b),
        (elementwise.ShiftLeftOp, lambda a, b: wrapped(a * 2 ** (b % 32))),
        (elementwise.ShiftRightOp, lambda a, b: a // 2 ** (b % 32)),
        (elementwise.ModOp, lambda a, b: a % b if b else a),
        (elementwise.MaxOp, max),
        (elementwise.MinOp, min),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:overflow")
def test_binary_of_integers(kind, formula):
    edges = [-(2**31), -(2**31) + 1, -7, -1, 0, 1, 3, 2**31 - 1]
    a, b = (np.array(x, np.int32).reshape(8, 8) for x in np.meshgrid(edges, edges))
    want = [[formula(int(x), int(y)) for x, y in zip(*rows, strict=True)] for rows in zip(a, b, strict=True)]
    found = tile_ops.value(kind(of(i32, (8, 8)), of(i32, (8, 8))))(a, b)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, want)


def test_nan_in_max_min_and_row_max():
    a, b = np.array([[np.nan, 1.0]], np.float32), np.array([[0.0, np.nan]], np.float32)
    for kind in (elementwise.MaxOp, elementwise.MinOp):
        assert np.isnan(tile_ops.value(kind(of(f32, (1, 2)), of(f32, (1, 2))))(a, b)).all()
    for kind in (reductions.RowMaxOp, reductions.RowMinOp):
        assert np.isnan(tile_ops.value(kind(of(f32, (1, 2))))(a)).all()


@pytest.mark.parametrize("predicate", list(Predicate))
def test_compare(predicate):
    a, b = ints(0, 3).astype(np.float32), ints(0, 3).astype(np.float32)
    a[0, 0] = np.nan
    found = tile_ops.value(elementwise.CompareOp(predicate, of(f32), of(f32)))(a, b)
    want = [
        [getattr(float(x), f"__{predicate.value}__")(float(y)) for x, y in zip(*rows, strict=True)]
        for rows in zip(a, b, strict=True)
    ]
    assert found.dtype == np.bool_
    np.testing.assert_array_equal(found, want)


def test_logic_and_select():
    p, q = ints(0, 2).astype(bool), ints(0, 2).astype(bool)
    np.testing.assert_array_equal(tile_ops.value(elementwise.AndOp(of(i1), of(i1)))(p, q), p & q)
    np.testing.assert_array_equal(tile_ops.value(elementwise.OrOp(of(i1), of(i1)))(p, q), p | q)
    np.testing.assert_array_equal(tile_ops.value(elementwise.NotOp(of(i1)))(p), ~p)
    a, b = floats(), floats()
    found = tile_ops.value(elementwise.SelectOp(of(i1), of(f32), of(f32)))(p, a, b)
    np.testing.assert_array_equal(found, np.choose(p, [b, a]))


def cast(values, source, target, real=np.float32):
    op = tile.CastOp(of(source, np.shape(values)), target)
    return tile_ops.value(op, real)(np.asarray(values))


@pytest.mark.filterwarnings("ignore:overflow")
def test_cast_rounds_to_nearest_even():
    f = np.float32
    assert cast(f([1 + 2**-8, 1 + 3 * 2**-8, 3.4e38]), f32, bf16).tolist() == [1.0, 1 + 2**-6, math.inf]
    assert cast(f([1 + 2**-11, 65519.0, 65520.0, 2**-25]), f32, f16).tolist() == [1.0, 65504.0, math.inf, 0.0]
    assert cast(f([1.0625, 1.1875, 464.0, 61440.0]), f32, e5m2).tolist() == [1.0, 1.25, 448.0, math.inf]
    found = cast(f([1.0625, 1.1875, 464.0, 464.1, -math.inf]), f32, e4m3)
    assert found[:3].tolist() == [1.0, 1.25, 448.0]
    assert np.isnan(found[3:]).all()


def test_cast_of_integers():
    # Rounded by way of f32, the first would become 2**30.
    assert cast(np.int32([2**30 + 2**22 + 1, 2**30 + 2**22, -(2**30) - 2**22 - 1]), i32, bf16).tolist() == [
        2**30 + 2**23, 2**30, -(2**30) - 2**23,
    ]  # fmt: skip
    assert cast(np.int32([2**24 + 1, 7]), i32, f32).tolist() == [2**24, 7]
    assert cast(np.float32([1.9, -1.9, 3e9, -3e9, math.nan, math.inf]), f32, i32).tolist() == [
        1, -1, 2**31 - 1, -(2**31), 0, 2**31 - 1,
    ]  # fmt: skip
    assert cast(np.array([True, False]), i1, f32).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("source", [f16, bf16, e4m3, e5m2])
def test_floats_of_up_to_16_bits_to_i8(source):
    """All of them: what is behind the point is cut off, what is beyond the ends is an end, and what is no number 0."""
    kind = numpy_dtype(source)
    every = np.arange(256**kind.itemsize).astype(f"u{kind.itemsize}").view(kind).astype(np.float32)
    found = cast(every, source, i8)
    for x, y in zip(every.tolist(), found.tolist(), strict=True):
        assert y == (0 if math.isnan(x) else -128 if x <= -128 else 127 if x >= 127 else math.trunc(x))


@pytest.mark.parametrize("target", [f32, f16, bf16, i32])
def test_every_i8_is_a_number_of_wider_types(target):
    every = np.arange(-128, 128, dtype=np.int32)
    assert cast(every, i8, target).tolist() == every.tolist()
    assert cast(cast(every, i8, target), target, i8).tolist() == every.tolist()


def test_i32_beyond_i8_is_the_nearest():
    assert cast(np.int32([-(2**31), -129, -128, 127, 128, 2**31 - 1]), i32, i8).tolist() == [
        -128,
        -128,
        -128,
        127,
        127,
        127,
    ]


def test_cast_in_the_reference_rounds_nothing():
    assert cast([1 + 2**-30, 1e39], f32, bf16, np.float64).tolist() == [1 + 2**-30, math.inf]
    assert np.isnan(cast([500.0], f32, e4m3, np.float64)).all()


def test_makers():
    assert tile_ops.value(tile.FullOp(0.1, TileType((2,), bf16)))().tolist() == [float(ml_dtypes.bfloat16(0.1))] * 2
    splat = tile_ops.value(tile.SplatOp(create_ssa_value(IndexType()), TileType((2, 2), i32)))
    assert splat(2**31 + 5).tolist() == [[-(2**31) + 5] * 2] * 2
    block = create_ssa_value(BlockType("M", 4))
    assert tile_ops.value(tile.PositionsOp(block))(Block(6, 2)).tolist() == [6, 7, 8, 9]
    numbers = [create_ssa_value(IndexType()) for _ in range(3)]
    folded = tile_ops.value(tile.PositionsOp(block, numbers))
    assert folded(Block(6, 4), 3, 16, 2).tolist() == [3, 4, 15, 16]
    assert folded(Block(6, 4), 3, 6, 9).tolist() == [3, 4, 5, 6]
    assert folded(Block(6, 4), 13, 16, -3).tolist() == [13, 14, 15, 16]


def test_shapes():
    a = floats()
    np.testing.assert_array_equal(tile_ops.value(tile.TransposeOp(of(f32)))(a), a.T)
    op = tile.BroadcastOp(of(f32), (2, 0), TileType((7, 3, 5), f32))
    found = tile_ops.value(op)(a)
    assert all(found[i, j, k] == a[k, i] for i in range(7) for j in range(3) for k in range(5))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("length", [0, 2, 5])
def test_clip(axis, length):
    a = floats((5, 5))
    op = tile.ClipOp(of(f32, (5, 5)), create_ssa_value(BlockType("M", 5)), axis, -math.inf)
    found = np.moveaxis(tile_ops.value(op)(a, Block(10, length)), axis, 0)
    np.testing.assert_array_equal(found[:length], np.moveaxis(a, axis, 0)[:length])
    assert (found[length:] == -math.inf).all()


def test_reductions_and_matmuls():
    a, b, acc = floats((4, 6)), floats((6, 3)), floats((4, 3))
    want = [
        [sum(float(a[i, k]) * float(b[k, j]) for k in range(6)) + float(acc[i, j]) for j in range(3)] for i in range(4)
    ]
    found = tile_ops.value(tile.MmaOp(of(bf16, (4, 6)), of(bf16, (6, 3)), of(f32, (4, 3))))(a, b, acc)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(tile_ops.value(reductions.RowSumOp(of(f32)))(floats() * 0 + 1), [7.0] * 5)
    assert tile_ops.value(reductions.RowSumOp(of(i32, (1, 3))))(np.int32([[2**31 - 1, 1, 5]])).tolist() == [
        -(2**31) + 5
    ]
    n = ints()
    assert tile_ops.value(reductions.RowMaxOp(of(i32)))(n).tolist() == [max(row) for row in n.tolist()]
    assert tile_ops.value(reductions.RowMinOp(of(i32)))(n).tolist() == [min(row) for row in n.tolist()]


@pytest.mark.parametrize("kind", reductions.FOLDS.values())
def test_folds_and_repeats(kind):
    """Element i of n is what is reduced of i, i + n, i + 2 n and so on, at both levels and with its error."""
    a = floats((3, 12))
    op = reductions.FoldOp(kind, of(f32, (3, 12)), 4)
    by = {reductions.RowMaxOp: max, reductions.RowMinOp: min, reductions.RowSumOp: sum}[kind]
    want = [[by(float(a[row, i + 4 * k]) for k in range(3)) for i in range(4)] for row in range(3)]
    np.testing.assert_allclose(tile_ops.value(op)(a), want, rtol=1e-6)
    errors = np.arange(36.0).reshape(3, 12) / 1e3
    found = tile_ops.bounded(op)(Bounded(a.astype(np.float64), errors))
    least = [[by([errors[row, i + 4 * k] for k in range(3)]) if by is sum else 0 for i in range(4)] for row in range(3)]
    assert (found.error >= least).all()
    repeat = tile_ops.value(tile.RepeatOp(of(f32, (3, 4)), 12))(np.array(want))
    assert all(repeat[row, i] == want[row][i % 4] for row in range(3) for i in range(12))


def test_enlarged_tiles():
    """Element (i, j) is element (i // 2, j // 3), and so is its error."""
    a, op = floats((3, 4)), tile.EnlargeOp(of(f32, (3, 4)), (6, 12))
    errors = np.arange(12.0).reshape(3, 4) / 1e3
    made, found = tile_ops.value(op)(a), tile_ops.bounded(op)(Bounded(a.astype(np.float64), errors))
    assert made.shape == found.error.shape == (6, 12)
    assert all(made[i, j] == a[i // 2, j // 3] for i in range(6) for j in range(12))
    assert all(found.error[i, j] == errors[i // 2, j // 3] for i in range(6) for j in range(12))


def test_windows():
    """Element (i, j) is element (1 + 2 i, 3 + j), and so is its error; of one place of an axis, that place."""
    a, errors = floats((6, 9)), np.arange(54.0).reshape(6, 9) / 1e3
    for op, there in (
        (windows.WindowOp(of(f32, (6, 9)), (1, 3), (3, 5), (2, 1)), np.ix_((1, 3, 5), range(3, 8))),
        (windows.WindowOp(of(f32, (6, 9)), (4, 0), (3,), (0, 3)), (4, (0, 3, 6))),
    ):
        made, found = tile_ops.value(op)(a), tile_ops.bounded(op)(Bounded(a.astype(np.float64), errors))
        np.testing.assert_array_equal(made, a[there])
        np.testing.assert_array_equal(found.error, errors[there])


def test_elements_in_turn():
    """What is picked of tiles in turn are these tiles, with their errors: that of one alone is none of others."""
    tiles = [floats((3, 4)) + number for number in range(3)]
    made = tile_ops.value(interleaved.ZipOp([of(f32, (3, 4))] * 3))(*tiles)
    assert made.shape == (3, 12)
    assert all(made[i, 3 * j + k] == tiles[k][i, j] for i in range(3) for j in range(4) for k in range(3))
    errors = [None, np.arange(12.0).reshape(3, 4) / 1e3, None]
    bounded = [Bounded(a.astype(np.float64), error) for a, error in zip(tiles, errors, strict=True)]
    zipped = tile_ops.bounded(interleaved.ZipOp([of(f32, (3, 4))] * 3))(*bounded)
    for k, error in enumerate(errors):
        pick = interleaved.PickOp(of(f32, (3, 12)), k, 3)
        np.testing.assert_array_equal(tile_ops.value(pick)(made), tiles[k])
        np.testing.assert_array_equal(tile_ops.bounded(pick)(zipped).error, 0 * tiles[k] if error is None else error)
    exact = tile_ops.bounded(interleaved.ZipOp([of(f32, (3, 4))] * 3))(*[one._replace(error=None) for one in bounded])
    assert exact.error is None


BOUNDED = [
    (op, 2 if issubclass(op, elementwise.Binary) else 1)
    for op, declared in OPERATIONS.items()
    if f32 in declared.types and op is not elementwise.SelectOp
]


@pytest.mark.parametrize(("kind", "count"), [*BOUNDED, (tile.TransposeOp, 1)])
@pytest.mark.parametrize("size", [0.0, 1e-6, 1e-3, 0.3])
def test_bounds_hold_and_are_not_loose(kind, count, size):
    values = [np.abs(floats((40, 50))).astype(np.float64) + 0.5 for _ in range(count)]
    errors = [size * RNG.random(v.shape) for v in values]
    op = kind(*[of(f32, (40, 50)) for _ in range(count)])
    expected = tile_ops.bounded(op)(*[Bounded(v, e) for v, e in zip(values, errors, strict=True)])
    signs = [RNG.choice([-1.0, 1.0], v.shape) for v in values]
    inputs = [(v + s * e * 0.999).astype(np.float32) for v, e, s in zip(values, errors, signs, strict=True)]
    found = tile_ops.value(op)(*inputs)
    # What the inputs themselves lose on their way to f32 is not the operation's.
    slack = 2e-6 * np.abs(expected.value) + 2e-6
    assert (np.abs(found - expected.value) <= expected.error + slack).all()
    if size and expected.error.any():  # no bound is tighter than none
        assert np.max(np.abs(found - expected.value) / (expected.error + slack)) > 0.02


def test_a_matmul_does_not_depend_on_the_place_of_a_row():
    shapes = of(bf16, (128, 64)), of(bf16, (64, 256)), of(f32, (128, 256))
    matmul = tile_ops.value(tile.MmaOp(*shapes))
    rng = np.random.default_rng(5)
    a, b = (
        rng.standard_normal(shape).astype(ml_dtypes.bfloat16).astype(np.float32) for shape in ((128, 64), (64, 256))
    )
    acc = np.zeros((128, 256), np.float32)
    once = matmul(a, b, acc)
    for shift in (1, 35, 91):
        moved = matmul(np.roll(a, shift, axis=0), b, acc)
        np.testing.assert_array_equal(np.roll(moved, -shift, axis=0), once)


def test_bound_of_a_matmul_with_errors():
    a, b, acc = (floats(shape).astype(np.float64) for shape in ((30, 40), (40, 20), (30, 20)))
    errors = [0.01 * RNG.random(x.shape) for x in (a, b, acc)]
    op = tile.MmaOp(of(bf16, (30, 40)), of(bf16, (40, 20)), of(f32, (30, 20)))
    expected = tile_ops.bounded(op)(*[Bounded(x, e) for x, e in zip((a, b, acc), errors, strict=True)])
    worst = (a + np.sign(a) * errors[0]) @ (b + np.sign(b) * errors[1]) + acc + errors[2]
    assert (np.abs(worst - expected.value) <= expected.error).all()
    assert (expected.error <= errors[0] @ np.abs(b) + np.abs(a) @ errors[1] + errors[0] @ errors[1] + 0.02).all()


def test_infinities_of_masks_are_exact():
    scores = np.array([[1.0, -np.inf]])
    with np.errstate(invalid="ignore"):
        shifted = tile_ops.bounded(elementwise.SubOp(of(f32, (1, 2)), of(f32, (1, 2))))(
            Bounded(scores, np.array([[0.1, 0.0]])), Bounded(np.ones((1, 2)), np.full((1, 2), 0.1))
        )
        power = tile_ops.bounded(elementwise.Exp2Op(of(f32, (1, 2))))(shifted)
    assert power.value.tolist() == [[1.0, 0.0]]
    assert power.error is not None
    assert 0.1 < power.error[0, 0] < 0.3
    assert power.error[0, 1] < 1e-30
