"""Tables of what was measured, in Markdown that also reads well on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pkc.bench.suite import fitted

DERIVED = "pkc_derived"
"""pkc, with the protocol that it derives, beside one that is written out."""
PEERS = {
    DERIVED: "pkc, derived",
    "cublas": "cuBLAS",
    "cublas_nccl": "cuBLAS + NCCL",
    "cublas_one_shot": "cuBLAS + torch one-shot",
    "cublas_two_shot": "cuBLAS + torch two-shot",
    "cublas_torch": "cuBLAS + torch",
    "scaled_mm": "cuBLAS",
    "scaled_mm_nccl": "cuBLAS + NCCL",
    "torch_fused": "torch fused",
    "torch_symmetric": "torch fused, symmetric A",
    "torch_native": "torch native, symmetric A",
    "cudnn": "cuDNN",
    "flash": "flash",
    "nccl": "NCCL",
    "nccl_transposed": "NCCL with a transpose",
    "torch_one_shot": "torch one-shot",
    "torch_two_shot": "torch two-shot",
    "torch_reduce_scatter": "torch reduce-scatter",
    "all_gather_cudnn": "all-gather + cuDNN",
    "all_gather_flash": "all-gather + flash",
    "all_to_all_cudnn": "all-to-all + cuDNN",
    "torch_grouped": "torch grouped GEMM",
    "nccl_grouped": "NCCL all-to-all + torch grouped GEMM",
    "nccl_index_add": "NCCL all-to-all + weighted index_add",
}
WRITTEN = "pkc_written"
"""pkc, with the time to write its operands into the symmetric heap."""
PUBLISHED = "ParallelKittens"
ALONE = "_alone"
"""The suffix of the names of contestants that do the work alone."""
VARIANT = "pkc "
"""The prefix of the names of other schedules than the default one."""
NOTHING = "-"
"""What a cell says of which nothing was measured."""

LEGEND = """\
A size is M x N x K, M x N, or B x H x S x D, of all GPUs together, or one number if they are the same. Times are in ms:
medians of the slowest rank, all of one run except the ParallelKittens figures, which were measured before on the same
machine. (x) is how many times as long as pkc it takes. The limit is the longer of the work of a GPU alone, by cuBLAS or
cuDNN, of several GEMMs one after the other, and the bytes over the measured rate of the link; for experts, since their
bytes of memory are counted, the longest of FLOPs, memory and link, each at its measured rate; (share) is the limit over
pkc's time. NVLink multicast is off everywhere."""

FITTED, UNHELD, OLDER = "*", "~", "†"
_MARKS = {
    FITTED: "rates of the cost model, by which schedules are chosen, were fitted to times at this size.",
    UNHELD: "some of the times include what the host needs to enqueue, which is longer than the stream can be held.",
    OLDER: """\
this file is from before it was verified that the stream is held until the host has enqueued all, and results checked
after timing too; it has no column for pkc with the time to write operands into the symmetric heap, for torch's
operators on a symmetric A, or for its native ones, and rows that do not divide failed in torch's operators.""",
}


def legend(records: Sequence[Mapping[str, Any]]) -> str:
    """What stands above the tables of these records: what figures are, and the marks that there are."""
    found = groups(records)
    cells = {cell[-1] for _, results in found for row in _main(results, _notes(results)) for cell in row if cell}
    marks = cells | {OLDER for record, _ in found if is_older(record)}
    return "\n\n".join([LEGEND, *(f"{mark}: {said}" for mark, said in _MARKS.items() if mark in marks)])


def is_older(record: Mapping[str, Any]) -> bool:
    """Whether a record does not say that the hold of the stream was verified."""
    return "hold" not in record.get("method", {})


def table(records: Sequence[Mapping[str, Any]]) -> str:
    """A heading and a table for each kernel and number of ranks, and one for the schedules if several were measured.

    Of two results for the same sizes the one with the later time counts.
    """
    return "\n\n".join(text for group in groups(records) for text in _group(*group))


def groups(records: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], list[Mapping[str, Any]]]]:
    """The results of each kernel and number of ranks by size, with the record that the newest of them is from."""
    newest: dict[tuple[str, str, int], Mapping[str, Any]] = {}
    found: dict[tuple[str, str, int], dict[tuple[int, ...], Mapping[str, Any]]] = {}
    for record in sorted(records, key=lambda record: record["time"]):
        for result in record["results"]:
            group = (result["kernel"], record["machine"]["gpu"], result["ranks"])
            newest[group] = record
            found.setdefault(group, {})[_sizes(result)] = result
    return [(newest[group], [results[size] for size in sorted(results)]) for group, results in sorted(found.items())]


def _group(record: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    notes = _notes(results)
    yield f"**{results[0]['title']}** ({heading(record, results[0]['ranks'])}{OLDER if is_older(record) else ''})"
    yield _grid(_filled(_main(results, notes)))
    variants = _names(results, _is_variant)
    if variants:
        rows = [[size(result), *(_time(result, name, notes) for name in ("pkc", *variants))] for result in results]
        measured = [row for row in rows if any(cell != NOTHING for cell in row[2:])]
        yield _grid([[dims(results), "pkc", *(name.removeprefix(VARIANT) for name in variants)], *measured])
    if notes:
        yield "\\\n".join(f"[{number}] {error}" for error, number in notes.items())


def _main(results: Sequence[Mapping[str, Any]], notes: Mapping[str, int]) -> list[list[str]]:
    return [_columns(results), *(_row(result, results, notes) for result in results)]


def _notes(results: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Why contestants failed, numbered."""
    errors = (_error(found) for result in results for found in result["contestants"].values() if "error" in found)
    return {error: number for number, error in enumerate(dict.fromkeys(errors), 1)}


def _error(contestant: Mapping[str, Any]) -> str:
    """Why it failed, in a line."""
    return " ".join(contestant["error"].split())


def _filled(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """A table without the columns that say nothing."""
    kept = [place for place in range(len(rows[0])) if any(row[place] != NOTHING for row in rows[1:])]
    return [[row[place] for place in kept] for row in rows]


def heading(record: Mapping[str, Any], ranks: int) -> str:
    """Where and when a record was made."""
    machine, versions = record["machine"], record["versions"]
    software = f"driver {machine.get('driver', '?')}, torch {versions['torch']}, NCCL {versions['nccl']}"
    return f"{ranks} x {machine['gpu']}, {software}, commit {record['commit'][:12]}, {record['time'][:10]}"


def size(result: Mapping[str, Any]) -> str:
    """`8192`, or `16 x 8192 x 8192` if M, N and K are not all the same; `4 x 16 x 8192 x 128 causal zigzag`;
    `8192 x 8192` of a matrix that is only exchanged."""
    if "tokens" in result:
        return " x ".join(str(result[dim]) for dim in _EXPERTS)
    if "m" not in result:
        sizes = " x ".join(str(result[dim]) for dim in _ATTENTION)
        return sizes + " causal" * result["causal"] + " zigzag" * result.get("zigzag", False)
    sizes = _sizes(result)
    return str(sizes[0]) if "k" in result and len(set(sizes)) == 1 else " x ".join(map(str, sizes))


_MATMUL, _ATTENTION = "mnk", "bhsd"
_EXPERTS = ("tokens", "experts", "top", "hidden", "inner")


def _sizes(result: Mapping[str, Any]) -> tuple[int, ...]:
    """By which results are told apart and ordered."""
    if "m" in result:
        return tuple(result[dim] for dim in _MATMUL if dim in result)
    if "tokens" in result:
        return tuple(result[dim] for dim in _EXPERTS)
    return (result["causal"] + result.get("zigzag", False), *(result[dim] for dim in ("d", "s", "b", "h")))


def dims(results: Sequence[Mapping[str, Any]]) -> str:
    if "tokens" in results[0]:
        return " x ".join(_EXPERTS)
    names = [dim for dim in (_MATMUL if "m" in results[0] else _ATTENTION) if dim in results[0]]
    return " x ".join(names).upper().replace("X", "x")


def milliseconds(result: Mapping[str, Any], name: str) -> float | None:
    """The median of a contestant, if it has one."""
    return result["contestants"].get(name, {}).get("median_ms")


def _columns(results: Sequence[Mapping[str, Any]]) -> list[str]:
    peers = [PEERS[name] for name in _names(results, _is_peer)]
    published = [PUBLISHED] * _published(results)
    names = [*(PEERS[name.removesuffix(ALONE)] for name in _alone(results)), "pkc"]
    work = "GEMM" if "m" in results[0] else "grouped GEMM" if "tokens" in results[0] else "attention"
    alone = [f"{work} alone: {names[0]}", *names[1:]] if _alone(results) else []
    return [
        dims(results),
        "pkc",
        "operands written too",
        "TFLOP/s" if results[0]["flops"] else "GB/s",
        "limit (share)",
        *(f"{name} (x)" for name in (*peers, *published)),
        *alone,
    ]


def _row(result: Mapping[str, Any], results: Sequence[Mapping[str, Any]], notes: Mapping[str, int]) -> list[str]:
    ours = milliseconds(result, "pkc")
    limit = result["limit_ms"]
    work = result["flops"] / 1e9 or result["link_bytes"] / 1e6
    row = [size(result) + f" {FITTED}" * _is_fitted(result)]
    row += [_time(result, name, notes) for name in ("pkc", WRITTEN)]
    row.append(NOTHING if ours is None else f"{work / ours:.0f}")
    row.append(_ratio(limit, limit and ours and limit / ours))
    for name in _names(results, _is_peer):
        row.append(_versus(milliseconds(result, name), ours, _time(result, name, notes)))
    if _published(results):
        row.append(_versus(result["published_ms"], ours, NOTHING))
    if _alone(results):
        row += [_time(result, name, notes) for name in (*_alone(results), "pkc_alone")]
    return row


def _versus(other: float | None, ours: float | None, otherwise: str) -> str:
    if other is None:
        return otherwise
    return _ratio(other, ours and other / ours) + UNHELD * otherwise.endswith(UNHELD)


def _ratio(value: float | None, ratio: float | None) -> str:
    if value is None:
        return NOTHING
    return _number(value) if ratio is None else f"{_number(value)} ({ratio:.2f})"


def _time(result: Mapping[str, Any], name: str, notes: Mapping[str, int]) -> str:
    """Its median; why there is none is a note."""
    contestant = result["contestants"].get(name)
    if contestant is None:
        return NOTHING
    if "error" in contestant:
        return f"{'refused' if contestant.get('refused') else 'failed'} [{notes[_error(contestant)]}]"
    return _number(contestant["median_ms"]) + UNHELD * bool(contestant.get("unheld"))


def _number(value: float) -> str:
    """Three digits at least."""
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def _is_fitted(result: Mapping[str, Any]) -> bool:
    """Whether rates were fitted to times of this kernel at this size, causal or not, on as many GPUs."""
    if "m" not in result and "b" not in result:
        return False
    names = [dim for dim in (_MATMUL if "m" in result else _ATTENTION) if dim in result]
    known = fitted().get(result["kernel"], {}).get(str(result["ranks"]), ())
    return "x".join(str(result[dim]) for dim in names) in known


def _published(results: Sequence[Mapping[str, Any]]) -> bool:
    return any(result["published_ms"] is not None for result in results)


def _alone(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """The peers that did the work alone."""
    return _names(results, lambda name: name.endswith(ALONE) and _is_peer(name.removesuffix(ALONE)))


def _is_peer(name: str) -> bool:
    return name in PEERS


def _is_variant(name: str) -> bool:
    return name.startswith(VARIANT)


def _names(results: Sequence[Mapping[str, Any]], wanted: Callable[[str], bool]) -> list[str]:
    """The contestants of some kind, in the order in which they were measured."""
    return list(dict.fromkeys(name for result in results for name in result["contestants"] if wanted(name)))


def _grid(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "| " + " | ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|")
    return "\n".join(lines)
