"""What is run on GPUs: kernels, schedules, and sizes by the number of ranks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pkc.codegen.artifact import Artifact
from pkc.dialect.declaration import OPERATIONS
from pkc.dialect.reductions import RowReduction
from pkc.dialect.types import dtype_name, f32
from pkc.driver.builder import artifact_for
from pkc.driver.compiler import Compiled, compile_program, load_program
from pkc.frontend.parse import parse_text
from pkc.frontend.tree import Program
from pkc.location import Source
from tests import routed
from tests.axes import PROGRAMS as AXES
from tests.axes import SUMS as AXES_SUMS
from tests.counted import BY_HAND, COUNTED, IN_BRANCHES
from tests.divided import DECODE
from tests.divided import PROGRAMS as DIVIDED
from tests.drawn import SEEDS, draw
from tests.exchanges import DIMS, PAIRS, exchange
from tests.functions import elements, program
from tests.gpu import lengths
from tests.gpu.lengths import Dims, Sizes
from tests.gpu.programs import (
    ADDITION,
    COLLECTIVES,
    COMBINED,
    COPY,
    ELEMENTWISE,
    EPILOGUE,
    FROM_MEMORY,
    LONG_ROWS,
    LOOPED_ROWS,
    NESTED,
    ROW_SUMS,
    with_collective,
)
from tests.irregular import OVER_RANKS as IRREGULAR_OVER_RANKS
from tests.irregular import RAGGED, TABLES
from tests.joined import PROGRAMS as JOINED
from tests.matmuls import BATCHED, FORMS, GRAM, LOOPS, SUMS, matmul
from tests.scattered import SCATTERED
from tests.shifted import SHIFTED
from tests.tiles import EPILOGUES, LONG, OVER_RANKS, TILES
from tests.windows import PROGRAMS as WINDOWS
from tests.written import WRITTEN

EXAMPLES = Path(__file__).parents[2] / "examples"

EXPERTS = ("moe_dispatch_gemm", "moe_mlp", "moe_gather_combine", "moe_combine", "grouped_gemm")

_RANKS_OF_MANY_SMS = 4
"""Ranks that can share one GPU with 16 SMs that communicate each."""


@dataclass(frozen=True)
class Case:
    """A kernel under a schedule; `text` is the name of an example or a program.

    `alone` if ranks do not wait for each other; then few numbers of ranks are enough. `routing` names tables that take
    the place of drawn ones (`tests/routed.py`).
    """

    name: str
    text: str
    sizes: Sizes
    schedule: dict[str, str] = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)
    alone: bool = False
    routing: str = ""

    def given(self, ranks: int) -> dict[str, Any]:
        """Inputs that are not drawn."""
        return routed.given(self.text, self.routing, ranks) if self.routing else {}

    def program(self) -> Program:
        if "\n" in self.text:
            return parse_text(Source(f"{self.name}.pk", self.text))
        return load_program(EXAMPLES / f"{self.text}.pk")

    def tile_level(self) -> Compiled:
        """The kernel at the tile level."""
        return compile_program(self.program(), constants=self.constants, schedule=self.schedule)

    def artifact(self, ranks: int, dims: Dims) -> Artifact:
        """The machine code for these sizes. Raises `PkcError`."""
        given = {"constants": self.constants, "schedule": self.schedule}
        return artifact_for(self.program(), dims=dims, ranks=ranks, **given)


# The table


def _scheduled(text: str, sizes: Sizes, *schedules: str, **more: bool) -> Iterator[Case]:
    """A kernel with the default schedule at all sizes, and with others at few."""
    yield Case(text, text, sizes, **more)
    for schedule in schedules:
        yield Case(f"{text} {schedule}", text, lengths.few(sizes), _settings(schedule), **more)


def _settings(schedule: str) -> dict[str, str]:
    return dict(setting.split("=") for setting in schedule.split(",") if setting)


def _table() -> Iterator[Case]:
    matrices = lengths.matrices()
    sums = (
        "overlap=none",
        "overlap=intra_sm",
        "overlap=inter_sm",
        "overlap=inter_sm,comm_sms=8",
        "overlap=copy_engine",
        "straddle=true,tile_M=32,tile_N=64",
    )
    splits = ("split_K=2,tile_M=64,tile_N=64", "split_K=5,tile_M=16,tile_N=64,tile_K=32")
    little = ("tile_M=2,tile_N=64,tile_K=128", "tile_M=4,tile_N=16,tile_K=256", "tile_M=3,tile_N=128,split_K=2")
    orders = ("order=natural", "order=local_first", "order=local_last", "order=ring")
    yield from _scheduled(
        "gemm", matrices, "stages=1", "stages=2", "consumers=2", "order=natural", *splits, *little, alone=True
    )
    for name, given in (("", {}), (" tile_P=64", {"tile_P": "64", "tile_N": "64"})):
        yield Case(f"conv2d{name}", "conv2d", lengths.images, given, constants={"H": 8, "W": 8}, alone=True)
    for rows in (16, 48, 80, 144):
        text = BATCHED.format(depth=rows)
        yield Case(f"batched by {rows}", text, lambda ranks: [{"B": 3, "M": 130, "N": 264, "K": 200}], alone=True)
    yield Case("gram", GRAM, lambda _: [{"M": 8, "K": 8}, {"M": 136, "K": 200}, {"M": 520, "K": 72}], alone=True)
    yield Case("gemm uneven", "gemm", lengths.uneven, alone=True)
    yield Case(f"gemm uneven {splits[0]}", "gemm", lengths.uneven, _settings(splits[0]), alone=True)
    for family in ("ag_gemm", "gemm_rs", "gemm_ar"):
        for schedule in ("", "overlap=none", "overlap=intra_sm", "overlap=inter_sm,comm_sms=8", "overlap=copy_engine"):
            yield Case(f"{family} uneven {schedule}".strip(), family, lengths.uneven, _settings(schedule))
    yield from _tiles()
    yield from _axes()
    yield from _divided()
    yield from _joined()
    yield from _windows()
    yield Case("gemm_fp8", "gemm_fp8", lengths.matrices(16), alone=True)
    yield Case("gemm_fp8 uneven", "gemm_fp8", lengths.uneven, alone=True)
    yield Case("gemm_fp8_blocks", "gemm_fp8_blocks", lengths.scaled, alone=True)
    for given in ({"tile_M": "128"}, {"tile_M": "192", "consumers": "3"}):
        yield Case(f"gemm_fp8_blocks tile_M={given['tile_M']}", "gemm_fp8_blocks", lengths.scaled, given, alone=True)
    for kind in ("bf16", "f16"):
        for form in FORMS:
            sizes = lengths.transposed(matrices) if form.startswith("t") else matrices
            yield Case(f"matmul {kind} {form}", matmul(form, kind, kind), lengths.few(sizes), alone=True)
        yield Case(f"matmul {kind} into {kind}", matmul("nn", kind, kind, c=kind), lengths.few(matrices), alone=True)
    for a, b in (("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "e4m3"), ("e5m2", "e5m2")):
        yield Case(f"matmul {a} {b}", matmul("nt", a, b), lengths.few(lengths.matrices(16)), alone=True)
    for form in FORMS:
        sizes = lengths.transposed(lengths.matrices(16), 16) if form.startswith("t") else lengths.matrices(16)
        for kind in ("f32", "e4m3"):
            yield Case(f"matmul {kind} {form}", matmul(form, kind, kind), lengths.few(sizes), alone=True)
    yield Case("matmul f32 shards", with_collective("rs", "f32", "f32"), lengths.few(lengths.matrices(16)))
    for name, text in LOOPS.items():
        yield Case(f"loop {name}", text, _OF_LOOPS.get(name, lengths.few(matrices)), alone="shard" not in text)
    yield Case("sums two", SUMS["two"], lengths.few(matrices))
    yield Case("sums of iterations", SUMS["of iterations"], lengths.few(matrices))
    yield Case("sums rows", SUMS["rows"], lambda ranks: [{"M": 61 * ranks + 5, "K": 200}, {"M": 3000, "K": 72}])
    for consumers, rows in ((1, 64), (2, 256), (3, 192)):
        text, schedule = matmul("nn", "bf16", "bf16", rows=rows, columns=64), {"consumers": str(consumers)}
        yield Case(f"matmul consumers={consumers}", text, lengths.few(matrices), schedule, alone=True)
    yield Case("tasks in tasks", NESTED, lengths.nested, alone=True)
    yield from _scheduled("gemm_rs", matrices, *sums, *orders, *splits, *little, "stages=1", "transfer=push")
    yield from _scheduled("gemm_ar", matrices, *sums, *splits, "order=natural", "stages=1")
    pushed = "overlap=inter_sm,transfer=push"
    separate = [
        f"separate_loader=true,{sizes}" for sizes in ("tile_N=128", "tile_M=16,tile_N=32,straddle=true", splits[0])
    ]
    more = (*separate, "stages=1", pushed, f"{pushed},{splits[0]}")
    yield from _scheduled("ag_gemm", matrices, *sums, *orders, *splits, *little, *more)
    for family in COLLECTIVES:
        yield Case(f"matmul_{family} f16", with_collective(family, "f16", "f16"), lengths.few(matrices))
        yield Case(f"matmul_{family} f16 f32", with_collective(family, "f16", "f32"), lengths.few(matrices))
        yield Case(f"matmul_{family} e4m3", with_collective(family, "e4m3", "bf16"), lengths.few(lengths.matrices(16)))
    for name in ("gemm", "gemm_rs", "gemm_ar", "ag_gemm"):
        sizes = lengths.more_than_ctas({"M": 2500, "N": 2056, "K": 72})
        yield Case(f"{name} many tasks", name, sizes, alone=name == "gemm")
    heads = lengths.more_than_ctas({"B": 4, "H": 40, "S": 129})
    yield Case("ring_attention many tasks", "ring_attention", heads)
    yield Case("functions in an epilogue", EPILOGUE, lengths.few(matrices), alone=True)
    yield Case("functions of elements", ELEMENTWISE, lengths.few(lengths.collective), alone=True)
    yield Case("swiglu", "swiglu", matrices, alone=True)
    yield Case("mlp", "mlp", lambda ranks: [{**dims, "P": dims["K"]} for dims in matrices(ranks)], alone=True)
    yield Case("sums of rows", ROW_SUMS, lengths.few(lengths.collective), alone=True)
    yield from _attention()
    yield from _from_memory()
    yield from _by_tables()
    for name in ("all_gather", "all_to_all", "reduce_scatter", "all_reduce"):
        yield from _scheduled(name, lengths.collective, "overlap=copy_engine")
        text = (EXAMPLES / f"{name}.pk").read_text(encoding="utf-8")
        for kind in ("f16", "f32"):
            yield Case(f"{name} {kind}", text.replace("bf16", kind), lengths.few(lengths.collective))
    for name in ("all_reduce", "gemm_ar"):
        sizes = lengths.matrices() if name.startswith("gemm") else lengths.collective
        for schedule in ("all_reduce=one_shot", "all_reduce=one_shot,tile_M=8,tile_N=64"):
            yield Case(f"{name} {schedule}", name, sizes, _settings(schedule))
            yield Case(f"{name} packets=true,{schedule}", name, sizes, _settings(f"packets=true,{schedule}"))
    for name in ("all_reduce", "gemm_ar", "all_gather", "reduce_scatter", "gemm_rs"):
        sizes = lengths.matrices() if name.startswith("gemm") else lengths.collective
        for schedule in ("packets=true", "packets=true,tile_M=8,tile_N=64"):
            yield Case(f"{name} {schedule}", name, sizes, _settings(schedule))
    for before, after in PAIRS:
        for kind in ("bf16", "f32") if before + after == DIMS.index("C") else ("bf16",):
            name = f"exchange {DIMS[before]} to {DIMS[after]}, {kind}"
            yield Case(name, exchange(before, after, kind), lengths.even_and_uneven)
    yield from _written()
    yield from _ragged()
    yield from _functions()
    yield from _inference()
    for path in sorted((EXAMPLES / "fp8").glob("*.pk")):
        sizes = lengths.scaled if "blocks" in path.stem else lengths.few(lengths.matrices(16))
        yield Case(f"fp8 {path.stem}", path.read_text(encoding="utf-8"), sizes)
    yield from _long_rows()
    for columns in (8, 296):  # boxes of fewer rows at the end, panels that end behind their tile
        text = COPY.format(rows=264, columns=columns)
        yield Case(f"copy of tiles of 264 x {columns}", text, lambda ranks: [{"M": 521, "N": 640}], alone=True)
    for drawn in map(draw, SEEDS):
        yield Case(drawn.name, drawn.text, lengths.drawn(drawn), alone=not drawn.over)


def _inference() -> Iterator[Case]:
    """Norms and losses over ranks, at rows as long as models have them, and in pieces."""
    for path in sorted((EXAMPLES / "inference").glob("*.pk")):
        text = path.read_text(encoding="utf-8")
        if path.stem == "route":
            for experts in (8, 60, 256):
                tokens: Sizes = lambda ranks: [{"T": 1, "K": 1}, {"T": 200, "K": 8}]  # noqa: E731
                yield Case(f"inference route E={experts}", text, tokens, constants={"E": experts}, alone=True)
            continue
        found = re.search(r"(\w): const", text)
        length = found[1] if found else ""
        few, more = {"M": 9, "N": 264, "K": 136, "V": 264, "H": 264, "T": 37}, lengths.LARGE | {"M": 200, "T": 128}
        sizes = lengths.of(text, *({dim: size for dim, size in each.items() if dim != length} for each in (few, more)))
        if not length:
            yield Case(f"inference {path.stem}", text, sizes)
            continue
        for constant, schedule in ((1024, {}), (1000, {}), (1000, {"row": "256"})):
            name = f"inference {path.stem} {length}={constant}" + ", in pieces" * bool(schedule)
            yield Case(name, text, sizes, schedule, {length: constant})
        if path.stem == "all_reduce_rmsnorm":
            yield Case(f"inference {path.stem} packets=true", text, sizes, {"packets": "true"}, {length: 1024})
        if length == "V":
            long: Sizes = lambda ranks, sizes=sizes: sizes(ranks)[:1]  # noqa: E731
            yield Case(f"inference {path.stem} {length}=37984", text, long, constants={length: 37984})


def _long_rows() -> Iterator[Case]:
    """Rows in pieces, with a rest of any length, and in clusters of CTAs."""
    sizes: Sizes = lambda ranks: [{"M": 1}, {"M": 150}]  # noqa: E731
    padded = ((4328, {}), (2984, {}))
    pieces = ((4480, {"row": "1024"}), (1000, {"row": "256"}), (333, {"row": "64"}))
    for length, given in (
        (151936, {}),
        (32768, {}),
        *pieces,
        *padded,
        (8768, {"cluster": "8"}),
        (4096, {"cluster": "2"}),
    ):
        for name, body in LONG_ROWS.items():
            yield from _of_rows(length, name, body, sizes, given)
    for name, length, given in (
        ("loaded again", 151936, {}),
        ("loaded again", 1000, {"row": "256"}),
        ("carried", 4096, {"cluster": "2"}),
        ("carried", 24000, {"cluster": "8"}),
    ):
        yield from _of_rows(length, name, LOOPED_ROWS[name], sizes, given)


def _of_rows(length: int, name: str, body: str, sizes: Sizes, given: Mapping[str, str]) -> Iterator[Case]:
    head = (
        f"kernel {name.replace(' ', '_')}(X: bf16[M, {length}], w: bf16[{length}], Y: bf16[M, {length}], Z: f32[M]):\n"
    )
    for tasks in ("tasks(M)", "tasks(blocks(M, 4))"):
        whole = f"{head}    for m in {tasks}:\n{body.replace('LENGTH', str(length))}"
        yield Case(f"rows of {length}: {name}, {tasks}", whole, sizes, given, alone=True)


def _written() -> Iterator[Case]:
    """Roles that an author wrote; those with 16 SMs only where ranks have more."""
    for name, sizes in (("ag_gemm_explicit", lengths.matrices()), ("all_reduce_explicit", lengths.collective)):
        yield Case(name, name, lambda ranks, sizes=sizes: sizes(ranks) if ranks <= _RANKS_OF_MANY_SMS else [])
        yield Case(f"{name} comm_sms=4", name, lengths.few(sizes), {"comm_sms": "4"})
    for kind in ("f16", "f32"):
        text = (EXAMPLES / "all_reduce_explicit.pk").read_text(encoding="utf-8").replace("bf16", kind)
        yield Case(f"all_reduce_explicit {kind}", text, lengths.few(lengths.collective), {"comm_sms": "4"})
    for name, text in WRITTEN.items():
        sizes: Sizes = lambda _: [{}]  # noqa: E731
        if "M, N]" in text:
            sizes = lengths.few(lengths.matrices() if "K]" in text else lengths.collective)
        elif re.search(r"\bM\]", text):
            sizes = lengths.few(lengths.rows)
        for kind in ("bf16", "f16", "f32"):
            yield Case(f"written: {name}, {kind}", text.replace("f32[", f"{kind}["), sizes)


def _ragged() -> Iterator[Case]:
    """Rows that begin at no multiple of 16 bytes, of what ranks exchange and of experts."""
    collectives = ("all_gather", "all_to_all", "reduce_scatter", "all_reduce", "all_reduce_explicit")
    for name in (*collectives, "ag_gemm_explicit", *EXPERTS):
        text = (EXAMPLES / f"{name}.pk").read_text(encoding="utf-8")
        sizes = lengths.ragged(text, back=name in ("moe_mlp", "moe_gather_combine"))
        given = {"comm_sms": "4"} if "explicit" in name else {}
        constants = {"P": lengths.CAPACITY} if name == "moe_mlp" else {}
        yield Case(f"{name} ragged", name, sizes, given, constants, alone=name == "grouped_gemm")


def _by_tables() -> Iterator[Case]:
    """Rows that tables pick, on all ranks, on this one, on one that the table names."""
    schedules = ("overlap=none", "overlap=intra_sm", "overlap=inter_sm,comm_sms=8", "overlap=copy_engine")
    yield from _scheduled("moe_dispatch_gemm", lengths.experts, *schedules)
    yield Case("moe_gather_combine", "moe_gather_combine", lengths.returned)
    for schedule in ("", "overlap=intra_sm", "overlap=inter_sm,comm_sms=4", "overlap=copy_engine"):
        name = f"moe_mlp {schedule}".strip()
        yield Case(name, "moe_mlp", lengths.token_rows, _settings(schedule), {"P": lengths.CAPACITY})
    for text in ("moe_dispatch_gemm", "moe_mlp", "moe_gather_combine", "moe_combine"):
        constants = {"P": routed.CAPACITY} if text == "moe_mlp" else {}
        for routing in routed.ROUTINGS:
            yield Case(f"{text}, {routing}", text, lengths.routed(text), {}, constants, routing=routing)
    text = (EXAMPLES / "moe_dispatch_gemm.pk").read_text(encoding="utf-8")
    private = text.replace("X: bf16[T, H].shard(0)", "X: bf16[T, H]")
    named = text.replace(".shard(0)", ".symmetric()").replace("rows: i32[E, P]", "rows: i32[E, P, 2]")
    for name, added in routed.SUMS.items():
        yield Case(f"sums of {name}", added, lengths.summed(added))
    anyhow = {"deterministic": "False"}
    combine = (EXAMPLES / "moe_combine.pk").read_text(encoding="utf-8")
    forms = {
        "f16": combine.replace("bf16", "f16"),
        "e4m3": combine.replace("bf16", "e4m3").replace("Y[e, p, n]", "cast(Y[e, p, n], f32)"),
        "f32": combine.replace("bf16", "f32"),
        "replicated": combine.replace(".shard(0)", ".replicate()"),
        "columns": combine.replace(".shard(0)", ".shard(1)"),
    }
    for order in ({}, anyhow):
        said = " deterministic=False" * bool(order)
        yield Case(f"moe_combine{said}", "moe_combine", lengths.combined, order)
        for form, text in forms.items():
            if form == "e4m3" and order:
                continue  # no atomic addition has 8 bits
            settings = order | ({"tile_N": "64"} if form == "f32" else {})
            yield Case(f"moe_combine {form}{said}", text, lengths.few(lengths.combined), settings)
    for form, text in COMBINED.items():
        yield Case(f"moe_combine {form}", text, lengths.few(lengths.combined))
    yield Case("grouped_gemm", "grouped_gemm", lengths.grouped, alone=True)
    for name in ("all_reduce", "reduce_scatter", "gemm_ar", "gemm_rs"):
        sizes = lengths.few(lengths.matrices() if name.startswith("gemm") else lengths.collective)
        yield Case(f"{name} deterministic=False", name, sizes, anyhow)
    yield Case("moe_dispatch_gemm private", private, lengths.experts, alone=True)
    yield Case("moe_dispatch_gemm symmetric", named, lengths.experts)


def _from_memory() -> Iterator[Case]:
    """Tasks, blocks and conditions that arrays decide."""
    for name, text in FROM_MEMORY.items():
        yield Case(f"from memory {name}", text, lengths.lists("EMNK" if "[E, K, N]" in text else "EMN"), alone=True)
    for name, case in (
        RAGGED | TABLES | SCATTERED | SHIFTED | IRREGULAR_OVER_RANKS | COUNTED | BY_HAND | IN_BRANCHES
    ).items():
        yield Case(f"from memory: {name}", case.text.lstrip(), case.sizes, alone=case.alone)


def _tiles() -> Iterator[Case]:
    """Epilogues, and tiles that meet no MMA: at rows that suit TMA, and at others."""
    for name, text in (EPILOGUES | OVER_RANKS | TILES).items():
        alone = name not in OVER_RANKS
        # Where A or A.T is square, M is the length of rows too.
        yield Case(f"tiles {name}", text, lengths.of(text, lengths.ALIGNED, lengths.LARGE), alone=alone)
        yield Case(f"tiles {name} uneven", text, lengths.of(text, lengths.UNEVEN), alone=alone)
    for name in LONG:
        text, settings = EPILOGUES[name], {"tile_M": "128", "tile_N": "256"}
        yield Case(f"tiles {name} several tasks", text, lengths.of(text, *lengths.SEVERAL), settings, alone=True)
    for consumers in "12":
        text, settings = EPILOGUES["gemm_silu"], {"tile_M": "128", "tile_N": "128", "consumers": consumers}
        title = f"tiles gemm_silu several tasks consumers={consumers}"
        yield Case(title, text, lengths.of(text, *lengths.SEVERAL), settings, alone=True)


def _axes() -> Iterator[Case]:
    """Axes in any order, of one block twice, shifted, picked by tables; and sums into what these address."""
    for name, (text, _) in AXES.items():
        yield Case(f"axes {name}", text, lengths.of(text, lengths.ALIGNED, lengths.UNEVEN), alone=True)
    for name, text in AXES_SUMS.items():
        yield Case(f"axes {name}", text, lengths.of(text, lengths.ALIGNED, lengths.UNEVEN))


def _divided() -> Iterator[Case]:
    """Loops in splits: of more blocks than there are splits, of fewer, of a length that an array says."""
    sizes: list[Dims] = [{"M": 8, "N": 8}, {"M": 71, "N": 296}, {"M": 512, "N": 1024}]
    for name, text in DIVIDED.items():
        for count in ("2", "7", "64") if name in ("attention", "masked") else ("7",):
            yield Case(f"divided {name} {count}", text, lambda _: sizes, {"split_N": count}, alone=True)
    lengths_of = [{"B": 3, "H": 2, "N": 300}, {"B": 1, "H": 8, "N": 8192}]
    for count in ("3", "16"):
        yield Case(f"divided decode {count}", DECODE, lambda _: lengths_of, {"split_N": count}, alone=True)


def _joined() -> Iterator[Case]:
    """Elements that lie in turn: pairs and colours, of rows that suit TMA and others, of whole blocks and parts."""
    for name, text in JOINED.items():
        sizes = lengths.of(text, lengths.ALIGNED, lengths.UNEVEN, lengths.LARGE)
        yield Case(f"joined {name}", text.lstrip(), sizes, alone=True)


_OF_LOOPS: dict[str, Sizes] = {
    "outer": lambda _: [{"M": 300, "N": 200, "L": count} for count in (1, 9)],
    "twice": lambda _: [{"M": 300, "N": 200, "K": 72, "L": 8}, {"M": 1000, "N": 264, "K": 1032, "L": 2000}],
}
"""Sizes of loops that have other dimensions."""


def _windows() -> Iterator[Case]:
    """Elements that are loaded at several shifted places, of rows that suit TMA and others."""
    for name, text in WINDOWS.items():
        sizes = lengths.of(text, lengths.ALIGNED, lengths.UNEVEN, lengths.LARGE, {**lengths.ALIGNED, "M": 17, "N": 140})
        yield Case(f"windows {name}", text.lstrip(), sizes, alone=True)


def _functions() -> Iterator[Case]:
    """Every declared operation; `tests/gpu/functions.py` runs those element by element on all kinds of numbers."""
    for op in OPERATIONS:
        sizes = lengths.few(lengths.rows if issubclass(op, RowReduction) else lengths.collective)
        for element in elements(op):
            text = program(op, element, positive=element == f32)
            yield Case(f"{op.name} {dtype_name(element)}", text, sizes, alone=True)


def _attention() -> Iterator[Case]:
    overlaps = ("overlap=none", "overlap=intra_sm", "overlap=inter_sm,comm_sms=8", "overlap=copy_engine")
    yield Case("attention", "attention", lengths.one_gpu, alone=True)
    yield Case("attention causal", "attention", lengths.one_gpu, constants={"causal": True}, alone=True)
    for name in ("attention", "ring_attention", "ulysses_attention"):
        text, sizes = (
            (EXAMPLES / f"{name}.pk").read_text(encoding="utf-8"),
            lengths.one_gpu if name == "attention" else lengths.sequence,
        )
        few, alone = lengths.few(sizes), name == "attention"
        yield Case(f"{name} D=64", name, few, constants={"D": 64}, alone=alone)
        yield Case(f"{name} f16", text.replace("bf16", "f16"), few, alone=alone)
    for constants in ({"D": 256}, {"D": 256, "causal": True}):
        listed = ", ".join(f"{name}={value}" for name, value in constants.items())
        yield Case(f"attention {listed}", "attention", lengths.one_gpu, {"tile_T": "64"}, constants, alone=True)
    for group in (1, 3, 4):
        for causal in (False, True):
            constants = {"group": group, "causal": causal}
            for example in ("grouped_attention", "attention_dq", "attention_dkdv"):
                name = f"{example} group={group}" + ", causal" * causal
                yield Case(name, example, lengths.groups(group), constants=constants, alone=True)
    for example in ("grouped_attention", "attention_dq", "attention_dkdv"):
        few = lengths.few(lengths.groups(4))
        constants = {"D": 64, "group": 4, "causal": True}
        yield Case(f"{example} D=64", example, few, constants=constants, alone=True)
    yield Case("attention_delta", "attention_delta", lengths.without_keys, alone=True)
    yield Case("store_add to a private array", ADDITION, lengths.matrices(), alone=True)
    for window in (1, 70, 128):
        constants = {"window": window}
        yield Case(
            f"window_attention window={window}", "window_attention", lengths.one_gpu, constants=constants, alone=True
        )
    for constants in ({}, {"causal": True}, {"D": 64}, {"group": 3, "causal": True}):
        listed = "".join(f" {name}={value}" for name, value in constants.items())
        sizes = lengths.packed(constants.get("group", 1))
        yield Case(f"packed_attention{listed}", "packed_attention", sizes, constants=constants, alone=True)
    yield Case("packed_attention tile_T=160", "packed_attention", lengths.packed(1), {"tile_T": "160"}, alone=True)
    for constants in ({}, {"splits": 1}, {"splits": 7, "D": 64}):
        listed = "".join(f" {name}={value}" for name, value in constants.items())
        for schedule in ("", "packets=true"):
            name = f"decode_attention{listed} {schedule}".strip()
            yield Case(name, "decode_attention", lengths.decoded, _settings(schedule), constants)
    yield from _scheduled("ring_attention", lengths.sequence, *overlaps)
    yield Case("ring_attention causal", "ring_attention", lengths.sequence, constants={"causal": True})
    zigzag = {"causal": True, "zigzag": True}
    yield Case("ring_attention zigzag", "ring_attention", lengths.sequence, constants=zigzag)
    for schedule in overlaps:
        yield Case(
            f"ring_attention zigzag {schedule}",
            "ring_attention",
            lengths.few(lengths.sequence),
            _settings(schedule),
            zigzag,
        )
    yield Case("ring_attention zigzag tile_S=64", "ring_attention", lengths.halves, {"tile_S": "64"}, zigzag)
    rings = ("grouped_ring_attention", lengths.rings), ("ring_attention_dq", lengths.ring_pairs(2))
    for name, sizes in (*rings, ("ring_attention_dkdv", lengths.ring_pairs(1))):
        constants = {} if name == "ring_attention_dkdv" else {"group": 2}
        for more in ({}, {"causal": True}, zigzag):
            listed = "".join(f" {key}" for key in more)
            yield Case(f"{name}{listed}", name, sizes, constants=constants | more)
        for schedule in (*overlaps, "comm_sms=4"):
            yield Case(f"{name} {schedule}", name, lengths.few(sizes), _settings(schedule), constants | zigzag)
    yield from _scheduled("ulysses_attention", lengths.sequence, *overlaps)


CASES: tuple[Case, ...] = tuple(_table())
