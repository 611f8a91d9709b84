"""Dimensions and data that do not fit, and inputs that are drawn."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from pkc.diagnostics import PkcError
from pkc.driver.compiler import compile_program, load
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.draw import draw_inputs
from pkc.sim.program import find_kernel
from pkc.sim.run import resolve_dims, simulate
from pkc.sim.small import least_dims, other_dims, small_dims, swept_dims
from tests.examples.test_examples import EXAMPLES
from tests.sim.helpers import GEMM_RS, copy, parse

BF16 = ml_dtypes.bfloat16
A, B = np.zeros((2, 8, 4), BF16), np.zeros((2, 4, 6), BF16)

SCALAR = """
pk.kernel @scaled(%s: f32 {pk.name = "s"}, %n: i32 {pk.name = "n"}, %Y: !pk.private<[3], f32> {pk.name = "Y"}) {
  %zero = arith.constant 0 : index
  %t = pk.splat %s : f32 -> !pk.tile<f32>
  pk.store %t, %Y[%zero : index] : !pk.tile<f32>, !pk.private<[3], f32>
}"""


def problem(text, inputs, ranks=2, **dims):
    with pytest.raises(PkcError) as raised:
        simulate(parse(text), ranks=ranks, dims=dims, inputs=inputs)
    return str(raised.value)


def test_dimensions_come_from_settings_and_shapes():
    kernel = find_kernel(parse(GEMM_RS), None)
    assert resolve_dims(kernel, {"N": 6}, {"A": A}, 2) == {"M": 8, "K": 4, "N": 6}


@pytest.mark.parametrize(
    ("inputs", "options", "text"),
    [
        ({"A": A}, {}, "error[PK601]: dimension `N` is not set\n  = help: set it, as `--set N=1024` does, or pass"),
        ({"A": A, "B": B}, {"K": 5}, "error[PK602]: dimension `K` is 5 by its setting, but 4 by `A`"),
        ({"A": A, "B": B[:, :3]}, {}, "error[PK602]: dimension `K` is 4 by `A`, but 3 by `B`"),
        ({"A": A, "B": B}, {"N": 0}, "error[PK602]: dimension `N` is 0 by its setting, but 6 by `B`"),
        ({}, {"M": 0, "N": 1, "K": 1}, "error[PK603]: dimension `M` cannot be 0"),
        ({}, {"M": 2.5}, "error[PK603]: dimension `M` cannot be 2.5"),
        (
            {},
            {"Q": 1},
            "error[PK604]: kernel `gemm_rs` has no dimension `Q`\n  = help: its dimensions are `M`, `K`, `N`",
        ),
        ({"A": A, "B": B, "X": A}, {}, "error[PK605]: `X` is not an input of kernel `gemm_rs`"),
        ({"A": A, "B": B, "C": B[0]}, {"M": 4}, "error[PK602]: dimension `M` is 4 by its setting, but 8 by `A`"),
        ({"A": A, "B": B, "C": np.zeros((8, 6), BF16)}, {}, "= help: a sum over ranks begins at zero"),
        ({"A": A[0], "B": B}, {}, "`A` has shape [8, 4]\n  = help: expected [2, M, K], with the ranks first"),
        ({"A": [A[0], A[1, :3]], "B": B}, {}, "error[PK606]: `A` has shape that is not rectangular"),
        (
            {"A": A.astype(complex), "B": B},
            {},
            "error[PK607]: what is passed has elements of type complex128; `A` is of type bf16",
        ),
        ({"A": np.full(A.shape, 1e300), "B": B}, {}, "which does not fit into `A` of type bf16"),
        ({"A": A}, {"N": 6}, "error[PK608]: input `B` is missing"),
        ({"A": A, "B": B}, {"ranks": 17}, "error[PK610]: cannot simulate 17 ranks"),
        ({}, {"M": 10**7, "N": 10**6, "K": 1}, "error[PK612]: simulating the arrays of all ranks takes"),
    ],
)
def test_data_that_does_not_fit(inputs, options, text):
    assert text in problem(GEMM_RS, inputs, **options)


def test_lists_of_arrays_are_taken():
    module = copy("private", "private", local=False)
    x = [np.full((8, 4), rank, BF16) for rank in range(3)]
    np.testing.assert_array_equal(simulate(module, ranks=3, dims={}, inputs={"X": x})["Y"], x)


@pytest.mark.parametrize(
    ("name", "value"), [("s", "two"), ("s", True), ("s", [1.0]), ("s", 1e39), ("n", 1.5), ("n", 2**31), ("n", True)]
)
def test_scalars_that_do_not_fit(name, value):
    assert "error[PK609]" in problem(SCALAR, {"s": 1.0, "n": 1} | {name: value})


def test_scalars_are_rounded():
    found = simulate(parse(SCALAR), ranks=1, dims={}, inputs={"s": 0.1, "n": 3})["Y"]
    assert found[0, 0] == np.float32(0.1)


def test_a_kernel_is_named_where_there_are_several():
    module = parse(SCALAR + SCALAR.replace("@scaled", "@other"))
    inputs = draw_inputs(module, ranks=1, dims={}, seed=0, kernel="other")
    assert simulate(module, ranks=1, dims={}, inputs=inputs, kernel="other")["Y"][0, 0] == inputs["s"]
    with pytest.raises(PkcError, match=r"PK611.*no kernel is named"):
        simulate(module, ranks=1, dims={}, inputs=inputs)
    with pytest.raises(PkcError, match="there is no kernel `third`"):
        simulate(module, ranks=1, dims={}, inputs=inputs, kernel="third")


def test_drawn_inputs():
    module = parse(GEMM_RS)
    first = draw_inputs(module, ranks=2, dims={"M": 8, "N": 6, "K": 4}, seed=1)
    again = draw_inputs(module, ranks=2, dims={"M": 8, "N": 6, "K": 4}, seed=1)
    assert {name: (x.shape, x.dtype) for name, x in first.items()} == {"A": ((2, 8, 4), BF16), "B": ((2, 4, 6), BF16)}
    assert all((first[name] == again[name]).all() for name in first)


READS = """
pk.kernel @bounded(%count: !pk.private<[E], i32> {pk.name = "count"}, %where: !pk.private<[E], i32> {pk.name = "where"},
                   %X: !pk.private<[P], f32> {pk.name = "X"}, %free: !pk.private<[E], i32> {pk.name = "free"}) {
  %zero = arith.constant 0 : index
  %stop = pk.read %count[%zero] : !pk.private<[E], i32>
  %f = pk.read %free[%zero] : !pk.private<[E], i32>
  %n = pk.block_count <P by 8> to %stop
  %m = pk.read %where[%zero] : !pk.private<[E], i32>
  %t = pk.load %X[%m : index] : !pk.private<[P], f32> -> !pk.tile<f32>
}"""


def test_integers_are_drawn_from_the_range_of_their_use():
    drawn = draw_inputs(parse(READS), ranks=3, dims={"E": 500, "P": 4}, seed=0)
    assert sorted(set(drawn["count"].flat)) == [0, 1, 2, 3, 4]
    assert sorted(set(drawn["where"].flat)) == [0, 1, 2, 3]
    assert (drawn["free"].min(), drawn["free"].max()) == (0, 99)


GATHERED = """
pk.kernel @rows(%rows: !pk.private<[M], i32> {pk.name = "rows"}, %X: !pk.private<[P, N], f32> {pk.name = "X"}) {
  %zero = arith.constant 0 : index
  %m = pk.block[%zero] : !pk.block<M by 8>
  %n = pk.block[%zero] : !pk.block<N by 8>
  %r = pk.load %rows[%m : !pk.block<M by 8>] : !pk.private<[M], i32> -> !pk.tile<8xi32>
  %x = pk.gather %X rows %r[%n : !pk.block<N by 8>] : !pk.private<[P, N], f32>, !pk.tile<8xi32> -> !pk.tile<8x8xf32>
}"""


def test_some_ranks_name_rows_of_one_half_alone():
    """A tile that nobody asks for is awaited by nobody: what it would order has to be ordered otherwise."""
    drawn = draw_inputs(parse(GATHERED), ranks=16, dims={"M": 200, "N": 8, "P": 10}, seed=0)["rows"]
    lower, upper = {-1, 0, 1, 2, 3, 4}, {-1, 5, 6, 7, 8, 9}
    named = [set(row.tolist()) for row in drawn]
    assert set(map(frozenset, named)) == {frozenset(kind) for kind in (lower, upper, lower | upper)}


OFFSETS = """
pk.kernel @lists(%bounds: !pk.private<[E], i32> {pk.name = "bounds"}, %ends: !pk.private<[E], i32> {pk.name = "ends"},
                 %X: !pk.private<[P], f32> {pk.name = "X"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %size = pk.dim "P"
  %start = pk.read %bounds[%zero] : !pk.private<[E], i32>
  %stop = pk.read %bounds[%one] : !pk.private<[E], i32>
  %n = pk.block_count <P by 8> from %start to %stop
  %end = pk.read %ends[%zero] : !pk.private<[E], i32>
  %least = arith.minsi %end, %size : index
  %m = pk.block_count <P by 8> from %start to %least
}"""


def test_the_smallest_sizes_have_a_sequence():
    module = parse("""
pk.kernel @lists(%bounds: !pk.private<[N], i32> {pk.name = "bounds"}) {
  %n = pk.dim "N"
  %one = arith.constant 1 : index
  %less = arith.subi %n, %one : index
  pk.tasks (%b) in (%less) {
  }
}""")
    assert small_dims(find_kernel(module, None), ranks=1) == {"N": 2}


def test_scales_of_parts_are_as_many_as_these():
    kernel = load(Path(__file__).parents[2] / "examples" / "gemm_fp8_blocks.pk").kernel
    assert small_dims(kernel, ranks=1) == {"M": 257, "K": 129, "N": 129, "G": 2, "H": 2}


@pytest.mark.parametrize(("count", "two"), [('pk.dim "M"', 2), ("pk.block_count <M by 8>", 9)])
def test_few_tasks_of_a_dimension_with_long_blocks(count: str, two: int) -> None:
    module = parse(f"""
pk.kernel @shares(%S: !pk.private<[M, N], f32> {{pk.name = "S"}}) {{
  %tasks = {count}
  %long = pk.block_count <M by 1024>
  %short = pk.block_count <N by 16>
  pk.tasks (%i) in (%tasks) {{
  }}
  pk.tasks (%j) in (%short) {{
  }}
  %zero = arith.constant 0 : index
  %m = pk.block[%zero] : !pk.block<M by 1024>
  %n = pk.block[%zero] : !pk.block<N by 512>
}}""")
    kernel = find_kernel(module, None)
    assert small_dims(kernel, ranks=2) == {"M": 1025, "N": 513}
    assert small_dims(kernel, ranks=2, few_tasks=True) == {"M": two, "N": 513}


def test_numbers_that_a_program_names_are_never_too_large():
    module = parse("""
pk.kernel @tables(%few: !pk.private<[E], i32> {pk.name = "few"}, %each: !pk.private<[R], i32> {pk.name = "each"}) {
  %six = arith.constant 6 : index
  %rank = pk.rank
  %a = pk.read %few[%six] : !pk.private<[E], i32>
  %b = pk.read %each[%rank] : !pk.private<[R], i32>
}""")
    assert small_dims(find_kernel(module, None), ranks=3) == {"E": 7, "R": 3}


def test_offsets_ascend():
    drawn = draw_inputs(parse(OFFSETS), ranks=2, dims={"E": 500, "P": 4}, seed=0)
    for of_rank in drawn["bounds"]:
        assert sorted(set(of_rank)) == [0, 1, 2, 3, 4]
        assert (np.diff(of_rank) >= 0).all()
    assert sorted(set(drawn["ends"].flat)) == [0, 1, 2, 3, 4]
    assert (np.diff(drawn["ends"][0]) < 0).any()


MOVED = """
pk.kernel @moved(%R: !pk.private<[P], i32> {pk.name = "R"}, %count: !pk.private<[E], i32> {pk.name = "count"},
                 %X: !pk.pgl<[N, 4], f32, shard 0> {pk.name = "X"}, %Y: !pk.private<[P, 4], f32> {pk.name = "Y"}) {
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %read = pk.read %count[%zero] : !pk.private<[E], i32>
  %stop = arith.addi %read, %two : index
  %blocks = pk.block_count <P by 8> to %stop
  pk.tasks (%i) in (%blocks) {
    %p = pk.block[%i] to %stop : !pk.block<P by 8>
    %t = pk.load %R[%p : !pk.block<P by 8>] : !pk.private<[P], i32> -> !pk.tile<8xi32>
    %three = pk.full 3 : i32 : !pk.tile<8xi32>
    %rows = pk.sub %t, %three : !pk.tile<8xi32>
    %g = pk.gather %X rows %rows[%zero : index] : !pk.pgl<[N, 4], f32, shard 0>, !pk.tile<8xi32> -> !pk.tile<8xf32>
    pk.store %g, %Y[%p, %zero : !pk.block<P by 8>, index] : !pk.tile<8xf32>, !pk.private<[P, 4], f32>
  }
}"""


def test_integers_that_are_moved_before_their_use():
    drawn = draw_inputs(parse(MOVED), ranks=3, dims={"E": 500, "P": 4, "N": 5}, seed=0)
    assert sorted(set(drawn["count"].flat)) == [-2, -1, 0, 1, 2]
    drawn = draw_inputs(parse(MOVED), ranks=3, dims={"E": 1, "P": 500, "N": 5}, seed=0)
    assert sorted(set(drawn["R"].flat)) == [2, 3, 4, 5, 6, 7]


PARTS = """
pk.kernel @parts(%count: !pk.private<[E], i32> {pk.name = "count"}, %X: !pk.private<[P], f32> {pk.name = "X"}) {
  %experts = pk.dim "E"
  %room = arith.constant 3 : index
  pk.tasks (%e) in (%experts) {
    %start = arith.muli %e, %room : index
    %length = pk.read %count[%e] : !pk.private<[E], i32>
    %stop = arith.addi %start, %length : index
    %n = pk.block_count <P by 8> from %start to %stop
  }
}"""


def test_lists_in_parts_of_one_dimension_do_not_overlap():
    drawn = draw_inputs(parse(PARTS), ranks=2, dims={"E": 500, "P": 1500}, seed=0)
    assert sorted(set(drawn["count"].flat)) == [0, 1, 2, 3]
    drawn = draw_inputs(parse(PARTS), ranks=2, dims={"E": 500, "P": 2}, seed=0)
    assert sorted(set(drawn["count"].flat)) == [0, 1, 2]


def test_an_index_out_of_range():
    text = problem(READS, {"count": np.zeros((1, 1), np.int32), "free": np.zeros((1, 1), np.int32),
                           "where": np.full((1, 1), 7, np.int32), "X": np.zeros((1, 4), np.float32)},
                             ranks=1)  # fmt: skip
    title, help_ = text.split("\n")
    assert title == "error[PK706]: index 7 is outside dimension 0 of `X`"
    assert help_.startswith("  = help: its positions are 0 to 3; a block in arithmetic reads zeros outside:")


BOUNDS = """
kernel some(X: f32[M], T: i32[2], Y: f32[M]):
    for m in tasks(blocks(M, 4, start={start}, stop={stop})):
        Y[m] = X[m]
"""


@pytest.mark.parametrize(
    ("start", "stop", "table", "found"),
    [
        ("0", "T[1]", (0, 9), "ends at 9"),
        ("0", "T[1]", (0, -1), "ends at -1"),
        ("T[0]", "T[1]", (-2, 8), "begins at -2"),
        ("T[0]", "T[0] + T[1]", (3, 6), "ends at 9"),
        ("0", "min(T[1], M)", (0, 9), ""),
        ("max(T[0], 0)", "T[1]", (-2, 8), ""),
        ("T[0] - 4", "T[1]", (3, 8), ""),
        ("T[0]", "T[1]", (8, 0), ""),
    ],
)
def test_a_bound_out_of_range(start: str, stop: str, table: tuple[int, int], found: str):
    """What an array says is a position or the end; what is computed of it is clamped, as the help says."""
    program = parse_text(Source("some.pk", BOUNDS.format(start=start, stop=stop).lstrip()))
    inputs = {"X": np.zeros((1, 8), np.float32), "T": np.array([table], np.int32)}
    said = ""
    try:
        simulate(compile_program(program, level="tile").module, ranks=1, dims={}, inputs=inputs)
    except PkcError as error:
        said = str(error).splitlines()[0].removeprefix("error[PK709]: ")
    assert said == (f"a list of blocks {found}: `M` is 8 long" if found else "")


def test_the_shard_of_a_rank_is_one_whoever_owns_the_array():
    module = parse("""
pk.kernel @parts(%X: !pk.pgl<[M, N], f32, symmetric> {pk.name = "X"}) {
  %rank = pk.rank
  %count = pk.block_count <M by 8> of %rank
  %zero = arith.constant 0 : index
  %n = pk.block[%zero] : !pk.block<N by 16>
  %m = pk.block[%zero] of %rank : !pk.block<M by 8>
  pk.tasks (%i) in (%count) {
  }
}""")
    kernel = find_kernel(module, None)
    assert small_dims(kernel, ranks=3) == {"M": 26, "N": 17}
    assert list(other_dims(kernel, ranks=3)) == [{"M": 2, "N": 17}]


def test_where_roles_are_written_dimensions_differ_and_blocks_are_whole():
    """A dimension that another one divides stays a multiple of it; one that is indexed by a number has that element."""
    module = parse("""
pk.kernel @written(%X: !pk.private<[M, N, B, E, H, G], f32> {pk.name = "X"}) {
  pk.role communicator {
    %zero = arith.constant 0 : index
    %six = arith.constant 6 : index
    %m = pk.block[%zero] : !pk.block<M by 8>
    %n = pk.block[%zero] : !pk.block<N by 8>
    %h = pk.dim "H"
    %g = pk.dim "G"
    %each = arith.floordivsi %h, %g : index
    %x = pk.load %X[%m, %n, %zero, %six, %zero, %zero
      : !pk.block<M by 8>, !pk.block<N by 8>, index, index, index, index]
      : !pk.private<[M, N, B, E, H, G], f32> -> !pk.tile<8x8xf32>
  }
}""")
    few, unlike = other_dims(find_kernel(module, None), ranks=3)
    assert few == {"M": 2, "N": 2, "B": 1, "E": 7, "H": 1, "G": 1}
    assert unlike == {"M": 16, "N": 24, "B": 4, "E": 7, "H": 1, "G": 1}


def tile_level(text: str) -> ModuleOp:
    return compile_program(parse_text(Source("some.pk", text.lstrip())), level="tile").module


PASSED = """
kernel k(X: f32[M], Y: f32[M], s: signal[M]):
    with role(consumer):
        for m in tasks(blocks(M, 8)):
            {body}
            signal(s.at(rank)[0], 1)
            Y[m] = X[m]
"""


@pytest.mark.parametrize(
    ("body", "size"),
    [
        ("wait(s[start(m) // 64], 1)", 66),  # position 64 and one more
        ("wait(s[0], min(start(m), 40))", 42),
        ("wait(s[0], len(blocks(M, 8)) // 7)", 65),  # nine blocks, the last of one position
        ("wait(s[0], M // 100)", 102),
        ("wait(s[0], len(blocks(M, 8, stop=40)))", 49),  # a block behind the end of the list
        ("wait(s[0], M // 7000)", None),  # more blocks than are worth it
        ("wait(s[0], rank // 64)", None),
    ],
)
def test_integers_pass_the_numbers_that_a_program_names(body: str, size: int | None) -> None:
    kernel = find_kernel(tile_level(PASSED.format(body=body)), None)
    sizes = [dims["M"] for dims in other_dims(kernel, ranks=2)]
    assert max(sizes) == (size or 16)


@pytest.mark.parametrize(
    ("index", "least"), [("2 * i + 1", 8), ("rank * 4 + i", 12), ("ranks - 1 + i", 6), ("start(m) + i", 1)]
)
def test_indices_made_of_numbers_are_never_too_large(index: str, least: int) -> None:
    """`i` goes from 0 to 3, and the last of three ranks is 2. What is not known counts for nothing."""
    text = "kernel k(X: f32[E, M], Y: f32[4, M]):\n    for m in tasks(blocks(M, 8)):\n"
    text += f"        for i in range(4):\n            Y[i, m] = X[{index}, m]\n"
    assert small_dims(find_kernel(tile_level(text), None), ranks=3)["E"] == least


def test_counters_with_a_number_are_there() -> None:
    kernel = find_kernel(tile_level(PASSED.replace("signal[M]", "signal[N]").format(body="wait(s[5], 0)")), None)
    assert small_dims(kernel, ranks=2)["N"] == 6


def test_several_of_what_tasks_are_made_for_one_by_one() -> None:
    """Heads that others share are as many as these need."""
    kernel = load(Path(__file__).parents[2] / "examples" / "grouped_attention.pk").kernel
    one, several = small_dims(kernel, ranks=1), list(other_dims(kernel, ranks=1))
    assert {one[dim] for dim in "BHG"} == {1}
    assert any(sizes["B"] > 1 and sizes["H"] > 1 for sizes in several)
    assert all(sizes["G"] * 4 >= sizes["H"] for sizes in (one, *several))


CUT_OFF = """
kernel k(X: f32[S], rows: i32[N], Y: f32[S]):
    for b in tasks(N - 1):
        for q in tasks(blocks(S, 8, start={start}, stop={stop})):
            Y[q] = X[q]
"""


@pytest.mark.parametrize(
    ("start", "stop"),
    [
        ("rows[b]", "rows[b + 1]"),
        ("rows[b]", "min(rows[b + 1], S)"),
        ("max(rows[b], 0)", "min(rows[b + 1] + 1, S)"),
    ],
)
def test_offsets_ascend_also_where_they_are_cut_off(start: str, stop: str) -> None:
    module = tile_level(CUT_OFF.format(start=start, stop=stop))
    drawn = [draw_inputs(module, ranks=2, dims={"S": 99, "N": 7}, seed=seed)["rows"] for seed in range(5)]
    assert all((np.diff(rows, axis=-1) >= 0).all() for rows in drawn)


WINDOW = """
kernel k(X: f32[S, N], n: i32, Y: f32[N]):
    for c in tasks(blocks(N, 8)):
        y = zeros(f32, c)
        for i in range(max(n - 64, 0), n):
            y = y + X[i, c]
        Y[c] = y
"""


def test_a_number_that_is_raised_to_another_may_be_below_it() -> None:
    drawn = {draw_inputs(tile_level(WINDOW), ranks=1, dims={"S": 5, "N": 8}, seed=seed)["n"] for seed in range(60)}
    assert drawn == {0, 1, 2, 3, 4, 5}


@pytest.mark.parametrize(
    ("text", "least"),
    [
        (
            "kernel k(p: i32[Q], Y: f32[N]):\n    for n in tasks(N):\n        Y[n] = cast(p[n + 1] - p[n], f32)\n",
            {"Q": 2},
        ),
        ("kernel k(p: i32[Q], Y: i32[1]):\n    for n in tasks(1):\n        Y[0] = p[rank + 1]\n", {"Q": 3}),
        ("kernel k(t: i32[T], Y: i32[P]):\n    for b in tasks(blocks(T, 16)):\n        Y[t[b]] = t[b]\n", {"P": 17}),
        (
            "kernel k(t: i32[J], X: i32[S], Y: i32[P, 16]):\n    for s in tasks(blocks(S, 32)):\n"
            "        Y[t[positions(s) // 16], positions(s) % 16] = X[s]\n",
            {"J": 3, "P": 3},
        ),
    ],
)
def test_dimensions_are_long_enough_for_offsets_and_named_places(text: str, least: dict[str, int]) -> None:
    module = compile_program(parse_text(Source("k.pk", text)), level="tile").module
    dims = small_dims(find_kernel(module, None), ranks=2)
    assert {name: dims[name] for name in least} == least
    simulate(module, ranks=2, dims=dims, inputs=draw_inputs(module, ranks=2, dims=dims, seed=0))


@pytest.mark.parametrize(("ranks", "blocks"), [(2, 5), (3, 7)])
def test_lists_whose_rows_tables_name_have_several_blocks_of_each_rank(ranks: int, blocks: int) -> None:
    """Shorter ones have no first round (`pk-order-arrivals`)."""
    kernel = find_kernel(load(EXAMPLES / "moe_dispatch_gemm.pk").module, None)
    assert [dims["P"] for dims in other_dims(kernel, ranks=ranks)][-1] == 128 * blocks
    lists = find_kernel(load(EXAMPLES / "grouped_gemm.pk").module, None)
    assert all(dims["P"] < 2 * 128 for dims in other_dims(lists, ranks=ranks))


def dims_of_rounds(body: str, sizes: Callable[..., Iterable[Mapping[str, int]]]) -> list[Mapping[str, int]]:
    text = f"kernel k(X: f32[T, N], Y: f32[T, N], V: f32[N], Z: f32[N]):\n    with role(consumer):\n{body}"
    kernel = compile_program(parse_text(Source("k.pk", text))).kernel
    return list(sizes(kernel, 2))


def test_sizes_below_what_a_program_takes_off_are_looked_at() -> None:
    rounds = "        for t in range(T - 3):\n            Y[t, 0:1] = X[t, 0:1]\n".replace("0:1", "0")
    assert [dims["T"] for dims in dims_of_rounds(rounds, least_dims)] == [1, 2, 3]
    assert min(dims["T"] for dims in dims_of_rounds(rounds, swept_dims)) > 3


def test_several_rests_are_the_last_ones_at_once() -> None:
    rounds = "        for t in range(T):\n            if t % 5 != 4 or t % 7 != 6:\n                Y[t, 0] = X[t, 0]\n"
    assert max(dims["T"] for dims in dims_of_rounds(rounds, other_dims)) == 36


@pytest.mark.parametrize(("rest", "swept"), [("", False), (" + T % N", True)])
def test_dimensions_are_no_multiples_where_a_program_takes_the_rest(rest: str, swept: bool) -> None:
    rounds = f"        for t in range(T // N * 1{rest}):\n            Y[t, 0] = X[t, 0]\n"
    rounds += "        for n in range(N):\n            Z[n] = V[n]\n"
    assert any(dims["T"] % dims["N"] for dims in dims_of_rounds(rounds, swept_dims)) == swept


@pytest.mark.parametrize(
    ("value", "signed"),
    [
        ("sqrt(X[n])", "G"),
        ("log(0.5 * X[n] + G[n] / 2.0)", ""),
        ("sqrt(X[n] * 0.9 + 0.1 * G[n] * G[n])", "G"),
        ("rsqrt(X[n] * X[n])", "XG"),
        ("sqrt(abs(X[n])) + G[n]", "XG"),
        ("log(X[n] - G[n])", "XG"),
    ],
)
def test_roots_and_logarithms_are_of_positive_numbers(value: str, signed: str) -> None:
    text = "kernel k(X: f32[N], G: f32[N], Y: f32[N]):\n    for n in tasks(blocks(N, 64)):\n"
    module = compile_program(parse_text(Source("k.pk", f"{text}        Y[n] = {value} * G[n]\n"))).module
    drawn = draw_inputs(module, ranks=1, dims={"N": 200}, seed=3)
    assert "".join(name for name in ("X", "G") if drawn[name].min() < 0) == signed


def test_launches_end_lists_of_several_blocks_at_other_scalars() -> None:
    """Else a counter of what is sent for each block would get as much in each launch, whatever the scalar."""
    text = """
kernel k(A: bf16[M, K], C: bf16[M, K], w: i32):
    for m in tasks(blocks(M, 16)):
        for k in blocks(K, 16, stop=w):
            C[m, k] = A[m, k]
"""
    module = compile_program(parse_text(Source("k.pk", text))).module
    kernel = find_kernel(module, None)
    assert {"M": 17, "K": 49} in list(other_dims(kernel, ranks=2))
    drawn = partial(draw_inputs, module, ranks=2, dims={"M": 17, "K": 49}, both_sides=True)
    scalars = [drawn(seed=seed)["w"] for seed in range(40)]
    assert max(scalars[::2]) < min(scalars[1::2])
    assert len(set(scalars)) > 20
