"""Meshes and their heap, on the fake driver."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pkc.diagnostics import PkcError
from pkc.location import NOWHERE
from pkc.runtime import torch as adapter
from pkc.runtime.arrays import View
from pkc.runtime.driver import Driver
from pkc.runtime.errors import RankLeft
from pkc.runtime.mesh import Mesh
from tests.runtime.fake import MEMORY, SMS, SPAN, UNIT, Api, driver

STRIDE = 1 << 38


def shown(call: Any, *arguments: Any, **keywords: Any) -> str:
    with pytest.raises(PkcError) as raised:
        call(*arguments, **keywords)
    return f"{raised.value}\n"


def test_all_gpus_of_one_process() -> None:
    api = Api(gpus=3)
    mesh = Mesh.single_process(driver=Driver(api))
    assert [(rank.rank, rank.device, rank.context, rank.sms) for rank in mesh.local] == [
        (rank, rank, 1000 + rank, SMS) for rank in range(3)
    ]
    assert len({rank.stream for rank in mesh.local}) == 3
    assert mesh.heap.stride == STRIDE > MEMORY
    ((*_, size, _, _, _),) = [call for call in api.calls if call[0] == "cuMemAddressReserve"]
    assert size == 3 * STRIDE
    mesh.empty((1 << 20,), "f32")
    assert api.mapped == {SPAN + rank * STRIDE: rank for rank in range(3)}
    assert all(devices == [0, 1, 2] for devices in api.access.values())
    assert not api.handles, "the mappings alone keep the memory"
    assert api.contexts == [0]


def test_chosen_gpus() -> None:
    api = Api()
    mesh = Mesh.single_process([5, 2], driver=Driver(api))
    mesh.empty((1,), "f32")
    assert [(rank.rank, rank.device) for rank in mesh.local] == [(0, 5), (1, 2)]
    assert api.mapped == {SPAN: 5, SPAN + STRIDE: 2}
    assert set(map(tuple, api.access.values())) == {(2, 5)}


def test_virtual_ranks() -> None:
    api = Api()
    mesh = Mesh.virtual(5, 3, driver=Driver(api))
    mesh.empty((1,), "f32")
    assert {(rank.device, rank.sms) for rank in mesh.local} == {(3, SMS // 5)}
    assert len({rank.stream for rank in mesh.local}) == 5
    assert api.mapped == {SPAN + rank * STRIDE: 3 for rank in range(5)}
    assert set(map(tuple, api.access.values())) == {(3,)}


def test_no_multicast_object_is_made() -> None:
    api = Api()
    mesh = Mesh.single_process(driver=Driver(api))
    mesh.empty((1 << 30,), "f32").free()
    mesh.close()
    assert not [name for name in api.names() if "Multicast" in name]


def test_the_heap_grows_when_it_must() -> None:
    api = Api(gpus=2)
    mesh = Mesh.single_process(driver=Driver(api))
    first = mesh.empty((16 << 20,), "f32")
    assert len(api.mapped) == 2, "64 MiB on each rank"
    second = mesh.empty((1,), "f32")
    assert (first.offset, second.offset) == (0, 64 << 20)
    assert sorted(api.mapped) == [SPAN, SPAN + (64 << 20), SPAN + STRIDE, SPAN + STRIDE + (64 << 20)]
    third = mesh.empty(((64 << 20) + 1,), "f32")
    assert third.offset == (64 << 20) + 1024
    assert max(api.mapped) == SPAN + STRIDE + (128 << 20)
    sizes = [call[2] for call in api.calls if call[0] == "cuMemMap"]
    assert sizes[-1] % UNIT == 0
    assert 256 << 20 <= sizes[-1] + (64 << 20) - 1024 < (256 << 20) + UNIT + 1024


def test_memory_is_given_back() -> None:
    """Where nothing behind it is in use."""
    api = Api(gpus=2)
    mesh = Mesh.single_process(driver=Driver(api))
    arrays = [mesh.empty((16 << 20,), "f32") for _ in range(3)]
    assert mesh.trim() == 0
    arrays[1].free()
    assert mesh.trim() == 0
    arrays[2].free()
    assert mesh.trim() == 128 << 20
    assert sorted(api.mapped) == [SPAN, SPAN + STRIDE]
    assert mesh.empty((1,), "f32").offset == 64 << 20
    mesh.close()
    assert api.mapped == {}
    with pytest.raises(PkcError, match="PK857"):
        mesh.trim()


class Others:
    """In place of the group of a mesh: the others have left."""

    def __init__(self) -> None:
        self.closed = False

    def agree(self, what: str) -> None:
        raise PkcError(RankLeft(NOWHERE, 0, "rank 1", what))

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("together", [False, True])
def test_closed_after_others_have_left(monkeypatch: pytest.MonkeyPatch, together: bool) -> None:
    api, others = Api(gpus=1), Others()
    mesh = Mesh.single_process(driver=Driver(api))
    mesh.empty((4,), "f32")
    monkeypatch.setattr(mesh, "group", others)
    mesh.close(together=together)
    assert mesh.closed
    assert others.closed
    assert not api.mapped


def test_closed_alone_behind_the_last_launch() -> None:
    """On whatever stream it was: what the mesh waits for follows it."""
    api = Api(gpus=1)
    mesh = Mesh.single_process(driver=Driver(api))
    rank = mesh.local[0]
    mesh.take_turn(7)
    mesh.close(together=False)
    recorded, followed = api.enqueued[-4:-2]
    assert recorded == (7, "record", rank.turn)
    assert followed == (rank.stream, "follow", rank.turn)
    assert api.enqueued[-1] == (0, "sync")


def test_a_mesh_whose_launches_do_not_end_is_not_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    api = Api(gpus=1)
    mesh = Mesh.single_process(driver=Driver(api))
    api.unready.add(mesh.local[0].stream)
    monkeypatch.setattr(Mesh.synchronize, "__defaults__", (-2.0, None))
    assert "PK836" in shown(mesh.close, together=False)
    assert not mesh.closed


def test_freed_memory_is_used_again() -> None:
    mesh = Mesh.single_process(driver=Driver(Api()))
    first = mesh.empty((1000,), "bf16")
    mesh.empty((1000,), "bf16")
    first.free()
    assert mesh.empty((500,), "f32").offset == first.offset


def test_kinds_of_arrays_go_with_the_last_array() -> None:
    """A mesh that sees new shapes again and again keeps nothing of them; arrays that are alike have one kind."""
    mesh = Mesh.virtual(2, driver=Driver(Api()))
    for rows in range(1, 10):
        mesh.empty((rows, 8), "f32").free()
    assert not mesh.kinds
    first, second, other = (mesh.empty((rows, 8), "f32") for rows in (4, 4, 5))
    assert first.kind is second.kind is not other.kind
    assert len(mesh.kinds) == 2


def test_views() -> None:
    mesh = Mesh.virtual(4, driver=Driver(Api()))
    mesh.empty((3,), "f32")
    rows = mesh.empty((10, 6), "bf16", "shard", 0)
    assert rows.memory_shape == (3, 6)
    assert [rows.local(rank).shape for rank in range(4)] == [(3, 6), (3, 6), (3, 6), (1, 6)]
    assert rows.local(2) == View(SPAN + 2 * STRIDE + 1024, (3, 6), (6, 1), "bf16", 0)
    columns = mesh.empty((2, 5), "f32", "shard", 1)
    assert [columns.local(rank).shape for rank in range(4)] == [(2, 2), (2, 2), (2, 1), (2, 0)]
    assert {columns.local(rank).strides for rank in range(4)} == {(2, 1)}
    whole = mesh.empty((2, 5), "torch.int32", "replicate")
    assert {whole.local(rank).shape for rank in range(4)} == {(2, 5)}
    assert whole.dtype == "i32"


class Tensor:
    """What pkc uses of a torch tensor, on an array of numpy."""

    def __init__(self, values: NDArray[np.int64]) -> None:
        self.values = values

    def __getitem__(self, where: Any) -> Tensor:
        return Tensor(self.values[where])

    def copy_(self, other: Tensor) -> None:
        assert self.values.shape == other.values.shape
        self.values[...] = other.values

    def new_empty(self, shape: tuple[int, ...]) -> Tensor:
        return Tensor(np.full(shape, -1))


@pytest.mark.parametrize("zigzag", [False, True])
@pytest.mark.parametrize(("ranks", "length"), [(1, 5), (2, 8), (3, 12), (3, 10), (4, 5), (4, 3)])
def test_scattered_and_gathered(monkeypatch: pytest.MonkeyPatch, ranks: int, length: int, zigzag: bool) -> None:
    mesh = Mesh.virtual(ranks, driver=Driver(Api()))
    array = mesh.empty((2, length, 3), "f32", "shard", 1, zigzag=zigzag)
    shards = [Tensor(np.full(array.local(rank).shape, -1)) for rank in range(ranks)]
    monkeypatch.setattr(adapter, "tensor", lambda view: shards[mesh.heap.rank_at(view.address) or 0])
    whole = np.arange(2 * length * 3).reshape(2, length, 3)
    array.scatter(Tensor(whole))
    order = [position for shard in _shards(length, ranks, zigzag) for position in shard]
    found = np.concatenate([shard.values for shard in shards], axis=1)
    np.testing.assert_array_equal(found, whole[:, order])
    np.testing.assert_array_equal(array.gather().values, whole)
    np.testing.assert_array_equal(array.gather(shards).values, whole)


def _shards(length: int, ranks: int, zigzag: bool) -> list[list[int]]:
    """The positions of each rank, by counting them out."""
    each = -(-length // ranks)
    sizes = [max(0, min(each, length - rank * each)) for rank in range(ranks)]
    left, found = list(range(length)), [list[int]() for _ in sizes]
    early = [min(size, -(-each // 2)) if zigzag else size for size in sizes]
    for rank in range(ranks):
        found[rank] += [left.pop(0) for _ in range(early[rank])]
    for rank in reversed(range(ranks)):
        found[rank] += [left.pop(0) for _ in range(sizes[rank] - early[rank])]
    return found


def test_copies_are_scattered_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    mesh = Mesh.virtual(2, driver=Driver(Api()))
    array = mesh.empty((4,), "i32", "replicate")
    copies = [Tensor(np.zeros(4, np.int64)) for _ in range(2)]
    monkeypatch.setattr(adapter, "tensor", lambda view: copies[mesh.heap.rank_at(view.address) or 0])
    array.scatter(Tensor(np.arange(4)))
    assert [copy.values.tolist() for copy in copies] == [[0, 1, 2, 3]] * 2
    assert array.gather().values.tolist() == [0, 1, 2, 3]


def test_views_for_other_libraries() -> None:
    assert View(4096, (2, 3), (8, 1), "bf16", 0).__cuda_array_interface__ == {
        "shape": (2, 3),
        "typestr": "<i2",
        "data": (4096, False),
        "strides": (16, 2),
        "version": 3,
    }
    assert View(4096, (0, 3), (8, 1), "f32", 0).__cuda_array_interface__["data"] == (0, False)


def test_views_as_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    class Torch:
        bfloat16, float8_e4m3fn = "bfloat16", "float8_e4m3fn"

        def as_tensor(self, view: View, device: str) -> Torch:
            self.taken = (view, device)
            return self

        def view(self, dtype: str) -> tuple[View, str, str]:
            return *self.taken, dtype

    monkeypatch.setattr(adapter.importlib, "import_module", lambda _: Torch())
    view = View(4096, (2, 3), (8, 1), "bf16", 5)
    assert adapter.tensor(view) == (view, "cuda:5", "bfloat16")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (((4,), "f64"), "`f64` is none of bf16, f16, f32, i32, i8, e4m3, e5m2"),
        (((4, 0), "f32"), "shape [4, 0] has no elements"),
        (((), "f32"), "shape [] has no elements"),
        (((4, "M"), "f32"), "shape [4, 'M'] is not made of integers"),
        (((4,), "f32", "split"), "layout `split` is none of private, shard, replicate, symmetric"),
        (((4,), "f32", "shard"), "layout `shard`, and no other, needs the dimension that `shard` says"),
        (((4,), "f32", "replicate", 0), "layout `shard`, and no other, needs the dimension that `shard` says"),
        (((4,), "f32", "shard", 1), "there is no dimension 1 of 1"),
    ],
)
def test_arrays_that_cannot_be(arguments: tuple[Any, ...], problem: str) -> None:
    mesh = Mesh.virtual(2, driver=Driver(Api()))
    assert shown(mesh.empty, *arguments) == f"error[PK852]: `mesh.empty` cannot make this array: {problem}\n"


def test_an_order_without_shards() -> None:
    mesh = Mesh.virtual(2, driver=Driver(Api()))
    problem = "`zigzag` is an order of shards: it needs layout `shard`"
    found = shown(mesh.empty, (4,), "f32", "replicate", zigzag=True)
    assert found == f"error[PK852]: `mesh.empty` cannot make this array: {problem}\n"


def test_a_gpu_without_room() -> None:
    api = Api(gpus=2)
    mesh = Mesh.single_process(driver=Driver(api))
    mesh.empty((16 << 20,), "f32")
    api.failing["cuMemCreate"] = 2
    expected = """\
error[PK823]: GPU 0 has no room for 256 MiB
  = note: the symmetric heap has 64 MiB on each rank so far; the GPU has 3072 of 143360 MiB free
  = help: free arrays with `free()`, end other programs on this GPU, or use smaller dimensions
"""
    assert shown(mesh.empty, (64 << 20,), "f32") == expected
    assert not api.handles
    del api.failing["cuMemCreate"]
    assert mesh.empty((64 << 20,), "f32").offset == 64 << 20


@pytest.mark.parametrize("call", ["cuMemMap", "cuMemSetAccess"])
def test_a_heap_that_could_not_grow_grows_later(call: str) -> None:
    api = Api(gpus=2)
    mesh = Mesh.single_process(driver=Driver(api))
    api.failing[call] = 1
    assert f"`{call}` failed: CUDA_ERROR_INVALID_VALUE" in shown(mesh.empty, (1,), "f32")
    assert not api.handles
    assert not api.mapped
    del api.failing[call]
    assert mesh.empty((1,), "f32").offset == 0
    assert len(api.mapped) == 2


def test_another_failure_is_not_taken_for_a_lack_of_room() -> None:
    mesh = Mesh.single_process(driver=Driver(Api(failing={"cuMemCreate": 801})))
    assert "`cuMemCreate` failed: CUDA_ERROR_NOT_SUPPORTED" in shown(mesh.empty, (1,), "f32")


@pytest.mark.parametrize(("kind", "how"), [("access", ""), ("atomic", " with atomic operations")])
def test_gpus_that_do_not_reach_each_other(kind: str, how: str) -> None:
    api = Api(peers={(kind, 2, 1): 0})
    expected = f"""\
error[PK824]: GPU 2 cannot reach the memory of GPU 1{how}
  = help: ranks need GPUs that NVLink joins; `nvidia-smi topo -p2p n` shows which can reach which
"""
    assert shown(Mesh.single_process, [0, 1, 2], driver=Driver(api)) == expected
    Mesh.single_process([0, 1], driver=Driver(api))


def test_a_gpu_that_is_not_there() -> None:
    expected = """\
error[PK826]: rank 1 is to use GPU 2, and this process sees 2
  = help: every process must see all GPUs of its host: leave CUDA_VISIBLE_DEVICES the same for all
"""
    assert shown(Mesh.single_process, [0, 2], driver=Driver(Api(gpus=2))) == expected


@pytest.mark.parametrize("ranks", [0, 9])
def test_more_virtual_ranks_than_run_side_by_side(ranks: int) -> None:
    expected = f"""\
error[PK827]: one GPU cannot be {ranks} ranks
  = help: the kernels of virtual ranks run side by side in at most 8 hardware queues: from 1 to 8 ranks
"""
    assert shown(Mesh.virtual, ranks, driver=Driver(Api())) == expected


@pytest.mark.parametrize("devices", [[], [1, 1]])
def test_one_gpu_twice(devices: list[int]) -> None:
    expected = f"""\
error[PK828]: a mesh needs different GPUs, one for each rank; got {devices}
  = help: `Mesh.virtual(n)` puts n ranks on one GPU
"""
    assert shown(Mesh.single_process, devices, driver=Driver(Api())) == expected


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan", "inf"])
def test_a_limit_that_is_none(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("PKC_WAIT_LIMIT", text)
    expected = f"""\
error[PK868]: PKC_WAIT_LIMIT is `{text}`, which is no number of seconds greater than 0
  = help: write seconds, as in PKC_WAIT_LIMIT=600, or leave it out
"""
    assert shown(Mesh.single_process, driver=Driver(Api())) == expected


def test_a_limit_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PKC_WAIT_LIMIT", "600")
    assert Mesh.single_process(driver=Driver(Api())).alarm.limit == 600


def test_completion_is_polled() -> None:
    api = Api(gpus=2)
    mesh = Mesh.single_process(driver=Driver(api))
    mesh.synchronize()
    recorded = {stream: event for name, *given in api.calls if name == "cuEventRecord" for event, stream in [given]}
    assert list(recorded) == [rank.stream for rank in mesh.local]
    assert [call[1] for call in api.calls if call[0] == "cuEventDestroy"] == list(recorded.values())
    assert not [name for name in api.names() if "Synchronize" in name]


def test_threads_wait_for_streams_of_their_own() -> None:
    """A thread does not take the end of another one's launches for that of its own."""
    api = Api(gpus=1)
    mesh = Mesh.single_process(driver=Driver(api))
    api.unready = {71}
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(mesh.synchronize, 10.0, 71)
        while 71 not in api.recorded.values():
            time.sleep(0.001)
        mesh.synchronize(1.0, 72)
        time.sleep(0.01)
        assert not slow.done()
        api.unready.clear()
        slow.result(1.0)


def test_a_hang() -> None:
    api = Api(gpus=4)
    mesh = Mesh.single_process(driver=Driver(api))
    api.unready = {mesh.local[1].stream, mesh.local[3].stream}
    expected = """\
error[PK836]: ranks 1, 3 did not finish within 0.01 s
  = note: the kernel still runs, so this process can only end; nothing more can be done on its GPU
  = help: `pkc check` looks for deadlocks in the protocol; other ranks may have failed, or not have launched
"""
    assert shown(mesh.synchronize, timeout=0.01) == expected


def test_a_kernel_that_fails() -> None:
    api = Api()
    mesh = Mesh.single_process(driver=Driver(api))
    api.failing["cuEventQuery"] = 719
    assert "`cuEventQuery` failed: CUDA_ERROR_LAUNCH_FAILED" in shown(mesh.synchronize)


def test_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    made, api = driver(monkeypatch, gpus=2)
    mesh = Mesh.single_process(driver=made)
    mesh.empty((1,), "f32")
    mesh.close()
    assert not api.mapped
    names = api.names()
    for begin, end in (
        ("cuMemAddressReserve", "cuMemAddressFree"),
        ("cuStreamCreate", "cuStreamDestroy"),
        ("cuEventCreate", "cuEventDestroy"),
        ("cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease"),
    ):
        assert names.count(begin) == names.count(end) > 0
