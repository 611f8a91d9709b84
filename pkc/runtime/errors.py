"""Errors of the machine (PK820...) and of a launch (PK840...)."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic

LIMIT_VARIABLE = "PKC_WAIT_LIMIT"
"""The environment variable that says how many seconds a wait of a kernel may take."""

# The machine


class NoDriver(Diagnostic):
    """The library of the NVIDIA driver cannot be loaded."""

    code = "PK820"
    title = "no NVIDIA driver can be loaded"
    note = "{reason}"
    help = "`pkc run` without `--target`, and `pkc.simulate` in Python, simulate the ranks without a GPU"
    reason: str


class NoGpu(Diagnostic):
    """The driver finds no GPU."""

    code = "PK821"
    title = "there is no GPU that CUDA can use"
    note = "CUDA_VISIBLE_DEVICES is {visible}"
    help = "`pkc run` without `--target`, and `pkc.simulate` in Python, simulate the ranks without a GPU"
    visible: str


class DriverFailure(Diagnostic):
    """A call of the driver fails for a reason that no other diagnostic names."""

    code = "PK822"
    title = "`{call}` failed: {name}"
    note = "{text}"
    call: str
    name: str
    text: str


class GpuMemory(Diagnostic):
    """A GPU has no room for more of the symmetric heap."""

    code = "PK823"
    title = "GPU {device} has no room for {needed} MiB"
    note = "the symmetric heap has {mapped} MiB on each rank so far; the GPU has {free} of {total} MiB free"
    help = "free arrays with `free()`, end other programs on this GPU, or use smaller dimensions"
    device: int
    needed: int
    mapped: int
    free: int
    total: int


class NoPeerAccess(Diagnostic):
    """Two GPUs cannot reach each other's memory, or not with atomic operations."""

    code = "PK824"
    title = "GPU {first} cannot reach the memory of GPU {second}{how}"
    help = "ranks need GPUs that NVLink joins; `nvidia-smi topo -p2p n` shows which can reach which"
    first: int
    second: int
    how: str


class WrongGpu(Diagnostic):
    """A kernel is loaded on a GPU that its machine code is not for."""

    code = "PK825"
    title = "`{kernel}` is compiled for {target}; GPU {device} has compute capability {capability}"
    help = "compile it for the GPU it runs on"
    kernel: str
    target: str
    device: int
    capability: str


class MissingGpu(Diagnostic):
    """A mesh is to use a GPU that this process does not see."""

    code = "PK826"
    title = "rank {rank} is to use GPU {device}, and this process sees {count}"
    help = "every process must see all GPUs of its host: leave CUDA_VISIBLE_DEVICES the same for all"
    rank: int
    device: int
    count: int


class RanksOnOneGpu(Diagnostic):
    """A mesh of virtual ranks has no rank, or more than can run at the same time."""

    code = "PK827"
    title = "one GPU cannot be {ranks} ranks"
    help = "the kernels of virtual ranks run side by side in at most {most} hardware queues: from 1 to {most} ranks"
    ranks: int
    most: int


class SameGpu(Diagnostic):
    """A mesh of real GPUs names one twice, or none."""

    code = "PK828"
    title = "a mesh needs different GPUs, one for each rank; got {devices}"
    help = "`Mesh.virtual(n)` puts n ranks on one GPU"
    devices: str


class NotExported(Diagnostic):
    """A file is not a kernel that this version of pkc wrote."""

    code = "PK829"
    title = "`{path}` has no kernel to load: {problem}"
    help = "`pkc compile FILE --emit artifact -o {other}` writes one"
    path: str
    problem: str
    other: str


# One process for each GPU


class NotUnderTorchrun(Diagnostic):
    """The environment does not say which rank this process is."""

    code = "PK830"
    title = "{variable} is not set"
    help = "start the program with `torchrun --nproc-per-node=N`, or use `Mesh.single_process()`"
    variable: str


class SeveralHosts(Diagnostic):
    """The ranks are on more than one host."""

    code = "PK831"
    title = "{ranks} ranks are spread over several hosts; this one has {local}"
    help = "pkc joins the GPUs of one host; start `torchrun` with `--nnodes=1`"
    ranks: int
    local: int


class RankMissing(Diagnostic):
    """Another rank does not take part in something that all ranks do together."""

    code = "PK832"
    title = "rank {rank} waited {seconds} s for {missing}"
    note = "rank {rank} {what}"
    help = "every rank must make the same meshes, arrays and launches in the same order"
    rank: int
    seconds: int
    missing: str
    what: str


class RankLeft(Diagnostic):
    """The process of another rank has ended."""

    code = "PK833"
    title = "{who} has ended while rank {rank} waits for it"
    note = "rank {rank} {what}"
    help = "what the other process printed says why"
    rank: int
    who: str
    what: str


class OtherRankFailed(Diagnostic):
    """The symmetric heap cannot grow, because another rank has no room."""

    code = "PK834"
    title = "the symmetric heap cannot grow by {needed} MiB: rank {failed} has no room"
    help = "the output of its process says more"
    needed: int
    failed: int


class UnequalRanks(Diagnostic):
    """Ranks do different things where all must do the same: they differ in the dimensions of a launch, for example."""

    code = "PK835"
    title = "rank 0 and rank {other} do different things"
    note = "rank 0 {first}; rank {other} {second}"
    help = "every rank must make the same meshes, arrays and launches, with equal shapes and in the same order"
    other: int
    first: str
    second: str


class Hang(Diagnostic):
    """Kernels have not ended in time."""

    code = "PK836"
    title = "{ranks} did not finish within {seconds:g} s"
    note = "the kernel still runs, so this process can only end; nothing more can be done on its GPU"
    help = "`pkc check` looks for deadlocks in the protocol; other ranks may have failed, or not have launched"
    ranks: str
    seconds: float


class Stuck(Diagnostic):
    """A kernel has given up waiting: what each of its warp roles waited for."""

    code = "PK837"
    title = "`{kernel}` has given up: {first}"
    label = "waited for here"
    note = "{waits}"
    help = "a wait may take {seconds:g} s ({variable}); close the mesh and make another before the next launch"
    kernel: str
    first: str
    waits: str
    seconds: float
    late: bool
    variable: str = LIMIT_VARIABLE


class GaveUp(Diagnostic):
    """Kernels of other processes have given up waiting, and none of this one has."""

    code = "PK838"
    title = "other ranks have given up waiting"
    note = "{known}"
    help = "what their processes print says for what; close the mesh and make another before the next launch"
    known: str


class LaunchFailed(Diagnostic):
    """A launch has failed on some rank, and others wait for it."""

    code = "PK839"
    title = "a launch has failed on {who}"
    note = "{known}"
    help = "what its process prints says why; close the mesh and make another before the next launch"
    who: str
    known: str


# A launch


class TensorMapRule(Diagnostic):
    """An array cannot be moved by TMA."""

    code = "PK847"
    title = "TMA cannot move `{array}`: {what} is {value}"
    help = "{rule}"
    array: str
    what: str
    value: str
    rule: str


class FirstLaunchInCapture(Diagnostic):
    """The first launch for some dimensions allocates memory, which a graph cannot record."""

    code = "PK850"
    title = "the first launch of `{kernel}` with these dimensions is in a stream capture"
    help = "launch it once before the capture"
    kernel: str


class StreamCount(Diagnostic):
    """Several streams are given, but not one for each rank that this process drives."""

    code = "PK851"
    title = "{found} streams for {ranks} ranks"
    help = "pass one stream for each rank of this process, or a single one for all"
    found: int
    ranks: int


class ImpossibleArray(Diagnostic):
    """The shape, type or layout of an array that is to be made is wrong."""

    code = "PK852"
    title = "`mesh.empty` cannot make this array: {problem}"
    problem: str


class NoTorch(Diagnostic):
    """An array is asked for as a tensor, and torch cannot be imported."""

    code = "PK854"
    title = "an array becomes a tensor only with torch, which cannot be imported"
    note = "{reason}"
    help = "`pkc.runtime.copies` has copies to and from numpy"
    reason: str


class TorchNeeded(Diagnostic):
    """A module is imported that needs torch, and torch cannot be imported."""

    code = "PK869"
    title = "`{module}` needs torch, which cannot be imported"
    note = "{reason}"
    help = "`pip install torch`; kernels run on arrays of `pkc.mesh()` without it"
    module: str
    reason: str


class OtherRank(Diagnostic):
    """The elements of an array on a rank are asked for in another process."""

    code = "PK855"
    title = "rank {rank} is not one of this process, which drives {local}"
    help = "with one process for each GPU, each sees its local shard; `pkc.mesh().local[0].rank` is its rank"
    rank: int
    local: str


class CaptureElsewhere(Diagnostic):
    """A stream capture of several ranks is not on the GPU of the first one."""

    code = "PK856"
    title = "the stream that is being captured is on GPU {found}, and rank {rank} uses GPU {device}"
    help = "capture with GPU {device} as the current one: `with torch.cuda.device({device}):`"
    found: int
    rank: int
    device: int


class ClosedMesh(Diagnostic):
    """A mesh, an array of it, or a kernel that was loaded there is used after the mesh was closed."""

    code = "PK857"
    title = "this mesh was closed"
    help = "`pkc.mesh()` gives a new one, on which arrays can be made"


class NoWaitLimit(Diagnostic):
    """The environment limits the waits of kernels by something else than a number of seconds."""

    code = "PK868"
    title = "{variable} is `{value}`, which is no number of seconds greater than 0"
    help = "write seconds, as in {variable}=600, or leave it out"
    value: str
    variable: str = LIMIT_VARIABLE


class TooFewQueues(Diagnostic):
    """Copy engines would wait in one hardware queue behind each other, or behind a kernel that waits for them."""

    code = "PK859"
    title = "copy engines need {needed} hardware queues on a GPU; there are {queues}"
    note = "it has {ranks} ranks, each with {streams} streams that must run while the others wait"
    help = "set CUDA_DEVICE_MAX_CONNECTIONS=32 before the program starts, or use fewer virtual ranks"
    ranks: int
    streams: int
    needed: int
    queues: int


class FreedArray(Diagnostic):
    """An array is used, or freed, after it was freed."""

    code = "PK866"
    title = "this {array} was freed"
    help = "its memory may be that of another array: make a new one with `mesh.empty`"
    array: str
