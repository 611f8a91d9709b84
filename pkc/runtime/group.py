"""The processes of a job on one host, one for each GPU: they agree, and pass file descriptors.

Rank 0 listens on a Unix socket in the abstract namespace, whose name is made from what `torchrun` tells every process
of the job; it vanishes with the process. The others connect once and stay connected. Everything goes through rank 0:
all ranks send to it, and it sends what it got to all. A program that repeats a launch exchanges nothing.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pkc.diagnostics import PkcError
from pkc.location import NOWHERE
from pkc.runtime.errors import NotUnderTorchrun, RankLeft, RankMissing, SeveralHosts, UnequalRanks

TIMEOUT = 120.0
"""Seconds that a rank waits for the others."""

_HEAD = struct.Struct("<I")
_MOST_DESCRIPTORS = 16
_POLL = 0.01
_LOOK = 0.2
_Item: TypeAlias = tuple[bytes, list[int]]
_joined: dict[str, int] = {}
"""How many groups this process has joined in each job: all its processes join theirs in the same order."""


@dataclass(frozen=True)
class Job:
    """What `torchrun` tells a process."""

    rank: int
    ranks: int
    local_rank: int
    name: str


def job(environment: Mapping[str, str] = os.environ) -> Job:
    """The place of this process in its job. Raises `PkcError`."""

    def number(variable: str) -> int:
        text = environment.get(variable, "")
        if not text.isdecimal():
            raise PkcError(NotUnderTorchrun(NOWHERE, variable))
        return int(text)

    ranks, local = number("WORLD_SIZE"), number("LOCAL_WORLD_SIZE")
    if ranks != local:
        raise PkcError(SeveralHosts(NOWHERE, ranks, local))
    given = [environment.get(f"TORCHELASTIC_{key}", "") for key in ("RUN_ID", "RESTART_COUNT")]
    port = number("MASTER_PORT")
    return Job(number("RANK"), ranks, number("LOCAL_RANK"), "-".join(("pkc", str(os.getuid()), str(port), *given)))


class Group:
    """All processes of a job, connected; `rank` is this one's."""

    def __init__(self, job: Job, timeout: float = TIMEOUT) -> None:
        self.rank, self.ranks = job.rank, job.ranks
        self.interrupt: Callable[[], None] = lambda: None
        """Called while this process waits for others; it may raise."""
        self.waits_until = ""
        """What all others must do before this process goes on: "launches ..."; empty if it waits for none."""
        self._timeout = timeout
        number = _joined.get(job.name, 0)
        _joined[job.name] = number + 1
        name = f"\0{job.name}-{number}"
        self._peers = self._listen(name) if self.rank == 0 else {0: self._connect(name)}

    def agree(self, what: str, descriptors: Sequence[int] = ()) -> list[list[int]]:
        """Wait for all ranks, which must do the same; `what` says what: "launches ...", "makes ...".

        Returns the file descriptors of each rank: copies that the receiver must close. Raises `PkcError`.
        """
        item = what.encode(), list(descriptors)
        self.waits_until = what
        try:
            given = self._gather(item) if self.rank == 0 else self._send_and_receive(item)
        finally:
            self.waits_until = ""
        texts = [text.decode() for text, _ in given]
        different = next((rank for rank, text in enumerate(texts) if text != texts[0]), None)
        if different is not None:
            for rank, (_, found) in enumerate(given):
                if rank != self.rank:
                    close_all(found)
            raise PkcError(UnequalRanks(NOWHERE, different, texts[0], texts[different]))
        return [found for _, found in given]

    def _gather(self, local: _Item) -> list[_Item]:
        what = local[0].decode()
        given = [local, *(self._receive(rank, what) for rank in range(1, self.ranks))]
        for target in range(1, self.ranks):
            for rank, item in enumerate(given):
                if rank != target:
                    self._send(target, *item, what)
        return given

    def _send_and_receive(self, local: _Item) -> list[_Item]:
        what = local[0].decode()
        self._send(0, *local, what)
        return [local if rank == self.rank else self._receive(0, what) for rank in range(self.ranks)]

    def left(self) -> list[int]:
        """The ranks that this process is connected to and whose processes have ended, without waiting for any."""
        return [rank for rank, peer in self._peers.items() if _has_ended(peer)]

    def close(self) -> None:
        for peer in self._peers.values():
            peer.close()

    def _listen(self, name: str) -> dict[int, socket.socket]:
        peers: dict[int, socket.socket] = {}
        deadline = time.monotonic() + self._timeout
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(name)
            listener.listen(self.ranks)
            while len(peers) < self.ranks - 1:
                listener.settimeout(max(deadline - time.monotonic(), _POLL))
                try:
                    peer, _ = listener.accept()
                    peer.settimeout(self._timeout)
                    peers[_HEAD.unpack(_exactly(peer, _HEAD.size))[0]] = peer
                except TimeoutError:
                    absent = [rank for rank in range(1, self.ranks) if rank not in peers]
                    raise self._missing(absent, "makes a mesh") from None
        return peers

    def _connect(self, name: str) -> socket.socket:
        deadline = time.monotonic() + self._timeout
        while True:
            peer = socket.socket(socket.AF_UNIX)
            try:
                peer.connect(name)
            except OSError:
                # Rank 0 does not listen yet.
                peer.close()
                if time.monotonic() > deadline:
                    raise self._missing([0], "makes a mesh") from None
                time.sleep(_POLL)
                continue
            # Rank 0 waits for the ranks one after the other, and some may be late.
            peer.settimeout(2 * self._timeout)
            peer.sendall(_HEAD.pack(self.rank))
            return peer

    def _send(self, rank: int, content: bytes, descriptors: Sequence[int], what: str) -> None:
        peer = self._peers[rank]
        with self._named(rank, what):
            socket.send_fds(peer, [_HEAD.pack(len(content))], list(descriptors))
            peer.sendall(content)

    def _receive(self, rank: int, what: str) -> tuple[bytes, list[int]]:
        peer = self._peers[rank]
        with self._named(rank, what):
            self._await(peer)
            head, descriptors, _, _ = socket.recv_fds(peer, _HEAD.size, _MOST_DESCRIPTORS)
            if not head:
                raise ConnectionResetError
            (length,) = _HEAD.unpack(head + _exactly(peer, _HEAD.size - len(head)))
            return _exactly(peer, length), descriptors

    def _await(self, peer: socket.socket) -> None:
        """Wait until there is something from a peer."""
        deadline = time.monotonic() + (peer.gettimeout() or self._timeout)
        while not select.select([peer], [], [], _LOOK)[0]:
            self.interrupt()
            if time.monotonic() > deadline:
                raise TimeoutError

    @contextlib.contextmanager
    def _named(self, rank: int, what: str) -> Generator[None]:
        try:
            yield
        except TimeoutError:
            raise self._missing([rank], what) from None
        except OSError:
            self.interrupt()
            raise PkcError(RankLeft(NOWHERE, self.rank, f"rank {rank}", what)) from None

    def _missing(self, ranks: Sequence[int], what: str) -> PkcError:
        # Rank 0 answers when all ranks have sent, so it need not be the one that is missing.
        names = ", ".join(f"rank {rank}" for rank in ranks) if self.rank == 0 else "the others"
        return PkcError(RankMissing(NOWHERE, self.rank, round(self._timeout), names, what))


def _has_ended(peer: socket.socket) -> bool:
    # Nothing is received: another thread may be about to.
    poll = select.poll()
    try:
        poll.register(peer, select.POLLRDHUP)
    except ValueError:
        return True  # this process has closed it
    return bool(poll.poll(0))


def close_all(descriptors: Sequence[int]) -> None:
    """Close file descriptors."""
    for descriptor in descriptors:
        os.close(descriptor)


def _exactly(peer: socket.socket, count: int) -> bytes:
    received: list[bytes] = []
    while count:
        some = peer.recv(count)
        if not some:
            raise ConnectionResetError
        received.append(some)
        count -= len(some)
    return b"".join(received)
