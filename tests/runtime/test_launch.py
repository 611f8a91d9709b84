"""Launches on the fake driver: what a kernel gets, which calls the driver gets, and in which order."""

from __future__ import annotations

import struct
import threading
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pkc.codegen.artifact import (
    ArrayParameter,
    Artifact,
    Base,
    Dimension,
    Epochs,
    HeapStride,
    RankField,
    Scalar,
    SignalParameter,
    TensorMaps,
)
from pkc.diagnostics import PkcError
from pkc.dialect import blocks
from pkc.location import NOWHERE
from pkc.runtime.arguments import bind, fingerprints
from pkc.runtime.beside import Work
from pkc.runtime.driver import DriverError
from pkc.runtime.errors import DriverFailure
from pkc.runtime.forms import Form
from pkc.runtime.kernel_parameters import layout
from pkc.runtime.launch import LoadedKernel
from pkc.runtime.mesh import Mesh
from pkc.runtime.plans import MOST_PLANS, Plan, Plans
from tests.runtime.fake import CLUSTERED_SMS, FIRST_POINTER, SMS, SPAN, Api, Device, Tensor, driver

STRIDE = 1 << 38
MIB = 1 << 20

REDUCE = Artifact(
    name="gemm_rs",
    target="sm_90a",
    cubin=b"machine code",
    arrays=(
        ArrayParameter("A", "bf16", ("M", "K"), "private", None, False),
        ArrayParameter("C", "f32", ("M", 64), "shard", 0, False),
        ArrayParameter("C.slots", "f32", ("ranks", "M", 64), "shard", 1, True),
        ArrayParameter("fetched", "bf16", ("M", "K"), "private", None, True),
    ),
    signals=(SignalParameter("arrived", (("M", 16), "ranks")), SignalParameter("entered", (1,))),
    fields=(
        RankField("rank", "rank"),
        TensorMaps("A_map", "A", (64, 16, 1), 128, 0),
        TensorMaps("slots_map", "C.slots", (32, 16, 1, 1), 128, 1),
        Base("entered_base", "entered"),
        Base("fetched_base", "fetched"),
        HeapStride("heap_stride"),
        Epochs("epochs"),
        RankField("ranks", "ranks"),
        Dimension("M", "M"),
        Scalar("scale", "scale", "f32"),
        Scalar("count", "count", "i32"),
    ),
    threads=384,
    shared_bytes=200_000,
    cluster=1,
    comm_sms=16,
)
"""All kinds of parameters; M is 40 below, on 3 ranks shards of 14, 14, 12."""

SMALL = Artifact(
    name="copy",
    target="sm_90a",
    cubin=b"other code",
    arrays=(ArrayParameter("A", "bf16", ("M", "K"), "private", None, False),),
    signals=(),
    fields=(Base("A_base", "A"), Scalar("s", "s", "f32"), Scalar("n", "n", "i32"), Dimension("K", "K")),
    threads=128,
    shared_bytes=0,
    cluster=1,
    comm_sms=0,
)


def reduce_on(
    monkeypatch: pytest.MonkeyPatch, ranks: int = 3, of: Artifact = REDUCE
) -> tuple[LoadedKernel, dict[str, Any], Api]:
    made, api = driver(monkeypatch, gpus=ranks)
    mesh = Mesh.single_process(driver=made)
    kernel = LoadedKernel(of, mesh)
    api.struct_bytes = layout(of.fields)[1]
    tensors = [Tensor((40, 72), device=Device(rank), address=FIRST_POINTER + rank * MIB) for rank in range(ranks)]
    c = mesh.empty((40, 64), "f32", "shard", 0)
    return kernel, {"A": tensors, "C": c, "scale": 0.5, "count": -3}, api


def small_on(
    monkeypatch: pytest.MonkeyPatch, ranks: int = 1, of: Artifact = SMALL
) -> tuple[LoadedKernel, dict[str, Any], Api]:
    made, api = driver(monkeypatch, gpus=ranks)
    api.struct_bytes = layout(of.fields)[1]
    tensors = [Tensor((4, 8), device=Device(rank)) for rank in range(ranks)]
    return LoadedKernel(of, Mesh.single_process(driver=made)), {"A": tensors, "s": 1.0, "n": 1}, api


def test_the_struct_is_laid_out_as_in_cpp() -> None:
    offsets, size = layout(REDUCE.fields)
    assert offsets == [0, 128, 384, 640, 648, 656, 664, 672, 676, 680, 684]
    assert size == 768
    assert layout((Dimension("M", "M"), Base("b", "b"), Dimension("N", "N"), Epochs("e"))) == ([0, 8, 16, 24], 128)


def test_what_each_rank_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, api = reduce_on(monkeypatch)
    kernel(arguments)
    assert [launch.context for launch in api.launches] == [1000, 1001, 1002]
    assert [launch.stream for launch in api.launches] == [rank.stream for rank in kernel.mesh.local]
    offset = arguments["C"].offset + 4096  # C has ceil(40 / 3) rows of 256 bytes
    slots, fetched = offset, offset + 16384  # 3 * 14 rows of 256 bytes are 10,752; ranges are powers of two
    arrived = fetched + 8192  # three shards of 14 rows of 144 bytes are 6,048
    entered = arrived + 1024
    epochs = entered + 1024
    for rank, launch in enumerate(api.launches):
        assert launch.function == launch.context + 5000
        assert (launch.grid, launch.threads, launch.shared, launch.cluster) == (SMS, 384, 200_000, 1)
        assert struct.unpack_from("<i", launch.struct, 0) == (rank,)
        numbers = struct.unpack_from("<QQQQiifi", launch.struct, 640)
        assert numbers == (
            SPAN + entered,
            SPAN + rank * STRIDE + fetched,
            STRIDE,
            SPAN + rank * STRIDE + epochs,
            3,
            40,
            0.5,
            -3,
        )
        # Private arrays have other addresses on other ranks; all else in maps is the same.
        numbers = [launch.struct[at] for at in (128, 256, 384, 512)]
        assert numbers == ([1, 2, 3, 4] if rank == 0 else [2 * rank + 3, 2 * rank + 4, 3, 4])
        whole, rest, heap, heap_rest = (api.encoded[number - 1] for number in numbers)
        pointer = FIRST_POINTER + rank * MIB
        assert whole == {
            "dtype": 9, "address": pointer, "extents": [72, 14, 2], "strides": [144, 14 * 144],
            "box": [64, 16, 1], "swizzle": 3,
        }  # fmt: skip
        assert rest == whole | {"address": pointer + 28 * 144, "extents": [72, 12, 1]}
        assert heap == {
            "dtype": 7, "address": SPAN + slots, "extents": [64, 14, 3, 2], "strides": [256, 14 * 256, STRIDE],
            "box": [32, 16, 1, 1], "swizzle": 3,
        }  # fmt: skip
        assert heap_rest == heap | {"address": SPAN + slots + 2 * STRIDE, "extents": [64, 12, 3, 1]}
    counters = 4 * blocks.numbers(40, 3, 16) * 3
    assert counters <= entered - arrived
    # One range, with room for those of further sizes.
    assert sorted(api.zeroed) == [(SPAN + rank * STRIDE + arrived, 16 * MIB) for rank in range(3)]


def test_order_of_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is loaded and zeroed before the first launch, and no other call comes between launches."""
    kernel, arguments, api = reduce_on(monkeypatch)
    kernel(arguments)
    names = api.names()
    first = names.index("cuLaunchKernelEx")
    assert names[first:] == ["cuLaunchKernelEx", *["cuCtxSetCurrent", "cuLaunchKernelEx"] * 2, "cuCtxSetCurrent"]
    for name in ("cuKernelGetFunction", "cuFuncLoad", "cuKernelSetAttribute"):
        assert names[:first].count(name) == 3
    assert names[:first].count("cuLibraryLoadData") == 1
    attributes = [call for call in api.calls if call[0] == "cuKernelSetAttribute"]
    assert [(value, device) for _, _, value, _, device in attributes] == [(200_000, device) for device in range(3)]
    assert not [name for name in names if name.startswith("cuCtxEnablePeerAccess")]
    assert api.contexts == [0]


def test_a_second_launch_only_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, api = reduce_on(monkeypatch)
    kernel(arguments)
    api.calls.clear()
    kernel(dict(arguments))
    assert api.names() == ["cuCtxGetCurrent", *["cuCtxSetCurrent", "cuLaunchKernelEx"] * 3, "cuCtxSetCurrent"]
    assert [launch.struct for launch in api.launches[:3]] == [launch.struct for launch in api.launches[3:]]


def test_the_callers_context_is_current_again_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, api = reduce_on(monkeypatch)
    api.contexts[-1] = 77
    api.failing["cuLaunchKernelEx"] = 701
    with pytest.raises(PkcError, match="`cuLaunchKernelEx` failed: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"):
        kernel(arguments)
    assert api.contexts == [77]


def test_other_tensors_keep_the_kernels_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, api = reduce_on(monkeypatch)
    kernel(arguments)
    api.calls.clear()
    kernel(arguments | {"A": [replace(tensor, address=tensor.address + 4096) for tensor in arguments["A"]]})
    assert not {"cuMemCreate", "cuMemsetD8Async"} & set(api.names())
    assert api.launches[3].struct[640:] == api.launches[0].struct[640:]
    assert api.encoded[8]["address"] == FIRST_POINTER + 4096


@pytest.mark.parametrize("kept", [False, True])
def test_memory_for_other_dimensions(monkeypatch: pytest.MonkeyPatch, kept: bool) -> None:
    """Counters and epochs are new. Scratch memory serves one launch after the other, for about as many bytes, but for
    what other ranks write before this one has begun."""
    arrays = tuple(replace(array, kept=kept and array.name == "C.slots") for array in REDUCE.arrays)
    kernel, given, api = reduce_on(monkeypatch, of=replace(REDUCE, arrays=arrays))
    found: list[tuple[int, ...]] = []
    for extent in (72, 80, 1024):  # 6,048, 6,720 and 86,016 bytes that are fetched
        kernel(given | {"A": [replace(tensor, shape=(40, extent)) for tensor in given["A"]]})
        launch = api.launches[-3]
        slots = api.encoded[launch.struct[384] - 1]["address"]
        found.append((slots, *struct.unpack_from("<QQQQ", launch.struct, 640)))
    slots, entered, fetched, _, epochs = zip(*found, strict=True)
    assert len({*entered}) == len({*epochs}) == 3
    assert len({*slots}) == (3 if kept else 1)
    assert fetched[0] == fetched[1] != fetched[2]
    assert not {*slots} & {*fetched}


def test_many_sizes_take_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slots of all lengths up to one take at most four times those of the longest."""
    kernel, arguments, api = reduce_on(monkeypatch)
    for rows in range(3 * 4096, 0, -60):
        c = kernel.mesh.empty((rows, 64), "f32", "shard", 0)
        kernel(arguments | {"A": [replace(tensor, shape=(rows, 72)) for tensor in arguments["A"]], "C": c})
        c.free()
    assert len(api.launches) > 3 * 200
    mapped = [call[2] for call in api.calls if call[0] == "cuMemMap" and call[1] < SPAN + STRIDE]
    assert sum(mapped) <= 2 * 64 * MIB


def test_kernels_without_counters_take_no_memory_for_new_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, api = small_on(monkeypatch)
    kernel(arguments)
    api.capturing.add(kernel.mesh.local[0].stream)
    kernel({**arguments, "A": Tensor((4, 16))})
    kernel({**arguments, "A": Tensor((4, 24))})
    assert len(api.launches) == 3
    assert kernel.mesh.zeroed(1024) == api.zeroed[0][0] - SPAN + 1024


def test_counters_of_new_sizes_are_zero_already(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the range that was zeroed is used up; then there is another one."""
    other, arguments, api = small_on(monkeypatch)
    kernel = LoadedKernel(replace(SMALL, signals=(SignalParameter("arrived", (1,)),)), other.mesh)
    kernel(arguments)
    calls = len(api.calls)
    for extent in range(16, 16 + 8 * 30, 8):
        kernel({**arguments, "A": Tensor((4, extent))})
    assert {name for name, *_ in api.calls[calls:]}.isdisjoint({"cuMemsetD8Async", "cuEventRecord", "cuMemMap"})
    ((first, size),) = api.zeroed
    # 31 kernels have used 1024 bytes each for a counter, and for epochs.
    assert kernel.mesh.zeroed(size - 63 * 1024) == first - SPAN + 62 * 1024
    assert kernel.mesh.zeroed(1024) == first - SPAN + size - 1024
    assert len(api.zeroed) == 1
    assert kernel.mesh.zeroed(2 * size) == api.zeroed[1][0] - SPAN
    assert api.zeroed[1][1] == 2 * size


def test_a_plan_serves_for_tensors_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as no array that is written comes to lie where another one is."""
    made, api = driver(monkeypatch, gpus=1)
    api.struct_bytes = 128
    written = ArrayParameter("B", "bf16", ("M", "K"), "private", None, False, written=True)
    artifact = replace(SMALL, arrays=(*SMALL.arrays, written), fields=(Base("A", "A"), Base("B", "B")))
    kernel = LoadedKernel(artifact, Mesh.single_process(driver=made))
    first, second = FIRST_POINTER, FIRST_POINTER + MIB
    plan = kernel.plan({"A": Tensor((4, 8)), "B": Tensor((4, 8), address=second)}, {}, 71)
    for pointers in ([first, second], [second, first], [first, first + 64]):
        assert kernel.start(plan, pointers, 72)
        assert struct.unpack_from("<QQ", api.launches[-1].struct) == tuple(pointers)
    launched = len(api.launches)
    assert not kernel.start(plan, [first, first + 48], 72)
    assert len(api.launches) == launched
    assert {launch.stream for launch in api.launches} == {72}


def test_a_context_that_is_current_is_not_made_so_again(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, api = small_on(monkeypatch)
    kernel(arguments)
    api.contexts[-1] = kernel.mesh.local[0].context
    api.calls.clear()
    kernel(arguments)
    assert api.names() == ["cuCtxGetCurrent", "cuLaunchKernelEx"]


def test_other_tensors_of_the_same_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take the place of the first ones: each rank's struct has their addresses, in maps and in bases."""
    kernel, arguments, api = reduce_on(monkeypatch)
    kernel(arguments)
    first = list(api.encoded)
    moved = [replace(tensor, address=tensor.address + 4096 * (1 + at)) for at, tensor in enumerate(arguments["A"])]
    kernel(arguments | {"A": moved})
    assert len(kernel._plans) == 1
    for rank, launch in enumerate(api.launches[3:]):
        maps = [api.encoded[launch.struct[at] - 1] for at in (128, 256)]
        shift = 4096 * (1 + rank)
        before = [first[api.launches[rank].struct[at] - 1] for at in (128, 256)]
        assert maps == [found | {"address": found["address"] + shift} for found in before]
        assert launch.struct[384:] == api.launches[rank].struct[384:]
    kernel(arguments)
    assert [api.encoded[launch.struct[256] - 1]["address"] for launch in api.launches[6:]] == [
        first[launch.struct[256] - 1]["address"] for launch in api.launches[:3]
    ]
    with pytest.raises(PkcError, match="PK853"):
        kernel(arguments | {"A": [replace(moved[0], address=moved[0].address + 8), *moved[1:]]})


def test_an_interrupt_while_tensors_take_the_place_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the struct then has is nobody's: the next call gets a new one."""
    kernel, arguments, api = reduce_on(monkeypatch)
    kernel(arguments)
    moved = [replace(tensor, address=tensor.address + 4096) for tensor in arguments["A"]]
    count = len(api.encoded)

    def interrupted(target: int, address: int) -> int:
        if len(api.encoded) == count + 3:  # the first rank has two maps
            raise KeyboardInterrupt
        return Api.replace(api, target, address)

    monkeypatch.setattr(api, "replace", interrupted, raising=False)
    with pytest.raises(KeyboardInterrupt):
        kernel(arguments | {"A": moved})
    assert api.contexts == [0]
    kernel(arguments)
    for tensor, launch in zip(arguments["A"], api.launches[3:], strict=True):
        assert api.encoded[launch.struct[128] - 1]["address"] == tensor.address


def test_bases_move(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, api = small_on(monkeypatch, ranks=2)
    for shift in (0, 64):
        kernel(arguments | {"A": [replace(tensor, address=FIRST_POINTER + shift) for tensor in arguments["A"]]})
    addresses = [struct.unpack_from("<Q", launch.struct)[0] for launch in api.launches]
    assert addresses == [FIRST_POINTER] * 2 + [FIRST_POINTER + 64] * 2


def test_threads_have_tensors_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one thread replaces in a plan is launched before another thread replaces it."""
    kernel, arguments, api = small_on(monkeypatch, ranks=2)
    kernel(arguments)
    api.launches.clear()
    started = api.cuLaunchKernelEx

    def slowly(*given: Any) -> Any:
        time.sleep(0.001)
        return started(*given)

    api.cuLaunchKernelEx = slowly

    def call(shift: int) -> None:
        mine = arguments | {"A": [replace(tensor, address=FIRST_POINTER + shift) for tensor in arguments["A"]]}
        for _ in range(8):
            kernel(mine, stream=[shift + 1, shift + 2])

    threads = [threading.Thread(target=call, args=(shift,)) for shift in (64, 128)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shifts = [struct.unpack_from("<Q", launch.struct)[0] - FIRST_POINTER for launch in api.launches]
    assert shifts == [launch.stream // 64 * 64 for launch in api.launches] and len(shifts) == 32


def test_what_copy_engines_copy_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies are enqueued with the addresses of the plan, so other tensors need another plan."""
    kernel, arguments, _ = small_on(monkeypatch, ranks=1)
    kernel(arguments)
    (plan,) = kernel._plans
    for copied, movable in (("A", False), ("B", True)):
        starts = [replace(plan.starts[0], work=Work(0, 0, (), (), frozenset({copied})))]
        other = Plan(starts, plan._form, [FIRST_POINTER], [[]])
        assert other.moved([FIRST_POINTER])
        assert other.moved([FIRST_POINTER + 16]) == movable
        plans: Plans[Plan] = Plans()
        plans.keep("key", [FIRST_POINTER], other)
        assert plans.find("key", [FIRST_POINTER]) is other
        assert plans.find("key", [FIRST_POINTER + 16]) is (other if movable else None)


def test_plans_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, api = small_on(monkeypatch)
    for number in range(MOST_PLANS + 5):
        kernel(arguments | {"n": number})
    assert len(kernel._plans) == MOST_PLANS
    assert [struct.unpack_from("<i", launch.struct, 12)[0] for launch in api.launches] == list(range(MOST_PLANS + 5))


def test_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as run at once, fewer than SMs would do: those of a GPC are no multiple of a cluster."""
    made, api = driver(monkeypatch, gpus=1)
    kernel = LoadedKernel(replace(SMALL, cluster=8), Mesh.single_process(driver=made))
    kernel({"A": Tensor((4, 8)), "s": 0, "n": 0})
    assert (api.launches[0].grid, api.launches[0].cluster) == (CLUSTERED_SMS, 8)


def test_virtual_ranks_share_the_sms(monkeypatch: pytest.MonkeyPatch) -> None:
    made, api = driver(monkeypatch, gpus=1)
    mesh = Mesh.virtual(4, driver=made)
    kernel = LoadedKernel(SMALL, mesh)
    kernel({"A": [Tensor((4, 8))] * 4, "s": 0, "n": 0})
    assert [launch.grid for launch in api.launches] == [33] * 4
    assert len({launch.stream for launch in api.launches}) == 4
    assert {launch.context for launch in api.launches} == {1000}


def test_a_grid_of_another_size(monkeypatch: pytest.MonkeyPatch) -> None:
    made, api = driver(monkeypatch, gpus=1)
    LoadedKernel(SMALL, Mesh.single_process(driver=made), grid=7)({"A": Tensor((4, 8)), "s": 0, "n": 0})
    assert api.launches[0].grid == 7


def test_private_arrays_in_the_heap(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, api = small_on(monkeypatch, ranks=2)
    array = kernel.mesh.empty((4, 8), "bf16", "private")
    kernel(arguments | {"A": array})
    assert [struct.unpack_from("<Q", launch.struct)[0] for launch in api.launches] == [SPAN, SPAN + STRIDE]


def test_shards_in_a_list_are_each_an_array(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel is told the shape of a rank's part, also of arrays like those before."""
    kernel, arguments, api = small_on(monkeypatch, ranks=2)
    for columns in (16, 32):
        array = kernel.mesh.empty((4, columns), "bf16", "shard", 1)
        kernel(arguments | {"A": [array, array]})
        assert {struct.unpack_from("<i", launch.struct, 16)[0] for launch in api.launches[-2:]} == {columns // 2}


def test_processes_compare_the_same_text_for_a_call_like_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """One rank may know such a call, and another not."""
    made, _ = driver(monkeypatch, gpus=1)
    names = ("C", "D")
    arrays = tuple(ArrayParameter(name, "f32", ("M", "K"), "symmetric", None, False) for name in names)
    mesh = Mesh.single_process(driver=made)
    interface = LoadedKernel(replace(SMALL, arrays=arrays, fields=()), mesh).artifact.interface
    given = {name: mesh.empty((4, 8), "f32") for name in reversed(names)}
    pointers: list[int] = []
    found = fingerprints(given.values(), pointers)
    form = Form(replace(interface, scalars=()), mesh, tuple(given), found, {})
    like, checked = form.bound(found, pointers), bind(interface, mesh, given, {})
    assert like is not None
    assert (like.describe(names), like.spans) == (checked.describe(names), checked.spans)


def test_a_single_tensor_for_a_single_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, api = small_on(monkeypatch)
    kernel(arguments | {"A": arguments["A"][0]})
    assert struct.unpack_from("<Qfii", api.launches[0].struct) == (FIRST_POINTER, 1.0, 1, 8)


def test_single_positions_have_any_stride(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, api = small_on(monkeypatch)
    kernel(arguments | {"A": Tensor((1, 8), strides=(99, 1))})
    assert len(api.launches) == 1


# Streams


class TorchStream:
    cuda_stream = 7001


class OtherStream:
    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 7002


@pytest.mark.parametrize(("stream", "handle"), [(7000, 7000), (TorchStream(), 7001), (OtherStream(), 7002), (0, 0)])
def test_the_callers_stream(monkeypatch: pytest.MonkeyPatch, stream: Any, handle: int) -> None:
    kernel, arguments, api = small_on(monkeypatch)
    kernel(arguments, stream=stream)
    kernel(arguments, stream=[stream])
    assert [launch.stream for launch in api.launches] == [handle, handle]
    assert "cuStreamWaitEvent" not in api.names()


def test_a_stream_for_each_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, api = small_on(monkeypatch, ranks=3)
    kernel(arguments, stream=[71, 72, 73])
    assert [launch.stream for launch in api.launches] == [71, 72, 73]
    assert "cuStreamWaitEvent" not in api.names()


def test_one_stream_for_several_ranks_is_forked_and_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, api = small_on(monkeypatch, ranks=2)
    kernel(arguments)
    api.calls.clear()
    kernel(arguments, stream=71)
    one, two = kernel.mesh.local
    kept = ("cuEventRecord", "cuStreamWaitEvent", "cuLaunchKernelEx")
    calls = [call[:3] if call[0] != "cuLaunchKernelEx" else call[:1] for call in api.calls if call[0] in kept]
    assert calls == [
        ("cuEventRecord", one.event, 71),
        ("cuStreamWaitEvent", one.stream, one.event),
        ("cuStreamWaitEvent", two.stream, one.event),
        ("cuLaunchKernelEx",),
        ("cuLaunchKernelEx",),
        ("cuEventRecord", one.event, one.stream),
        ("cuEventRecord", two.event, two.stream),
        ("cuStreamWaitEvent", 71, one.event),
        ("cuStreamWaitEvent", 71, two.event),
    ]
    assert [launch.stream for launch in api.launches[2:]] == [one.stream, two.stream]


def lasting(*handles: int) -> list[SimpleNamespace]:
    """Streams of torch."""
    return [SimpleNamespace(cuda_stream=handle) for handle in handles]


def test_launches_on_other_streams_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """They share counters and scratch memory; the streams of ranks that stay the same need nothing."""
    kernel, arguments, api = reduce_on(monkeypatch)
    one, two, three = kernel.mesh.local
    kernel(arguments, stream=lasting(71, 72, 73))
    kernel(arguments, stream=lasting(71, 72, 73))
    del api.enqueued[:]
    kernel(arguments, stream=lasting(81, 72, 83))
    assert api.enqueued[:4] == [
        (71, "record", one.turn), (81, "follow", one.turn), (73, "record", three.turn), (83, "follow", three.turn),
    ]  # fmt: skip
    assert [entry[:2] for entry in api.enqueued[4:]] == [(81, "kernel"), (72, "kernel"), (83, "kernel")]
    del api.enqueued[:]
    kernel(arguments, stream=91)  # the mesh's own streams, forked from this one
    assert [entry[:2] for entry in api.enqueued] == [
        (91, "record"), *((rank.stream, "follow") for rank in (one, two, three)),
        *((stream, what) for rank, old in ((one, 81), (two, 72), (three, 83))
          for stream, what in ((old, "record"), (rank.stream, "follow"))),
        *((rank.stream, "kernel") for rank in (one, two, three)),
        *((rank.stream, "record") for rank in (one, two, three)), *[(91, "follow")] * 3,
    ]  # fmt: skip


def test_a_turn_may_begin_before_its_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is copied to where the last launch reads comes behind it; the launch then waits for nothing more."""
    kernel, arguments, api = reduce_on(monkeypatch, ranks=1)
    turn, mesh = kernel.mesh.local[0].turn, kernel.mesh
    kernel(arguments, stream=lasting(71))
    del api.enqueued[:]
    before = api.contexts[-1]
    with mesh.launching:
        mesh.take_turn(81)
        assert api.enqueued == [(71, "record", turn), (81, "follow", turn)]
        assert api.contexts[-1] == before
        kernel(arguments, stream=lasting(81))
    assert [entry[:2] for entry in api.enqueued[2:]] == [(81, "kernel")]


def test_a_stream_may_be_destroyed_before_the_next_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver crashes when it is asked for one that is no more: where a launch ends is noted behind it."""
    kernel, arguments, api = reduce_on(monkeypatch)
    turns = [rank.turn for rank in kernel.mesh.local]
    kernel(arguments, stream=[71, 72, 73])
    assert [entry[:2] for entry in api.enqueued[-6:-3]] == [(71, "kernel"), (72, "kernel"), (73, "kernel")]
    assert api.enqueued[-3:] == [(stream, "record", turn) for stream, turn in zip((71, 72, 73), turns, strict=True)]
    del api.enqueued[:]
    kernel(arguments, stream=lasting(81, 82, 83))
    assert api.enqueued[:3] == [(stream, "follow", turn) for stream, turn in zip((81, 82, 83), turns, strict=True)]
    assert {what for _, what, _ in api.enqueued[3:]} == {"kernel"}


def test_a_launch_that_fails_on_a_later_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """The alarm ends the waits of those that were launched. Where none was, the next launch may be right."""
    kernel, arguments, api = reduce_on(monkeypatch)
    kernel(arguments)
    launch = api._cuLaunchKernelEx

    def last(config: Any, function: int, *rest: Any) -> None:
        if api.contexts[-1] == 1002:
            raise DriverError(DriverFailure(NOWHERE, "cuLaunchKernelEx", "CUDA_ERROR", ""), 1)
        launch(config, function, *rest)

    monkeypatch.setattr(type(api), "_cuLaunchKernelEx", lambda _, *given: last(*given))
    with pytest.raises(PkcError, match="PK822"):
        kernel(arguments)
    assert kernel.mesh.alarm.raised.value
    with pytest.raises(PkcError, match="PK839"):
        kernel(arguments)


def test_a_launch_that_fails_in_a_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing runs that could wait for it."""
    kernel, arguments, api = reduce_on(monkeypatch)
    kernel(arguments)
    monkeypatch.setattr(kernel.mesh, "group", SimpleNamespace())
    api.capturing |= {71, 72, 73}
    api.failing = {"cuLaunchKernelEx": 1}
    with pytest.raises(PkcError, match="PK822"):
        kernel(arguments, stream=lasting(71, 72, 73))
    assert not kernel.mesh.alarm.raised.value


def test_a_stream_may_be_destroyed_after_a_launch_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes next waits for the launch before, as the one that failed did."""
    kernel, arguments, api = reduce_on(monkeypatch)
    kernel(arguments)
    turns = [rank.turn for rank in kernel.mesh.local]
    api.failing = {"cuLaunchKernelEx": 1}
    with pytest.raises(PkcError):
        kernel(arguments, stream=[71, 72, 73])
    api.failing = {}
    del api.enqueued[:]
    kernel(arguments, stream=lasting(81, 82, 83))
    assert api.enqueued[:3] == [(stream, "follow", turn) for stream, turn in zip((81, 82, 83), turns, strict=True)]
    assert {what for _, what, _ in api.enqueued[3:]} == {"kernel"}


def test_another_stream_may_have_a_handle_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was launched on the one before may still run."""
    kernel, arguments, api = reduce_on(monkeypatch)
    kernel(arguments, stream=[71, 72, 73])
    del api.enqueued[:]
    kernel(arguments, stream=[71, 72, 73])
    assert [entry[:2] for entry in api.enqueued] == [
        (stream, what) for what in ("follow", "kernel", "record") for stream in (71, 72, 73)
    ]


def test_a_change_of_stream_asks_the_driver_four_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """On one rank; as long as the stream stays, it asks for the launch alone."""
    kernel, arguments, api = reduce_on(monkeypatch, ranks=1)
    kernel(arguments, stream=lasting(71))
    api.contexts[-1] = kernel.mesh.local[0].context
    for stream, between in ((71, []), (81, ["cuStreamIsCapturing", "cuEventRecord", "cuStreamWaitEvent"])):
        api.calls.clear()
        kernel(arguments, stream=lasting(stream))
        assert api.names() == ["cuCtxGetCurrent", *between, "cuLaunchKernelEx"]


@pytest.mark.parametrize("streams", [lambda *given: [*given], lasting], ids=["foreign", "lasting"])
def test_a_capture_is_in_the_order_of_its_stream(monkeypatch: pytest.MonkeyPatch, streams: Any) -> None:
    """It must not depend on what is outside; what follows it on another stream waits for the last launch before."""
    kernel, arguments, api = reduce_on(monkeypatch)
    turns = [rank.turn for rank in kernel.mesh.local]
    kernel(arguments, stream=streams(71, 72, 73))
    api.capturing = {81, 82, 83}
    del api.enqueued[:]
    kernel(arguments, stream=streams(81, 82, 83))
    assert [what for _, what, _ in api.enqueued] == ["kernel"] * 3
    api.capturing = set()
    kernel(arguments, stream=streams(91, 92, 93))
    recorded = [stream for stream, what, _ in api.enqueued if what == "record"]
    assert recorded == ([71, 72, 73] if streams is lasting else [91, 92, 93])
    followed = [entry for entry in api.enqueued if entry[1] == "follow"]
    assert followed == [(stream, "follow", turn) for stream, turn in zip((91, 92, 93), turns, strict=True)]


def test_kernels_without_memory_of_their_own_need_no_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, api = small_on(monkeypatch, ranks=2)
    kernel(arguments, stream=[71, 72])
    kernel(arguments, stream=[81, 82])
    assert "cuStreamWaitEvent" not in api.names()


def test_kernels_whose_ctas_take_tasks_from_a_queue_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """They share its counter, which lies behind the epochs of all CTAs; it is the same for all sizes."""
    kernel, arguments, api = small_on(monkeypatch, 2, replace(SMALL, queue=True))
    kernel(arguments, stream=[71, 72])
    kernel(arguments, stream=[81, 82])
    assert api.names().count("cuStreamWaitEvent") == 2
    assert max(count for _, count in api.zeroed) >= 4 * (SMS + 1)
    zeroed = list(api.zeroed)
    kernel({**arguments, "A": [Tensor((5, 8), device=Device(rank)) for rank in range(2)]}, stream=[81, 82])
    assert api.zeroed == zeroed


def test_waiting_for_a_stream_that_was_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, api = small_on(monkeypatch, ranks=2)
    kernel(arguments, stream=71)
    api.calls.clear()
    kernel.mesh.synchronize(stream=71)
    assert [call[2] for call in api.calls if call[0] == "cuEventRecord"] == [71]
    api.unready = {71}
    with pytest.raises(PkcError, match="ranks 0, 1 did not finish"):
        kernel.mesh.synchronize(0.001, stream=71)


def test_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    """A capture begins after the first launch, and may have other arrays of the same shapes."""
    kernel, arguments, api = small_on(monkeypatch)
    kernel(arguments)
    api.capturing = {71}
    api.calls.clear()
    kernel(arguments, stream=71)
    kernel(arguments | {"A": Tensor((4, 8), address=FIRST_POINTER + 4096)}, stream=71)
    contexts = {"cuCtxGetCurrent", "cuCtxSetCurrent", "cuCtxPushCurrent", "cuCtxPopCurrent"}
    assert set(api.names()) == {*contexts, "cuLaunchKernelEx"}


# What is refused


def refused(kernel: LoadedKernel, arguments: dict[str, Any], **keywords: Any) -> str:
    """The text for a launch that is refused before anything runs."""
    with pytest.raises(PkcError) as raised:
        kernel(arguments, **keywords)
    return str(raised.value)


def test_a_first_launch_in_a_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, api = small_on(monkeypatch)
    api.capturing = {71}
    expected = """\
error[PK850]: the first launch of `copy` with these dimensions is in a stream capture
  = help: launch it once before the capture"""
    assert refused(kernel, arguments, stream=71) == expected
    assert not api.launches


@pytest.mark.parametrize(
    ("target", "capability", "fits"),
    [
        ("sm_90a", (9, 0), True),
        ("sm_90a", (10, 0), False),
        ("sm_90a", (8, 0), False),
        ("sm_90", (9, 0), True),
        ("sm_80", (8, 6), True),
        ("sm_80", (9, 0), False),
        ("sm_86", (8, 0), False),
        ("sm_100a", (10, 0), True),
    ],
)
def test_machine_code_for_another_gpu(
    monkeypatch: pytest.MonkeyPatch, target: str, capability: tuple[int, int], fits: bool
) -> None:
    made, _ = driver(monkeypatch, gpus=1, capability=capability)
    mesh, artifact = Mesh.single_process(driver=made), replace(SMALL, target=target)
    if fits:
        LoadedKernel(artifact, mesh)
        return
    with pytest.raises(PkcError) as raised:
        LoadedKernel(artifact, mesh)
    expected = f"""\
error[PK825]: `copy` is compiled for {target}; GPU 0 has compute capability {capability[0]}.{capability[1]}
  = help: compile it for the GPU it runs on"""
    assert str(raised.value) == expected


def test_names(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, _ = small_on(monkeypatch)
    without = {name: value for name, value in arguments.items() if name != "s"}
    assert refused(kernel, without) == "error[PK840]: `copy` takes `A`, `s`, `n`; `s` missing"
    assert refused(kernel, arguments | {"B": 1}) == "error[PK840]: `copy` takes `A`, `s`, `n`; there is no `B`"


def test_arrays_that_others_do_not_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, api = reduce_on(monkeypatch)
    other = Mesh.single_process(driver=kernel.mesh.driver)
    cases = {
        "is reached by other ranks: it must be an array of the mesh": Tensor((40, 64), "torch.float32"),
        "is an array of another mesh": other.empty((40, 64), "f32", "shard", 0),
        "has layout replicate": kernel.mesh.empty((40, 64), "f32", "replicate"),
        "has layout shard 0 zigzag": kernel.mesh.empty((40, 64), "f32", "shard", 0, zigzag=True),
        "has layout shard 1": kernel.mesh.empty((40, 64), "f32", "shard", 1),
    }
    for problem, value in cases.items():
        expected = f"""\
error[PK841]: `C` of `gemm_rs` {problem}
  = help: `mesh.empty((M, 64), "f32", "shard", 0)` makes an array that fits"""
        assert refused(kernel, arguments | {"C": value}) == expected
    assert not api.launches


LENT = replace(
    REDUCE,
    arrays=tuple(replace(array, local=array.name == "C", written=array.name == "C") for array in REDUCE.arrays),
    fields=(TensorMaps("C_map", "C", (32, 16, 1), 128, 0), Base("C_base", "C"), *REDUCE.fields),
)
"""Of C ranks reach their own shards alone: of 40 rows on 3 ranks 14, 14 and 12."""


HIGH = 3 * STRIDE
"""Tensors lie as high as the last rank's memory behind that of the first, on all ranks alike."""


def lent_on(monkeypatch: pytest.MonkeyPatch) -> tuple[LoadedKernel, dict[str, Any], Api]:
    made, api = driver(monkeypatch, gpus=3)
    kernel = LoadedKernel(LENT, Mesh.single_process(driver=made))
    api.struct_bytes = layout(LENT.fields)[1]
    given = [Tensor((40, 72), device=Device(rank), address=FIRST_POINTER + rank * MIB) for rank in range(3)]
    return kernel, {"A": given, "C": shards(9), "scale": 0.5, "count": 1}, api


def shards(number: int, rows: int = 14) -> list[Tensor]:
    place = HIGH + number * 64 * MIB
    return [Tensor((rows, 64), "torch.float32", Device(rank), address=place + rank * 5 * MIB) for rank in range(3)]


def told(api: Api) -> list[tuple[int, int, int]]:
    """Where the last launches' kernels find C on their ranks, by both maps and by the base."""
    found: list[tuple[int, int, int]] = []
    for rank, launch in enumerate(api.launches[-3:]):
        first, rest = (api.encoded[launch.struct[at] - 1] for at in (0, 128))
        assert (first["strides"], first["extents"]) == ([256, STRIDE], [64, 14, 2])
        assert {**rest, "address": 0} == {**first, "address": 0, "extents": [64, 12, 1]}
        (base,) = struct.unpack_from("<Q", launch.struct, 256)
        shift = rank * STRIDE
        found.append((first["address"] + shift, rest["address"] + shift - 2 * STRIDE, base + shift))
    return found


def test_tensors_in_place_of_an_array_that_others_do_not_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rank's kernel is told where the array would begin on rank 0, so that it finds its own shard."""
    kernel, arguments, api = lent_on(monkeypatch)
    for given in (arguments["C"], shards(11), shards(9)):
        kernel(arguments | {"C": given})
        assert told(api) == [(tensor.address,) * 3 for tensor in given]
    assert len(kernel._plans) == 1
    array = kernel.mesh.empty((40, 64), "f32", "shard", 0)
    kernel(arguments | {"C": array})
    assert told(api) == [(array.local(rank).address,) * 3 for rank in range(3)]
    kernel(arguments | {"C": shards(11)})
    assert told(api) == [(tensor.address,) * 3 for tensor in shards(11)]


def test_tensors_that_show_how_long_a_dimension_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing else does, shards are equal."""
    made, api = driver(monkeypatch, gpus=3)
    array = ArrayParameter("C", "f32", ("M", 64), "shard", 0, False, local=True)
    artifact = replace(SMALL, arrays=(array,), fields=(Base("C_base", "C"), Dimension("M", "M")))
    kernel = LoadedKernel(artifact, Mesh.single_process(driver=made))
    api.struct_bytes = 128
    for rows in (14, 5):
        kernel({"C": shards(9, rows)})
        assert {struct.unpack_from("<i", launch.struct, 8) for launch in api.launches[-3:]} == {(3 * rows,)}


def test_tensors_that_show_a_dimension_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their other axis says how long the sharded one is."""
    made, api = driver(monkeypatch, gpus=3)
    array = ArrayParameter("C", "f32", ("M", "M"), "shard", 0, False, local=True)
    artifact = replace(SMALL, arrays=(array,), fields=(Base("C_base", "C"), Dimension("M", "M")))
    kernel = LoadedKernel(artifact, Mesh.single_process(driver=made))
    api.struct_bytes = 128
    kernel({"C": [replace(each, shape=(22, 64)) for each in shards(9)]})
    assert {struct.unpack_from("<i", launch.struct, 8) for launch in api.launches} == {(64,)}
    wrong = [replace(each, shape=(21, 64)) for each in shards(9)]
    assert (
        refused(kernel, {"C": wrong}) == "error[PK844]: `C` of `copy` has shape [21, 64] on rank 0; expected [22, 64]"
    )


def test_tensors_that_are_no_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, api = lent_on(monkeypatch)
    made = '\n  = help: `mesh.empty((M, 64), "f32", "shard", 0)` makes an array that fits'
    cases = {
        "[PK844]: `C` of `gemm_rs` has shape [13, 64] on rank 0; expected [14, 64]": shards(9, 13),
        "[PK844]: `C` of `gemm_rs` has shape [40, 64] on rank 0; expected [14, 64]": shards(9, 40),
        "[PK844]: `C` of `gemm_rs` has shape [14] on rank 0; expected [M, 64]": [
            replace(each, shape=(14,)) for each in shards(9)
        ],
        "[PK843]: `C` of `gemm_rs` has elements of type bf16; expected f32": [
            replace(each, dtype="torch.bfloat16") for each in shards(9)
        ],
        "[PK842]: `C` of `gemm_rs` is reached by its own rank alone: 2 arrays for 3 ranks\n"
        "  = help: pass a list with one tensor for each rank of this process": shards(9)[:2],
        f"[PK841]: `C` of `gemm_rs` begins at 0x1000000000 on rank 0; tensors in its place begin at 0x8000000000 or"
        f" above{made}": [replace(shards(9)[0], address=1 << 36), *shards(9)[1:]],
        f"[PK841]: `C` of `gemm_rs` is neither an array of the mesh nor a tensor{made}": [1, 2, 3],
    }
    kernel(arguments)
    for expected, value in cases.items():
        assert refused(kernel, arguments | {"C": value}) == f"error{expected}"
    both = [replace(a, address=c.address) for a, c in zip(arguments["A"], shards(9), strict=True)]
    expected = "error[PK867]: `A` and `C` of `gemm_rs` overlap on rank 0, and the kernel writes `C`"
    assert refused(kernel, arguments | {"A": both}).startswith(expected)
    assert len(api.launches) == 3


def test_one_array_for_each_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, _ = reduce_on(monkeypatch)
    sharded = kernel.mesh.empty((40, 72), "bf16", "shard", 0)
    other = Mesh.single_process(driver=kernel.mesh.driver)
    cases = {
        "2 arrays": arguments["A"][:2],
        "1 array": arguments["A"][0],
        "a sharded array": sharded,
        "an array of another mesh": other.empty((40, 72), "bf16"),
    }
    for found, value in cases.items():
        expected = f"""\
error[PK842]: `A` of `gemm_rs` is private to each rank: {found} for 3 ranks
  = help: pass a list with one tensor for each rank of this process"""
        assert refused(kernel, arguments | {"A": value}) == expected


@pytest.mark.parametrize("value", [1, {}, None, "A", np.zeros((4, 8))])
def test_what_is_no_tensor(monkeypatch: pytest.MonkeyPatch, value: object) -> None:
    kernel, arguments, _ = small_on(monkeypatch)
    expected = f"""\
error[PK858]: `A` of `copy` is an argument of type {type(value).__name__}; expected a tensor on the GPU
  = help: `torch.as_tensor(value, device="cuda")` makes one; `pkc.simulate` takes arrays of numpy"""
    assert refused(kernel, arguments | {"A": [value]}) == expected


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (Tensor((4, 8), "torch.float16"), "error[PK843]: `A` of `copy` has elements of type f16; expected bf16"),
        (Tensor((4, 8), "torch.int64"), "error[PK843]: `A` of `copy` has elements of type int64; expected bf16"),
        (Tensor((8,)), "error[PK844]: `A` of `copy` has shape [8] on rank 0; expected [M, K]"),
        (
            Tensor((4, 8), strides=(1, 4)),
            "error[PK845]: `A` of `copy` has strides [1, 4] on rank 0; expected [8, 1]\n"
            "  = help: `.contiguous()` makes a copy that fits",
        ),
        (
            Tensor((4, 8), strides=(16, 1)),
            "error[PK845]: `A` of `copy` has strides [16, 1] on rank 0; expected [8, 1]\n"
            "  = help: `.contiguous()` makes a copy that fits",
        ),
        (
            Tensor((4, 8), device=Device(1)),
            'error[PK846]: `A` of `copy` is on GPU 1; rank 0 uses GPU 0\n  = help: `.to("cuda:0")` makes a copy there',
        ),
        (
            Tensor((4, 8), device=Device(None, "cpu")),
            "error[PK846]: `A` of `copy` is on the host; rank 0 uses GPU 0\n"
            '  = help: `.to("cuda:0")` makes a copy there',
        ),
        (
            Tensor((4, 8), address=4104),
            "error[PK853]: `A` of `copy` begins at address 0x1008 on rank 0, which is no multiple of 16 bytes\n"
            "  = help: pass a tensor that is not a view into another one, or one that begins at a multiple of 16 bytes",
        ),
        (
            Tensor((0, 8)),
            "error[PK848]: dimension `M` of `copy` is 0 by `A` on rank 0; it must be from 1 to 2147483647",
        ),
    ],
)
def test_tensors(monkeypatch: pytest.MonkeyPatch, tensor: Tensor, expected: str) -> None:
    kernel, arguments, api = small_on(monkeypatch)
    assert refused(kernel, arguments | {"A": tensor}) == expected
    assert not api.launches


def test_constant_dimensions(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, _ = reduce_on(monkeypatch)
    wrong = kernel.mesh.empty((40, 32), "f32", "shard", 0)
    expected = "error[PK844]: `C` of `gemm_rs` has shape [40, 32] on rank 0; expected [M, 64]"
    assert refused(kernel, arguments | {"C": wrong}) == expected


def test_a_dimension_of_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = driver(monkeypatch, gpus=2)
    table = ArrayParameter("A", "bf16", ("ranks", "K"), "private", None, False)
    kernel = LoadedKernel(replace(SMALL, arrays=(table,)), Mesh.single_process(driver=made))
    tensors = [Tensor((3, 8), device=Device(rank)) for rank in range(2)]
    expected = "error[PK844]: `A` of `copy` has shape [3, 8] on rank 0; expected [2, K]"
    assert refused(kernel, {"A": tensors, "s": 1, "n": 1}) == expected


def test_unequal_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, api = reduce_on(monkeypatch)
    one, two, three = arguments["A"]
    expected = "error[PK848]: dimension `K` of `gemm_rs` is 72 by `A` on rank 0, and 80 by `A` on rank 2"
    assert refused(kernel, arguments | {"A": [one, two, replace(three, shape=(40, 80))]}) == expected
    expected = "error[PK848]: dimension `M` of `gemm_rs` is 40 by `A` on rank 0, and 48 by `C` on rank 0"
    assert refused(kernel, arguments | {"C": kernel.mesh.empty((48, 64), "f32", "shard", 0)}) == expected
    expected = "error[PK848]: dimension `M` of `gemm_rs` is 8 by its setting, and 40 by `A` on rank 0"
    assert refused(kernel, arguments, dims={"M": 8}) == expected
    assert not api.launches


def test_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    made, api = driver(monkeypatch, gpus=1)
    artifact = replace(SMALL, signals=(SignalParameter("seen", (("tiles", 4),)),))
    kernel = LoadedKernel(artifact, Mesh.single_process(driver=made))
    arguments = {"A": Tensor((4, 8)), "s": 1, "n": 1}
    expected = "error[PK848]: dimension `tiles` of `copy` has no value: no array and no setting gives it one"
    assert refused(kernel, arguments) == expected
    expected = "error[PK848]: dimension `L` of `copy` does not exist; there are `M`, `K`, `tiles`"
    assert refused(kernel, arguments, dims={"tiles": 3, "L": 1}) == expected
    expected = "error[PK848]: dimension `tiles` of `copy` is 2.5 by its setting; it must be from 1 to 2147483647"
    assert refused(kernel, arguments, dims={"tiles": 2.5}) == expected
    kernel(arguments, dims={"tiles": 3})
    assert len(api.launches) == 1


@pytest.mark.parametrize(
    ("name", "value", "shown", "dtype"),
    [("s", "1", "'1'", "f32"), ("s", True, "True", "f32"), ("n", 1.5, "1.5", "i32"), ("n", 2**31, "2147483648", "i32")],
)
def test_scalars(monkeypatch: pytest.MonkeyPatch, name: str, value: object, shown: str, dtype: str) -> None:
    kernel, arguments, _ = small_on(monkeypatch)
    expected = f"error[PK849]: `{name}` of `copy` is {shown}, which is not of type {dtype}"
    assert refused(kernel, arguments | {name: value}) == expected


def test_what_tma_cannot_move_names_the_dimension(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, api = reduce_on(monkeypatch)
    expected = """\
error[PK847]: TMA cannot move `A`: the distance from one position of `M` to the next is 140 bytes
  = help: it must be a multiple of 16 bytes: let `K` be a multiple of 8"""
    assert refused(kernel, arguments | {"A": [replace(t, shape=(40, 70)) for t in arguments["A"]]}) == expected
    assert not api.launches


def test_streams_that_are_not_one_for_each_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, arguments, _ = small_on(monkeypatch, ranks=3)
    expected = """\
error[PK851]: 2 streams for 3 ranks
  = help: pass one stream for each rank of this process, or a single one for all"""
    assert refused(kernel, arguments, stream=[71, 72]) == expected
