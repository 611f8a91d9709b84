"""What a call from Python launches, and where; when it compiles."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pkc
from pkc.codegen.artifact import Artifact
from pkc.diagnostics import PACKAGE
from pkc.driver import builder, launcher
from pkc.language import *
from pkc.runtime import default
from pkc.runtime.group import Group
from pkc.runtime.launch import LoadedKernel
from pkc.runtime.mesh import Mesh
from tests.calls import helpers
from tests.calls.helpers import gathered, here, kept, scaled, summed, tensor, told, use
from tests.clock import within
from tests.runtime.fake import FIRST_POINTER, Api
from tests.runtime.test_group import in_processes

EXAMPLES = Path(__file__).parents[2] / "examples"


# What is launched


def test_by_position_and_by_name(api: Api, compiled: list[dict[str, Any]]) -> None:
    x, y = tensor(128, 256), tensor(128, 256, at=100)
    scaled(x, y, 0.5)
    scaled(x, factor=0.5, Y=y)
    scaled(X=x, Y=y, factor=0.5, SIZE=64)
    assert [given["dims"] for given in compiled] == [{"M": 128, "N": 256}] * 2
    assert [given["constants"] for given in compiled] == [{}, {"SIZE": 64}]
    assert len(api.launches) == 3
    assert api.encoded[0]["address"] == FIRST_POINTER
    assert len({encoded["address"] for encoded in api.encoded}) == 2


def test_dimensions_may_be_named_too(api: Api) -> None:
    x, y = tensor(128, 256), tensor(128, 256, at=100)
    scaled(x, y, 0.5, M=128)
    assert len(api.launches) == 1
    assert told(lambda: scaled(x, y, 0.5, M=64)).startswith("error[PK848]: dimension `M` of `scaled` is 64 by its")


def test_tensors_of_one_gpu_make_a_mesh_of_it(api: Api) -> None:
    scaled(tensor(64, 64, device=2), tensor(64, 64, device=2, at=1), 1)
    assert [launch.context for launch in api.launches] == [1002]
    scaled([tensor(64, 64, device=at) for at in (3, 1)], [tensor(64, 64, device=at, at=1) for at in (3, 1)], 1)
    assert [launch.context for launch in api.launches[1:]] == [1003, 1001]


FAR = (2 << 38 >> 20) + 1
"""A place behind the heap's range of addresses of all ranks but one."""


def test_tensors_in_place_of_shards(api: Api, compiled: list[dict[str, Any]]) -> None:
    """Where no other rank reaches them: in the program, or by the machine code."""
    mesh = default.mesh_on([0, 1])
    x, y = ([tensor(96, 64, device=at, at=FAR + 9 * number + at) for at in range(2)] for number in range(2))
    kept(x, y)
    kept(mesh.empty((192, 64), "bf16", "shard", 0), y)
    kept(x, mesh.empty((192, 64), "bf16", "shard", 0))
    summed([tensor(130, 64, device=at) for at in range(2)], [tensor(65, 64, device=at, at=FAR + at) for at in range(2)])
    assert [given["dims"] for given in compiled] == [{"M": 192, "N": 64}, {"M": 130, "N": 64}]
    assert [launch.context for launch in api.launches] == [1000, 1001] * 4
    # Shards of a length that nothing else shows are equal.
    kept(
        [tensor(65, 64, device=at, at=FAR + at) for at in range(2)],
        [tensor(65, 64, device=at, at=FAR + 9 + at) for at in range(2)],
    )
    assert compiled[-1]["dims"] == {"M": 130, "N": 64}


def test_arrays_know_their_mesh(api: Api) -> None:
    mesh = Mesh.single_process([1, 3])
    x = mesh.empty((100, 64), "bf16", "shard", 0)
    gathered(x, [tensor(100, 64, device=1), tensor(100, 64, device=3)])
    assert [launch.context for launch in api.launches] == [1001, 1003]
    assert default._made == {}


def test_arrays_by_parameter(api: Api) -> None:
    x, y = (gathered.empty(name, M=100, N=64) for name in ("X", "Y"))
    assert (x.shape, x.dtype, x.layout, x.shard) == ((100, 64), "bf16", "shard", 0)
    assert (y.shape, y.layout) == ((100, 64), "private")
    assert x.mesh is y.mesh is pkc.mesh()
    gathered(x, y)
    assert len(api.launches) == 4
    mesh = Mesh.single_process([0])
    assert gathered.empty("X", mesh, M=1, N=64).mesh is mesh


def test_arrays_in_zigzag_order(api: Api) -> None:
    attention = pkc.load(EXAMPLES / "ring_attention.pk")
    sizes = {"B": 1, "H": 1, "S": 200}
    q, k, v, o = (attention.empty(name, zigzag=True, **sizes) for name in "QKVO")
    assert (q.shape, q.shard, q.zigzag) == ((1, 1, 200, 128), 2, True)
    assert not attention.empty("Q", **sizes).zigzag
    attention(q, k, v, o, 1.0, causal=True, zigzag=True)
    assert len(api.launches) == 4
    wanted = '`mesh.empty((B, H, S, 128), "bf16", "shard", 2)`'
    assert wanted in told(lambda: attention(q, k, v, o, 1.0, causal=True))


def test_the_default_mesh(api: Api) -> None:
    mesh = pkc.mesh()
    assert mesh is pkc.mesh()
    assert [rank.device for rank in mesh.local] == [0, 1, 2, 3]
    scaled([tensor(64, 64, device=at) for at in range(4)], [tensor(64, 64, device=at, at=1) for at in range(4)], 1)
    assert len(default._made) == 1, "the same GPUs are the same mesh"
    x = mesh.empty((64, 64), "bf16", "shard", 0)
    mesh.close()
    assert pkc.mesh() is not mesh
    expected = f"""\
error[PK857]: this mesh was closed
{here("gathered(x, tensor(64, 64))")}
  = help: `pkc.mesh()` gives a new one, on which arrays can be made
"""
    assert told(lambda: gathered(x, tensor(64, 64))) == expected
    mesh.close()


def test_a_mesh_that_was_closed(api: Api) -> None:
    """Whatever was made on it is refused, and nothing is asked of the driver."""
    mesh = pkc.mesh()
    x = mesh.empty((256, 64), "bf16", "shard", 0)
    arguments = {"X": x, "Y": [tensor(256, 64, device=rank.device, at=1) for rank in mesh.local]}
    gathered(**arguments)
    (ready,) = gathered.launcher._plans
    mesh.close()
    api.calls.clear()
    for again in (
        lambda: ready.loaded(arguments),
        lambda: LoadedKernel(ready.loaded.artifact, mesh),
        lambda: mesh.empty((64, 64), "bf16"),
        lambda: gathered.empty("X", mesh, M=64, N=64),
        mesh.synchronize,
        x.free,
        x.tensor,
    ):
        assert told(again).startswith("error[PK857]: ")
    assert not api.calls


def test_a_known_call_after_its_mesh_was_closed(api: Api) -> None:
    """Tensors make a new mesh of their GPU, as in a first call."""
    arguments = tensor(64, 64), tensor(64, 64, at=1), 1
    for _ in range(2):
        scaled(*arguments)
        (*_, ready) = scaled.launcher._plans
        ready.mesh.close()
    assert len(api.launches) == 2


def _under_torchrun(rank: int) -> Any:
    api = Api(gpus=2)
    with pytest.MonkeyPatch.context() as patch:
        use(patch, api)
        x = gathered.empty("X", M=100, N=64)
        gathered(x, tensor(100, 64, device=rank))
        scaled(tensor(64, 64, device=rank), tensor(64, 64, device=rank, at=1), 1)
        mesh = pkc.mesh()
        assert x.mesh is mesh
        mesh.close()
    return [launch.context for launch in api.launches], len(mesh.local), mesh.ranks


def test_under_torchrun() -> None:
    assert in_processes(_under_torchrun, 2) == [([1000, 1000], 1, 2), ([1001, 1001], 1, 2)]


def _tensors_on_rank_1(rank: int) -> Any:
    api = Api(gpus=2)
    with pytest.MonkeyPatch.context() as patch:
        use(patch, api)
        patch.setattr(Group.__init__, "__defaults__", (10.0,))  # seconds until a rank misses the others
        x, y, z = (kept.empty(name, M=128, N=64) for name in "XYY")
        kept(x, y)
        kept(x, tensor(64, 64, device=rank, at=FAR) if rank else y)
        kept(x, tensor(64, 64, device=rank, at=FAR + 1) if rank else z)
        pkc.mesh().close()
    return len(api.launches)


def test_each_rank_passes_tensors_or_arrays() -> None:
    """Of arrays that no other rank reaches ranks need not agree on the places."""
    assert in_processes(_tensors_on_rank_1, 2) == [3, 3]


def test_a_file(api: Api) -> None:
    gemm = pkc.load(EXAMPLES / "gemm.pk")
    assert repr(gemm) == "<pkc kernel gemm>"
    gemm(tensor(128, 64), tensor(64, 256, at=100), C=tensor(128, 256, at=200))
    assert len(api.launches) == 1
    assert pkc.load(EXAMPLES / "gemm.py").tree == gemm.tree


def test_a_file_of_several_kernels(tmp_path: Path) -> None:
    path = tmp_path / "two.pk"
    text = "kernel {}(X: f32[M], Y: f32[M]):\n    for m in tasks(blocks(M, 64)):\n        Y[m] = X[m]\n"
    path.write_text(text.format("one") + text.format("two"))
    assert pkc.load(path, kernel="two").name == "two"
    assert told(lambda: pkc.load(path)).startswith(f"error[PK911]: `{path}` has 2 kernels\n")
    assert told(lambda: pkc.load(path, kernel="tow")).startswith(f"error[PK910]: `{path}` has no kernel `tow`\n")


# When it is compiled


def test_it_is_compiled_once(api: Api, compiled: list[dict[str, Any]]) -> None:
    for at in range(3):
        scaled(tensor(128, 256, at=at), tensor(128, 256, at=100), 0.5 + at)
    assert len(compiled) == 1
    assert api.names().count("cuLibraryLoadData") == 1
    scaled(tensor(96, 256), tensor(96, 256, at=100), 0.5)
    assert len(compiled) == 2
    assert api.names().count("cuLibraryLoadData") == 1, "the same machine code is loaded once"
    scaled(tensor(96, 256, device=1), tensor(96, 256, device=1, at=100), 0.5)
    assert len(compiled) == 2
    assert api.names().count("cuLibraryLoadData") == 2, "on each mesh"


def test_other_machine_code_of_the_same_text_is_the_same_kernel(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks may each find some of their own and some of other ranks', and must agree on what is loaded."""
    made: list[bytes] = []

    def artifact_for(program: Any, **given: Any) -> Artifact:
        artifact = builder.artifact_for(program, **given)
        made.append(artifact.cubin + bytes(len(made)))
        return replace(artifact, cubin=made[-1])

    monkeypatch.setattr(launcher, "artifact_for", artifact_for)
    for rows in (128, 96):
        scaled(tensor(rows, 256), tensor(rows, 256, at=100), 0.5)
    assert len(set(made)) == 2
    assert api.names().count("cuLibraryLoadData") == 1


def test_other_sizes_of_a_schedule_that_sets_tiles(compiled: list[dict[str, Any]]) -> None:
    """It is compiled again only for rows that begin at other multiples of bytes."""
    kernel = scaled.with_schedule(tile_M=64, tile_N=64)
    for rows, columns in ((128, 256), (64, 256), (65, 512), (128, 4), (64, 4), (64, 6)):
        kernel(tensor(rows, columns), tensor(rows, columns, at=100), 0.5)
    assert [tuple(given["dims"].values()) for given in compiled] == [(128, 256), (128, 4), (64, 6)]


def test_a_call_that_was_made_before_only_launches(api: Api) -> None:
    x, y = tensor(128, 256), tensor(128, 256, at=100)
    scaled(x, y, 0.5)
    api.calls.clear()
    scaled(x, y, 0.5)
    assert api.names() == ["cuCtxGetCurrent", "cuCtxSetCurrent", "cuLaunchKernelEx", "cuCtxSetCurrent"]


def test_numbers_that_are_equal_are_not_the_same(api: Api) -> None:
    x, y = tensor(128, 256), tensor(128, 256, at=100)
    scaled(x, y, 0.0)
    assert told(lambda: scaled(x, y, False)).startswith("error[PK849]: `factor` of `scaled` is False")
    plans = len(scaled.launcher._plans)
    scaled(x, y, -0.0)
    assert len(scaled.launcher._plans) == plans + 1


def test_other_schedules(compiled: list[dict[str, Any]]) -> None:
    x, y = tensor(128, 256), tensor(128, 256, at=100)
    other = scaled.with_schedule(stages=2, overlap=none)
    assert other is scaled.with_schedule(overlap="none", stages="2")
    assert other.with_schedule(stages=3).options == {"overlap": "none", "stages": "3"}
    for _ in range(2):
        scaled.with_schedule(stages=2, overlap=none)(x, y, 0.5)
        scaled(x, y, 0.5)
    assert [given["schedule"] for given in compiled] == [{"stages": "2", "overlap": "none"}, {}]
    assert "stages = 2" in str(pkc.compile(other).module)
    assert told(lambda: scaled.with_schedule(stage=2)(x, y, 0.5)).startswith("error[PK501]: ")


def test_captured_constants_that_change(monkeypatch: pytest.MonkeyPatch, compiled: list[dict[str, Any]]) -> None:
    x, y = tensor(128, 256), tensor(128, 256, at=100)
    for rows in (64, 128, 128, 64):
        monkeypatch.setattr(helpers, "ROWS", rows)
        scaled(x, y, 0.5)
    assert len(compiled) == 3


def test_how_long_it_takes(api: Api) -> None:
    """A prepared call costs microseconds; a program that was compiled before, at most 0.1 s in a process that runs."""
    x, y = tensor(128, 256), tensor(128, 256, at=100)
    scaled(x, y, 0.5)

    def in_a_new_process() -> None:
        vars(scaled).pop("launcher")
        scaled(x, y, 0.5)

    def often() -> None:
        api.launches.clear()
        for _ in range(200):
            scaled(x, y, 0.5)

    within(0.1, in_a_new_process)
    within(200 * 200e-6, often)  # with a driver that is written in Python
    assert len(api.launches) == 200


# Other shapes


SHAPES = ((128, 256), (64, 256), (1, 64), (96, 8), (128, 512), (128, 256))


def test_other_shapes_get_what_a_first_call_gets(api: Api) -> None:
    def called(*, anew: bool) -> list[Any]:
        calls = len(api.encoded)
        for at, (rows, columns) in enumerate(SHAPES):
            if anew:
                kernel.__dict__.pop("launcher", None)
            kernel(tensor(rows, columns, at=at), Y=tensor(rows, columns, at=at + 100), factor=0.5)
        return api.encoded[calls:]

    kernel = scaled.with_schedule(tile_M=64, tile_N=64)
    first = called(anew=True)
    kernel.__dict__.pop("launcher")
    assert called(anew=False) == first
    kernel(tensor(32, 64), tensor(32, 64, at=1), 0.5)
    kernel(tensor(32, 64), tensor(32, 64, at=1), 1.5)
    assert len(api.launches) == 2 * len(SHAPES) + 2


def test_other_shapes_on_several_ranks_get_what_a_first_call_gets(api: Api) -> None:
    """Arrays of the mesh of other shapes, or elsewhere, and a tensor on each rank."""
    mesh, kernel = pkc.mesh(), gathered.with_schedule(tile_M=64, tile_N=64)
    shapes = ((128, 256), (64, 256), (3, 64), (96, 8), (128, 256))
    arrays = [mesh.empty(shape, "bf16", "shard", 0) for shape in shapes]

    def called(*, anew: bool) -> list[Any]:
        api.launches.clear()
        found: list[Any] = []
        for at, x in enumerate(arrays):
            if anew:
                kernel.__dict__.pop("launcher", None)
            kernel(x, Y=[tensor(*x.shape, device=rank.device, at=at) for rank in mesh.local])
        for launch in api.launches:
            numbers = [launch.struct[at] for at in range(0, len(launch.struct) // 128 * 128, 128)]
            found.append([api.encoded[number - 1] for number in numbers if 0 < number <= len(api.encoded)])
        return found

    api.struct_bytes = 512
    first = called(anew=True)
    kernel.__dict__.pop("launcher")
    assert called(anew=False) == first
    assert len(first) == 4 * len(shapes)


def calls_of_pkc(action: Callable[[], object]) -> int:
    """How many functions of pkc an action calls."""
    count = 0

    def profile(frame: Any, event: str, _: object) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_filename.startswith(PACKAGE)

    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


def test_how_much_python_runs(api: Api) -> None:
    """In calls of functions, which no other process makes more: for arguments as before, arrays elsewhere, and other
    shapes; of one rank, and of four in one process."""
    one = scaled.with_schedule(tile_M=64, tile_N=64)
    four = gathered.with_schedule(tile_M=64, tile_N=64)
    mesh = pkc.mesh()

    def of_one(rows: int, at: int) -> Callable[[], None]:
        x, y = tensor(rows, 64, at=at), tensor(rows, 64, at=at + 1)
        return lambda: one(x, y, 0.5)

    def of_four(rows: int, at: int) -> Callable[[], None]:
        x, ys = mesh.empty((rows, 64), "bf16", "shard", 0), [tensor(rows, 64, device=n, at=at) for n in range(4)]
        return lambda: four(x, ys)

    for call, most in ((of_one, (42, 42, 86)), (of_four, (44, 44, 170))):
        for action in (call(128, 1), call(64, 1), call(64, 2)):  # what is made once, such as types of arrays of a rank
            action()
        counted = [calls_of_pkc(action) for action in (call(64, 1), call(64, 3), call(192, 1))]
        assert all(found <= bound for found, bound in zip(counted, most, strict=True)), counted


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ((tensor(64, 64), replace(tensor(64, 64), dtype="torch.float16"), 0.5), "PK843"),
        ((tensor(64, 64), tensor(64, 72, at=1), 0.5), "PK848"),
        ((tensor(64, 64), replace(tensor(64, 64, at=1), strides=(128, 1)), 0.5), "PK845"),
        ((tensor(64, 64), replace(tensor(64, 64), address=FIRST_POINTER + 8), 0.5), "PK853"),
        ((tensor(64, 64), tensor(64, 64, device=1), 0.5), "PK846"),
        ((tensor(64, 64), tensor(64, 64), 0.5), "PK867"),
        ((tensor(64, 64), tensor(64, 64, at=1), "0.5"), "PK849"),
        ((tensor(64, 64), tensor(64), 0.5), "PK844"),
        ((tensor(64, 0), tensor(64, 0, at=1), 0.5), "PK848"),
    ],
)
def test_other_shapes_that_do_not_fit(api: Api, given: tuple[Any, ...], code: str) -> None:
    """They are refused as in a first call."""
    call = lambda: scaled(*given)  # noqa: E731
    alone = told(call)
    scaled.__dict__.pop("launcher")
    scaled(tensor(128, 128), tensor(128, 128, at=1), 0.5)
    assert told(call) == alone
    assert alone.startswith(f"error[{code}")


def test_lines_of_one_position_may_have_any_stride(api: Api) -> None:
    scaled(tensor(128, 128), tensor(128, 128, at=1), 0.5)
    scaled(replace(tensor(1, 64), strides=(4096, 1)), tensor(1, 64, at=1), 0.5)
    assert len(api.launches) == 2
