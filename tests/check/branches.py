"""Protocols whose branches integers of the caller decide: flags, counts and numbers, compared with numbers and sizes.

In a wrong one both sides of a protocol ask something that differs for a few values alone.
"""

from __future__ import annotations

from tests.check.protocols import UNORDERED, Right, Wrong

WRONG: dict[str, Wrong] = {}
RIGHT: dict[str, Right] = {}

_NEXT = """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), {given}, s: signal[4]):
    with role(communicator):
        {send}
    with role(consumer):
        {receive}
"""
_COUNTS = ("PK481", "PK482", "PK483", "PK701")
_STORE = "for m in tasks(blocks(M, 8)):\n{indent}    store(G.at((rank + 1) % ranks)[m], X[m])"
_READ = "for m in tasks(blocks(M, 8)):\n{indent}    Y[m] = G[m]"
_SIGNAL = "signal(s.at((rank + 1) % ranks)[0], 1)"


def _next(given: str, send: str, receive: str) -> str:
    """Each rank sends X to the one behind it, on the way of `send` and `receive`."""
    parts = {"send": send, "receive": receive}
    for name, text in parts.items():
        lines = text.strip("\n").split("\n")
        for number, line in enumerate(lines):
            indent = " " * (8 + len(line) - len(line.lstrip()))
            line = line.replace("STORE", _STORE.format(indent=indent)).replace("READ", _READ.format(indent=indent))
            lines[number] = line.replace("SIGNAL", _SIGNAL)
        parts[name] = ("\n" + " " * 8).join(lines)
    return _NEXT.format(given=given, **parts)


_ALL = (1, 2, 3, 5)

WRONG["a flag of its own decides who signals, all wait"] = Wrong(
    _COUNTS,
    2,
    _next("f: i32[1]", "STORE\nif f[0] > 2:\n    SIGNAL", "wait(s[0], 1)\nREAD"),
)
RIGHT["a flag that all ranks share decides who signals and who waits"] = Right(
    _ALL,
    _next(
        "f: i32[1].replicate()",
        "if f[0] > 2:\n    STORE\n    SIGNAL",
        "if f[0] > 2:\n    wait(s[0], 1)\n    READ\nelse:\n    for m in tasks(blocks(M, 8)):\n        Y[m] = X[m]",
    ),
)
WRONG["signals above forty, waits from forty on"] = Wrong(
    _COUNTS,
    4,
    _next(
        "n: i32",
        "STORE\nif n > 40:\n    SIGNAL",
        "if n >= 40:\n    wait(s[0], 1)\nfor m in tasks(blocks(M, 8)):\n    Y[m] = X[m]",
    ),
)
WRONG["read whatever the flag of the sender says"] = Wrong(
    (*UNORDERED, "PK482", "PK483"),
    2,
    _next("f: i32[E]", "if f[1] == 70:\n    STORE\nSIGNAL", "wait(s[0], 1)\nREAD"),
)
RIGHT["read if the flag of the sender says so, from a table of all"] = Right(
    _ALL,
    _next(
        "f: i32[ranks].replicate()",
        "if f[rank] == 70:\n    STORE\n    SIGNAL",
        "if f[(rank + ranks - 1) % ranks] == 70:\n    wait(s[0], 1)\n    READ\n"
        "else:\n    for m in tasks(blocks(M, 8)):\n        Y[m] = X[m]",
    ),
)
WRONG["at most three signals, all awaited"] = Wrong(
    _COUNTS,
    3,
    _next("n: i32", "STORE\nfor i in range(min(n, 3)):\n    SIGNAL", "wait(s[0], n)\nREAD"),
)
RIGHT["at most three signals, as many awaited"] = Right(
    _ALL,
    _next(
        "n: i32",
        "STORE\nSIGNAL\nfor i in range(min(n, 3)):\n    SIGNAL",
        "wait(s[0], 1 + min(max(n, 0), 3))\nREAD",
    ),
)
WRONG["nothing to send is awaited all the same"] = Wrong(
    _COUNTS,
    2,
    _next(
        "n: i32[E].replicate()",
        "for i in range(n[0]):\n    STORE\n    SIGNAL",
        "wait(s[0], max(1, n[0]))\nfor m in tasks(blocks(M, 8)):\n    Y[m] = X[m]",
    ),
)
WRONG["as long as the array is not as good as longer"] = Wrong(
    _COUNTS,
    2,
    _next(
        "n: i32",
        "STORE\nSIGNAL\nif n * 2 > M:\n    SIGNAL",
        "wait(s[0], 1)\nif n * 2 >= M - 1:\n    wait(s[0], 2)\nREAD",
    ),
)
WRONG["above sixty-four, or sixteens above three"] = Wrong(
    (*_COUNTS, *UNORDERED),
    4,
    _next(
        "n: i32",
        "STORE\nif n > 64:\n    SIGNAL",
        "if n // 16 > 3:\n    wait(s[0], 1)\nfor m in tasks(blocks(M, 8)):\n    Y[m] = X[m]",
    ),
)
RIGHT["sixteens above three, or from sixty-four on"] = Right(
    _ALL,
    _next(
        "n: i32",
        "if n // 16 > 3:\n    STORE\n    SIGNAL",
        "if n >= 64:\n    wait(s[0], 1)\n    READ\nelse:\n    for m in tasks(blocks(M, 8)):\n        Y[m] = X[m]",
    ),
)
WRONG["two flags send, one of them waits"] = Wrong(
    _COUNTS,
    6,
    _next(
        "a: i32, b: i32",
        "STORE\nif a > 20 and b > 30:\n    SIGNAL",
        "if a > 20:\n    wait(s[0], 1)\nfor m in tasks(blocks(M, 8)):\n    Y[m] = X[m]",
    ),
)
_ROOT = """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), root: i32, s: signal[1]):
    with role(communicator):
        if rank == root:
            for r in ring():
                for m in tasks(blocks(M, 8)):
                    store(G.at(r)[m], X[m])
                signal(s.at(r)[0], 1)
    with role(consumer):
        {wait}
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
"""
WRONG["those before the root do not wait for it"] = Wrong(
    (*UNORDERED, "PK483", "PK482"), 3, _ROOT.format(wait="if rank >= root:\n            wait(s[0], 1)")
)
RIGHT["all wait for the root"] = Right(_ALL, _ROOT.format(wait="wait(s[0], 1)"))
WRONG["the fortieth of so many rounds signals"] = Wrong(
    _COUNTS,
    2,
    _next(
        "n: i32[E].replicate()", "STORE\nfor i in range(n[0]):\n    if i == 39:\n        SIGNAL", "wait(s[0], 1)\nREAD"
    ),
)
WRONG["a rest of seven is a whole eight"] = Wrong(
    _COUNTS,
    4,
    _next(
        "n: i32[1].replicate()",
        "STORE\nif n[0] % 512 == 0:\n    SIGNAL",
        "if n[0] % 512 == 0 or n[0] % 512 > 510:\n    wait(s[0], 1)\nfor m in tasks(blocks(M, 8)):\n    Y[m] = X[m]",
    ),
)
WRONG["a row that may be none is awaited"] = Wrong(
    _COUNTS,
    3,
    """
kernel k(X: f32[4, M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), t: i32[1].replicate(), s: signal[1]):
    with role(communicator):
        if t[0] >= 0:
            for m in tasks(blocks(M, 8)):
                store(G.at((rank + 1) % ranks)[m], X[t[0], m])
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
""",
)
RIGHT["a row of a table, or none"] = Right(
    _ALL,
    """
kernel k(X: f32[3, M], Y: f32[E, M], t: i32[E]):
    with role(consumer):
        for e, m in tasks(E, blocks(M, 8)):
            if t[e] >= 0 and t[e] < 3:
                Y[e, m] = X[t[e], m]
            else:
                Y[e, m] = X[0, m] * 2.0
""",
)
_KEPT = """
kernel k(X: f32[6, 64].symmetric(), kept: i32[6].replicate(), Y: f32[6, 64], G: f32[6, 64].symmetric().scratch(),
         s: signal[1]):
    with role(communicator):
        n = 0
        for t in range(6):
            if kept[t] > 0:
                store(G.at((rank + 1) % ranks)[t, :], X[t, :])
                n = n + 1
        {announced}
    with role(consumer):
        {awaited}
        for t in range(6):
            if kept[t] {asked} 0:
                Y[t, :] = G[t, :]
            else:
                Y[t, :] = zeros(f32, 64)
"""
_FLAG = "signal(s.at((rank + 1) % ranks)[0], 1)"
RIGHT["rows that are kept, all announced at once"] = Right(
    _ALL, _KEPT.format(announced=_FLAG, awaited="wait(s[0], 1)", asked=">")
)
WRONG["nothing is announced if no row is kept"] = Wrong(
    ("PK481",),
    2,
    _KEPT.format(announced=f"if n > 0:\n            {_FLAG}", awaited="wait(s[0], 1)", asked=">"),
)
WRONG["a row below zero is kept by one side"] = Wrong(
    ("PK705", "PK730"), 2, _KEPT.format(announced=_FLAG, awaited="wait(s[0], 1)", asked="!=")
)
_PACKED = """
kernel k(X: f32[5, 64].symmetric(), to: i32[5].replicate(), Y: f32[2, 64], G: f32[2, {room}, 64].symmetric().scratch(),
         s: signal[1]):
    with role(communicator):
        for e in range(2):
            n = 0
            for t in range(5):
                if to[t] == e:
                    store(G.at((rank + 1) % ranks)[e, n, :], X[t, :])
                    n = n + 1
        signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], 1)
        for e in range(2):
            n = 0
            y = zeros(f32, 64)
            for t in range(5):
                if to[t] == e:
                    y = y + G[e, n, :]
                    n = n + 1
            Y[e, :] = y
"""
RIGHT["room for all rows at one place"] = Right((2, 3), _PACKED.format(room=5))
WRONG["room for all rows but one at one place"] = Wrong(("PK706",), 2, _PACKED.format(room=4))
_OF_ROWS = """
kernel k(X: f32[64].symmetric(), n: i32[ranks, 5].replicate(), Y: f32[ranks, 64], G: f32[ranks,
         64].symmetric().scratch(), s: signal[ranks]):
    with role(communicator):
        total = 0
        for e in range(5):
            total = total + min(n[rank, e], 4)
        for r in ring():
            store(G.at(r)[rank, :], X[:])
        {announced}
    with role(consumer):
        for r in ring():
            wait(s[r], 1)
            Y[r, :] = G[r, :]
"""
RIGHT["each rank announces, whatever its counts are"] = Right(
    (2, 3), _OF_ROWS.format(announced="signal_all(s[rank], 1)")
)
WRONG["a rank whose counts are all zero does not announce"] = Wrong(
    ("PK481",), 2, _OF_ROWS.format(announced="if total > 0:\n            signal_all(s[rank], 1)")
)
RIGHT["a row of ranks that memory names, up to a number"] = Right(
    (2, 3),
    """
kernel k(X: f32[ranks, 64].symmetric(), n: i32[1].replicate(), Y: f32[64], G: f32[64].symmetric().scratch(),
         s: signal[1]):
    with role(communicator):
        store(G.at((rank + 1) % ranks)[:], X[min(n[0], 12), :])
        signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], 1)
        Y[:] = G[:]
""",
)
