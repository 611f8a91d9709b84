"""One process for each GPU: real processes, on the fake driver."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pkc.codegen.artifact import ArrayParameter, Artifact, SignalParameter
from pkc.diagnostics import PkcError
from pkc.runtime import group as module
from pkc.runtime.driver import Driver
from pkc.runtime.group import Group, Job, job
from pkc.runtime.launch import LoadedKernel
from pkc.runtime.mesh import Mesh
from tests.runtime.fake import SPAN, UNIT, Api, driver
from tests.runtime.plays import artifact

STRIDE = 1 << 38
SIGNALS = Artifact(
    name="copy",
    target="sm_90a",
    cubin=b"machine code",
    arrays=(ArrayParameter("C", "f32", ("M", "K"), "symmetric", None, False),),
    signals=(SignalParameter("seen", (1,)),),
    fields=(),
    threads=128,
    shared_bytes=0,
    cluster=1,
    comm_sms=0,
)
ENVIRONMENT = {
    "RANK": "1",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "4",
    "MASTER_PORT": "29500",
    "TORCHELASTIC_RUN_ID": "none",
    "TORCHELASTIC_RESTART_COUNT": "2",
}


def in_processes(work: Callable[[int], Any], ranks: int) -> list[Any]:
    """The results of `work(rank)` in a process for each rank; the text of a `PkcError`."""
    name = uuid.uuid4().hex
    with multiprocessing.get_context("spawn").Pool(ranks) as pool:
        return pool.starmap(_in_process, [(work, name, rank, ranks) for rank in range(ranks)], chunksize=1)


def _in_process(work: Callable[[int], Any], name: str, rank: int, ranks: int) -> Any:
    numbers = {"RANK": rank, "WORLD_SIZE": ranks, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": ranks, "MASTER_PORT": 29500}
    os.environ.update({key: str(value) for key, value in numbers.items()}, TORCHELASTIC_RUN_ID=name)
    try:
        return work(rank)
    except PkcError as error:
        return str(error)


def test_what_torchrun_says() -> None:
    assert job(ENVIRONMENT) == Job(1, 4, 1, f"pkc-{os.getuid()}-29500-none-2")


@pytest.mark.parametrize("variable", ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT"])
def test_without_torchrun(variable: str) -> None:
    with pytest.raises(PkcError) as raised:
        job({key: value for key, value in ENVIRONMENT.items() if key != variable})
    expected = f"""\
error[PK830]: {variable} is not set
  = help: start the program with `torchrun --nproc-per-node=N`, or use `Mesh.single_process()`"""
    assert str(raised.value) == expected


def test_several_hosts() -> None:
    with pytest.raises(PkcError) as raised:
        job(ENVIRONMENT | {"WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8"})
    expected = """\
error[PK831]: 16 ranks are spread over several hosts; this one has 8
  = help: pkc joins the GPUs of one host; start `torchrun` with `--nnodes=1`"""
    assert str(raised.value) == expected


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _heap(rank: int) -> Any:
    """Rank 0 makes, frees and trims before the others do, and waits for none of them."""
    api, done = Api(gpus=3), Path(tempfile.gettempdir(), os.environ["TORCHELASTIC_RUN_ID"])
    mesh = Mesh.from_torchrun(driver=Driver(api))
    deadline = time.monotonic() + 60
    while rank and not done.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    files = _open_files()
    first, second = mesh.empty((16 << 20,), "f32"), mesh.empty((8,), "f32")
    large = mesh.empty((64 << 20,), "f32")
    large.free()
    trimmed, own = mesh.trim(), dict(api.mapped)
    done.touch()
    mesh.empty((64 << 20,), "f32")
    mesh.heap.share()
    left = _open_files() - files
    done.unlink(missing_ok=True)
    place = (mesh.local[0].rank, mesh.local[0].device)
    offsets = (first.offset, second.offset, large.offset)
    return place, (trimmed, own), api.mapped, set(map(tuple, api.access.values())), offsets, left


def test_every_process_maps_the_memory_of_all() -> None:
    starts = (0, 64 << 20, 128 << 20)
    for rank, (place, (trimmed, own), mapped, access, offsets, left) in enumerate(in_processes(_heap, 3)):
        assert place == (rank, rank)
        assert trimmed == (192 << 20) + UNIT, "the array begins in what stays"
        assert own == {SPAN + rank * STRIDE + start: rank for start in starts[:2]}
        assert mapped == {SPAN + other * STRIDE + start: other for other in range(3) for start in starts}
        assert access == {(rank,)}
        assert offsets == (0, 64 << 20, (64 << 20) + 1024)
        assert left == 0, "descriptors are closed"


def _no_room(rank: int, call: str) -> Any:
    api = Api(gpus=3, failing={call: 2} if rank == 1 else {})
    mesh = Mesh.from_torchrun(driver=Driver(api))
    files = _open_files()
    try:
        mesh.empty((1,), "f32")
        mesh.heap.share()
    except PkcError as error:
        return str(error), api.handles, _open_files() - files
    return None


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("cuMemCreate", "error[PK823]: GPU 1 has no room for 64 MiB\n"),
        ("cuMemMap", "error[PK822]: `cuMemMap` failed: "),
    ],
)
def test_one_rank_has_no_room(call: str, says: str) -> None:
    texts = in_processes(partial(_no_room, call=call), 3)
    expected = """\
error[PK834]: the symmetric heap cannot grow by 64 MiB: rank 1 has no room
  = help: the output of its process says more"""
    assert texts[0] == texts[2] == (expected, {}, 1), "its own memory stays"
    assert texts[1][1:] == ({}, 0)
    assert texts[1][0].startswith(says)


def _not_mapped(rank: int) -> Any:
    api = Api(gpus=3)
    mesh = Mesh.from_torchrun(driver=Driver(api))
    mesh.empty((1,), "f32")
    if rank == 1:
        api.failing["cuMemSetAccess"] = 1
    try:
        mesh.heap.share()
    except PkcError as error:
        return str(error), api.handles, api.mapped
    return len(api.mapped)


def test_memory_of_other_ranks_that_cannot_be_mapped() -> None:
    first, (text, handles, mapped), last = in_processes(_not_mapped, 3)
    assert first == last == 3
    assert "`cuMemSetAccess` failed: CUDA_ERROR_INVALID_VALUE" in text
    assert not handles
    assert mapped == {SPAN + STRIDE: 1}, "its own"


def _different(rank: int) -> Any:
    mesh = Mesh.from_torchrun(driver=Driver(Api()))
    mesh.empty(((1 + (rank == 2)) << 26,), "f32")
    mesh.heap.share()


def test_ranks_that_differ() -> None:
    expected = """\
error[PK835]: rank 0 and rank 2 do different things
  = note: rank 0 enlarges the symmetric heap by 256 MiB; rank 2 enlarges the symmetric heap by 512 MiB
  = help: every rank must make the same meshes, arrays and launches, with equal shapes and in the same order"""
    assert in_processes(_different, 3) == [expected] * 3


def _several_meshes(rank: int) -> Any:
    meshes = [Mesh.from_torchrun(driver=Driver(Api())) for _ in range(2)]
    found = [mesh.group.agree(f"is the mesh {number}") for number, mesh in enumerate(meshes) if mesh.group]
    for mesh in meshes:
        mesh.close()
    return found


def test_several_meshes_of_one_job() -> None:
    assert in_processes(_several_meshes, 2) == [[[[], []], [[], []]]] * 2


def _one_leaves(rank: int) -> Any:
    group = Group(job())
    if rank == 1:
        group.close()
        return None
    group.agree("launches gemm")
    return None


def test_a_rank_that_ends() -> None:
    texts = in_processes(_one_leaves, 3)
    expected = """\
error[PK833]: rank 1 has ended while rank 0 waits for it
  = note: rank 0 launches gemm
  = help: what the other process printed says why"""
    assert texts[0] == expected
    assert texts[1] is None


def test_a_rank_that_does_not_come() -> None:
    with pytest.raises(PkcError) as raised:
        Group(Job(0, 3, 0, f"pkc-{uuid.uuid4()}"), timeout=0.05)
    expected = """\
error[PK832]: rank 0 waited 0 s for rank 1, rank 2
  = note: rank 0 makes a mesh
  = help: every rank must make the same meshes, arrays and launches in the same order"""
    assert str(raised.value) == expected
    with pytest.raises(PkcError, match="rank 2 waited 0 s for the others"):
        Group(Job(2, 3, 2, f"pkc-{uuid.uuid4()}"), timeout=0.05)


def _overlapping(rank: int) -> Any:
    """Meshes of ranks 0 and 1, of 1 and 2, and of all, at once: each maps the memory of its own ranks."""
    api = Api(gpus=3)
    found: dict[tuple[int, ...], Any] = {}
    meshes: list[tuple[Mesh, LoadedKernel, Any]] = []
    for members in ((0, 1), (1, 2), (0, 1, 2)):
        if rank in members:
            name = f"{os.environ['TORCHELASTIC_RUN_ID']}-{members}"
            api.mapped.clear()
            mesh = Mesh.of_job(Job(members.index(rank), len(members), rank, name), members, driver=Driver(api))
            meshes.append((mesh, LoadedKernel(SIGNALS, mesh), mesh.empty((8, 8), "f32")))
            mesh.heap.share()
            found[members] = (mesh.local[0].rank, mesh.local[0].device, sorted(set(api.mapped.values())))
    for _, kernel, array in (*meshes, *meshes):
        kernel({"C": array})
    launches = len(api.launches)
    meshes[-1][0].close()
    return found, launches, meshes[0][0].closed


def test_meshes_of_other_and_of_overlapping_processes() -> None:
    for rank, (found, launches, closed) in enumerate(in_processes(_overlapping, 3)):
        assert found == {
            members: (members.index(rank), rank, list(members))
            for members in ((0, 1), (1, 2), (0, 1, 2))
            if rank in members
        }
        assert launches == 2 * len(found)
        assert not closed


def test_no_gpu_for_a_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in ENVIRONMENT.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr(module, "Group", lambda _: pytest.fail("waits for the others before it looks"))
    with pytest.raises(PkcError, match="rank 1 is to use GPU 1, and this process sees 1"):
        Mesh.from_torchrun(driver=Driver(Api(gpus=1)))


def _launch(rank: int) -> Any:
    api = Api(gpus=2)
    mesh = Mesh.from_torchrun(driver=Driver(api))
    assert mesh.group is not None
    told: list[str] = []
    agree = mesh.group.agree
    mesh.group.agree = lambda what, *rest: told.append(what) or agree(what, *rest)
    kernel = LoadedKernel(SIGNALS, mesh)
    arrays = [mesh.empty((8, 8), "f32") for _ in range(2)]
    for array in (*arrays, *arrays):
        kernel({"C": array})
    try:
        kernel({"C": mesh.empty((8, 16 if rank else 8), "f32")})
    except PkcError as error:
        return told, len(api.launches), str(error)
    return None


def test_launches_are_agreed_on_when_they_are_new() -> None:
    for told, launches, text in in_processes(_launch, 2):
        assert told[:4] == [
            "launches copy (5ace2a28) with M=8, K=8, `C` at 0x0, 2 KiB of the heap in use",
            "has zeroed memory for counters",
            "enlarges the symmetric heap by 64 MiB",
            "launches copy (5ace2a28) with M=8, K=8, `C` at 0x400",
        ]
        assert launches == 4, "the fifth is refused before it begins"
        expected = """\
error[PK835]: rank 0 and rank 1 do different things
  = note: rank 0 launches copy (5ace2a28) with M=8, K=8, `C` at 0x1000800; \
rank 1 launches copy (5ace2a28) with M=8, K=16, `C` at 0x1000800, 5 KiB of the heap in use
  = help: every rank must make the same meshes, arrays and launches, with equal shapes and in the same order"""
        assert text == expected


def _apart(rank: int) -> Any:
    """One more array on rank 1, behind what the kernel is given."""
    api = Api(gpus=2)
    mesh = Mesh.from_torchrun(driver=Driver(api))
    array = mesh.empty((8, 8), "f32")
    if rank:
        mesh.empty((8, 8), "f32")
    try:
        LoadedKernel(SIGNALS, mesh)({"C": array})
    except PkcError as error:
        return len(api.launches), str(error)
    return None


def test_counters_at_different_places() -> None:
    """Signals to counters that are elsewhere would be lost."""
    for launches, text in in_processes(_apart, 2):
        assert not launches
        assert "`C` at 0x0, 1 KiB of the heap in use; rank 1" in text
        assert text.split("\n")[1].endswith("`C` at 0x0, 2 KiB of the heap in use")


def _grown_again(rank: int) -> Any:
    api = Api(gpus=2)
    mesh = Mesh.from_torchrun(driver=Driver(api))
    kernel, small = LoadedKernel(SIGNALS, mesh), mesh.empty((8, 8), "f32")
    kernel({"C": small})
    mapped = len(api.mapped)
    found: list[tuple[int, int]] = []
    for _ in range(2):
        large = mesh.empty((32 << 20, 1), "f32")
        kernel({"C": large})
        found.append((large.offset, len(api.mapped) - mapped))
        large.free()
        mesh.trim()
    kernel({"C": small})
    return found


def test_memory_that_comes_again_is_shared_again() -> None:
    """A launch with an array where another one was before the heap shrank waits for its memory on all ranks."""
    first, second = in_processes(_grown_again, 2)
    assert first == second
    assert [count for _, count in first] == [2, 2], "of both ranks"
    assert first[0] == first[1]


def _tried(rank: int) -> Any:
    """Addresses that copies go to where nothing is mapped, and the ranks that they go to: copy engines send, and the
    heap has no room for what they try."""
    with pytest.MonkeyPatch.context() as patch:
        return _tried_by(*driver(patch, gpus=2))


def _tried_by(opened: Driver, api: Api) -> Any:
    mesh = Mesh.from_torchrun(driver=opened)
    kernel = LoadedKernel(artifact("all_gather"), mesh)
    for columns in (256, 16384):
        x, y = (mesh.empty((4096, columns), "bf16", *layout) for layout in (("shard", 0), ("replicate",)))
        while not mesh.heap._offsets.lacking(20 << 20):  # room for counters, which have 16 MiB, and little more
            mesh.heap.allocate(1 << 18)
        kernel({"X": x, "Y": y})
    mapped = set[int]()
    lost, ranks = list[int](), set[int | None]()
    for name, *arguments in api.calls:
        if name == "cuMemMap":
            mapped |= set(range(arguments[0] // UNIT, (arguments[0] + arguments[1]) // UNIT))
        if name in ("cuMemcpyAsync", "cuMemcpy2DAsync"):
            plain, first = name == "cuMemcpyAsync", arguments[0]
            target, size = (first, arguments[2]) if plain else (int(first.dstDevice), _size(first))
            ranks.add(mesh.heap.rank_at(target))
            lost += [target] * (not {target // UNIT, (target + size - 1) // UNIT} <= mapped)
    return lost, ranks


def _size(copy: Any) -> int:
    """Bytes from the first to the last one that a copy of rows writes."""
    return (copy.Height - 1) * copy.dstPitch + copy.WidthInBytes


def test_copies_are_tried_in_memory_that_all_have_mapped() -> None:
    assert in_processes(_tried, 2) == [([], {0, 1})] * 2


def _sees_who_left(rank: int) -> list[int]:
    group = Group(job(os.environ))
    before = group.left()
    group.agree("has looked")
    if rank == 1:
        group.close()
        return before
    deadline = time.monotonic() + 10
    while not group.left() and time.monotonic() < deadline:
        time.sleep(0.01)
    return [*before, *group.left()]


def test_who_has_left() -> None:
    """Rank 0 sees that rank 1 is gone, and did not see it before; nobody waits for an answer."""
    assert in_processes(_sees_who_left, 2) == [[1], []]
