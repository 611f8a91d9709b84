"""What is enqueued beside kernels for copy engines gives right results in any order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain, cycle, product
from typing import Any

import pytest

from pkc.codegen.artifact import Artifact
from pkc.diagnostics import PkcError
from pkc.runtime.launch import LoadedKernel
from pkc.runtime.mesh import Mesh
from tests.runtime.fake import SMS, Api, driver
from tests.runtime.plays import KERNELS, SIZES, Entry, Run, artifact, play
from tests.runtime.streams import STRIDE, Deadlock
from tests.sweeps import sweep

OFTEN = ((1, "ragged"), (2, "divisible"), (3, "ragged"), (4, "short"))


@pytest.mark.parametrize(("ranks", "size"), sweep(product((1, 2, 3, 4), SIZES), lambda *case: case in OFTEN))
@pytest.mark.parametrize("name", KERNELS)
def test_launches_are_right_in_any_order(monkeypatch: pytest.MonkeyPatch, name: str, size: str, ranks: int) -> None:
    for seed in range(4):
        play(Run(monkeypatch, artifact(name), ranks, *SIZES[size]), seed)


def broken(monkeypatch: pytest.MonkeyPatch, made: Artifact, *, m: int = 512, n: int = 264, **how: Any) -> bool:
    """Whether an order of 3 launches on 3 ranks goes wrong: each stream in turn goes on only while no other can."""
    first = Run(monkeypatch, made, 3, m, n)
    first.launch()
    for last in sorted({entry[0] for entry in first.api.enqueued}):
        try:
            play(Run(monkeypatch, made, 3, m, n), 0, last=last, **how)
        except (AssertionError, Deadlock):
            return True
    return False


def without(text: str, start: str) -> str:
    """The loop that begins with this operation runs no iteration."""
    lines = text.splitlines()
    (at,) = (number for number, line in enumerate(lines) if line.strip().startswith(start))
    head = lines[at - 1].split()  # scf.for %i = %zero to %n step %one {
    head[5] = head[3]
    return "\n".join([*lines[: at - 1], " ".join(head), *lines[at:]])


@pytest.mark.parametrize(
    ("name", "m", "loop"),
    [
        ("ag_gemm", 512, "pk.wait %began"),
        ("ag_gemm", 512, "pk.wait %copied"),
        ("all_gather", 512, "pk.wait %copied"),
        ("gemm_rs", 2, "pk.wait %copied"),  # rank 2 owns no row, so its kernel waits for nobody
    ],
)
def test_copy_engines_have_to_meet(monkeypatch: pytest.MonkeyPatch, name: str, m: int, loop: str) -> None:
    whole = artifact(name)
    assert not broken(monkeypatch, whole, m=m)
    assert broken(monkeypatch, replace(whole, engines=without(whole.engines, loop)), m=m)


@pytest.mark.parametrize("name", KERNELS)
def test_counters_have_to_restart(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    whole = artifact(name)
    kept = tuple(replace(signal, restarts=False) for signal in whole.signals)
    assert broken(monkeypatch, replace(whole, signals=kept))


def test_what_was_waited_for_has_to_be_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = artifact("ag_gemm")
    again = "\n".join(line for line in whole.engines.splitlines() if "pk.reset" not in line)
    assert broken(monkeypatch, replace(whole, engines=again))


def is_fork(run: Run, entry: Entry) -> bool:
    """Whether a lane follows the first one of its role."""
    lanes = chain(*map(run.lanes, range(run.ranks)))
    return entry[1] == "follow" and any(entry[0] == side.stream for _, *rest in lanes for side in rest)


def is_join(run: Run, entry: Entry) -> bool:
    """Whether the first lane of a role follows another one."""
    lanes = chain(*map(run.lanes, range(run.ranks)))
    return entry[1] == "follow" and any(entry[2] == side.event for _, *rest in lanes for side in rest)


@pytest.mark.parametrize("missing", [is_fork, is_join])
@pytest.mark.parametrize(("name", "m"), [("ag_gemm", 512), ("all_gather", 1024), ("gemm_rs", 512), ("gemm_ar", 512)])
def test_lanes_have_to_fork_and_join(
    monkeypatch: pytest.MonkeyPatch, name: str, m: int, missing: Callable[[Run, Entry], bool]
) -> None:
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32")  # so that two roles have several lanes too
    assert broken(monkeypatch, artifact(name), m=m, leave_out=missing)


@pytest.mark.parametrize("name", KERNELS)
def test_lanes_are_right_in_one_hardware_queue(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    assert not broken(monkeypatch, artifact(name), m=700, one_queue=True)


@pytest.mark.parametrize("name", KERNELS)
def test_calls_come_in_the_order_of_tasks(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """So that streams in one hardware queue do what a single stream would do. Tasks go to the lanes round-robin."""
    run = Run(monkeypatch, artifact(name), 2, 4096, 264)
    run.launch()
    run.api.enqueued.clear()
    run.launch()
    plan, *_ = run.kernel._plans
    for start in plan.starts:
        assert start.work is not None
        roles = run.lanes(start.rank.rank)
        assert [len(lanes) for lanes in roles] == ([1, 1] if name == "gemm_ar" else [4])
        for lanes, sections in zip(roles, start.work.roles, strict=True):
            streams, api = [side.stream for side in lanes], Api()
            for section in sections:
                for strand, stream in zip(section, cycle(streams)):
                    for call in strand:
                        getattr(api, call.name)(*call.on(stream))
            assert [len(section) > 1 for section in sections] == [False, True, False]
            assert len({entry[0] for entry in api.enqueued}) == len(lanes)
            beside = [entry for entry in run.api.enqueued if entry[0] in streams]
            assert [entry for entry in beside if entry[1] not in ("record", "follow")] == api.enqueued


def test_few_events_fork_and_join_the_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many for 30 tasks as for 3, and none for a single one."""
    found: list[list[int]] = []
    for rows in (128, 3 * 128, 30 * 128):
        run = Run(monkeypatch, artifact("all_gather"), 1, rows, 264)
        run.launch()
        run.api.enqueued.clear()
        run.launch()
        found.append([sum(entry[1] == what for entry in run.api.enqueued) for what in ("record", "follow")])
    assert found == [[2, 2], [2 + 3, 2 + 4], [2 + 4, 2 + 6]]


def test_every_launch_enqueues_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a graph that is replayed does what launches do."""
    run = Run(monkeypatch, artifact("gemm_rs"), 2, 700, 328)
    run.launch()
    found: list[list[Any]] = []
    for _ in range(2):
        run.api.enqueued.clear()
        run.launch()
        found.append([entry for entry in run.api.enqueued if entry[1] != "kernel"])
    assert found[0] == found[1]
    assert len(found[0]) > 50


def test_kernels_start_before_anything_waits_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, artifact("ag_gemm"), 2, 2048, 256)
    run.launch()
    run.api.enqueued.clear()
    run.kernel(run.arrays, stream=71)
    one, two = run.mesh.local
    lanes = [[(side.stream, side.event) for side in run.lanes(rank)[0]] for rank in range(2)]
    (first, second), others = [some[0] for some in lanes], [some[1:2] for some in lanes]
    around = [
        [
            (main, "record", event), *((lane, "follow", event) for lane, _ in rest),
            *chain(*(((lane, "record", over), (main, "follow", over)) for lane, over in rest)),
        ]
        for (main, event), rest in zip((first, second), others, strict=True)
    ]  # fmt: skip
    entries = [entry[:2] if entry[1] in ("clear", "copy", "kernel") else entry[:3] for entry in run.api.enqueued]
    kept = [entry for entry in entries if entry[1] not in ("wait", "write", "copy")]
    assert kept == [
        (71, "record", one.event), (one.stream, "follow", one.event), (two.stream, "follow", one.event),
        (one.stream, "clear"), (one.stream, "record", first[1]), (first[0], "follow", first[1]),
        (two.stream, "clear"), (two.stream, "record", second[1]), (second[0], "follow", second[1]),
        (one.stream, "kernel"), (two.stream, "kernel"),
        *around[0], *around[1],
        (first[0], "record", first[1]), (one.stream, "follow", first[1]),
        (second[0], "record", second[1]), (two.stream, "follow", second[1]),
        (one.stream, "record", one.event), (two.stream, "record", two.event),
        (71, "follow", one.event), (71, "follow", two.event),
    ]  # fmt: skip
    beside = {entry[0] for entry in entries if entry[1] in ("wait", "write", "copy")}
    assert {*beside} >= {first[0], second[0]}
    assert len(beside) == 4  # the eight rows of the other rank are two copies, on two lanes
    places = [number for number, entry in enumerate(entries) if entry[1] in ("wait", "write", "copy")]
    assert entries.index((two.stream, "kernel")) < min(places)
    assert max(places) < entries.index((one.stream, "follow", first[1]))


def test_a_capture_takes_no_other_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, artifact("ag_gemm"), 2, 512, 256)
    run.launch()
    run.api.capturing = {71}
    run.api.calls.clear()
    run.kernel(run.arrays, stream=71)
    contexts = {"cuCtxGetCurrent", "cuCtxSetCurrent", "cuCtxPushCurrent", "cuCtxPopCurrent"}
    assert set(run.api.names()) - contexts == {
        "cuEventRecord", "cuStreamWaitEvent", "cuMemsetD8Async", "cuLaunchKernelEx", "cuStreamBatchMemOp",
        "cuMemcpyAsync",
    }  # fmt: skip


def test_all_that_is_done_is_tried_before_the_first_kernel_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, artifact("gemm_rs"), 3, 700, 328)
    run.launch()
    entries = run.api.enqueued
    kernel = next(number for number, entry in enumerate(entries) if entry[1] == "kernel")
    tried, done = (
        {(entry[2] // STRIDE, entry[3] // STRIDE, *entry[4:]) for entry in some if entry[1] == "copy"}
        for some in (entries[:kernel], entries[kernel:])
    )
    assert tried == done
    assert any(entry[1] == "sync" for entry in entries[:kernel])
    assert {entry[0] for entry in entries[:kernel] if entry[1] == "copy"} == {
        side.stream for rank in range(3) for side in chain(*run.lanes(rank))
    }
    into = {entry[3] for entry in entries[:kernel] if entry[1] == "copy"}
    assert into.isdisjoint(entry[3] for entry in entries[kernel:] if entry[1] == "copy")


def test_sms_are_left_for_copies_within_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, artifact("all_gather"), 2, 512, 256)
    run.launch()
    assert [launch.grid for launch in run.api.launches] == [SMS - 4] * 2


@pytest.mark.parametrize(("ranks", "fits"), [(4, True), (5, False)])
def test_virtual_ranks_need_a_queue_for_each_stream(monkeypatch: pytest.MonkeyPatch, ranks: int, fits: bool) -> None:
    monkeypatch.delenv("CUDA_DEVICE_MAX_CONNECTIONS", raising=False)
    opened, _ = driver(monkeypatch, gpus=1)
    mesh = Mesh.virtual(ranks, driver=opened)
    if fits:
        LoadedKernel(artifact("ag_gemm"), mesh)
        return
    with pytest.raises(PkcError) as raised:
        LoadedKernel(artifact("ag_gemm"), mesh)
    assert (
        str(raised.value)
        == """\
error[PK859]: copy engines need 10 hardware queues on a GPU; there are 8
  = note: it has 5 ranks, each with 2 streams that must run while the others wait
  = help: set CUDA_DEVICE_MAX_CONNECTIONS=32 before the program starts, or use fewer virtual ranks"""
    )
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    LoadedKernel(artifact("ag_gemm"), mesh)


def test_one_queue_is_refused_with_one_rank_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy would wait there behind the kernel that waits for it."""
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1")
    opened, _ = driver(monkeypatch, gpus=1)
    with pytest.raises(PkcError, match=r"PK859.*need 2 hardware queues on a GPU; there are 1"):
        LoadedKernel(artifact("ag_gemm"), Mesh.single_process([0], driver=opened))


@pytest.mark.parametrize(
    ("ranks", "roles", "queues", "lanes"),
    [
        (1, 1, "", 4), (1, 2, "", 1), (1, 3, "", 1), (1, 4, "", 1), (1, 9, "", 1), (1, 2, "32", 4), (1, 4, "32", 3),
        (1, 1, "1", 1), (2, 1, "", 3), (2, 2, "", 1), (4, 1, "", 1), (4, 1, "32", 4), (8, 1, "32", 3),
    ],
)  # fmt: skip
def test_each_lane_has_a_hardware_queue(
    monkeypatch: pytest.MonkeyPatch, ranks: int, roles: int, queues: str, lanes: int
) -> None:
    """Beside the queues of the kernels, if there is more than one lane; all ranks that share a GPU count."""
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", queues)
    opened, _ = driver(monkeypatch, gpus=1)
    mesh = Mesh.virtual(ranks, driver=opened)
    assert mesh.lanes(roles) == lanes
    assert lanes == 1 or ranks * (1 + roles * lanes) <= int(queues or 8)


def test_streams_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, artifact("gemm_rs"), 2, 512, 256)
    sides = {side.stream for rank in range(2) for side in chain(*run.lanes(rank))}
    assert len(sides) == 8
    run.mesh.close()
    assert sides <= {call[1] for call in run.api.calls if call[0] == "cuStreamDestroy"}


@pytest.mark.parametrize("name", KERNELS)
def test_what_streams_wait_for_is_let_go_when_a_kernel_gives_up(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """By a stream of its own on each rank, to a count that is enough for every wait."""
    run = Run(monkeypatch, artifact(name), 2, 1024, 512)
    run.launch()
    run.api.enqueued.clear()  # copies are tried out before the first launch
    run.launch()
    launched = list(run.api.enqueued)
    run.kernel._release()
    writes = run.api.enqueued[len(launched) :]
    awaited = {place: count for _, what, place, count, *_ in (e for e in launched if e[1] == "wait")}
    assert awaited
    assert all(what == "write" and count > max(awaited.values()) for _, what, _, count in writes)
    assert set(awaited) <= {place for _, _, place, _ in writes}
    assert {stream for stream, *_ in writes}.isdisjoint(stream for stream, *_ in launched)
