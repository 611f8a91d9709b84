"""`pkc compile`: what is made of a program, from the cache if pkc made it before.

At its top this module imports only what an answer from the cache needs.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pkc import cache, console
from pkc.diagnostics import PkcError
from pkc.frontend.imports import imported_texts
from pkc.targets import BUILT_IN
from pkc.targets.arch import hardware_queues

if TYPE_CHECKING:
    from pkc.frontend import tree

_MOST_BYTES = 1 << 20
"""Longer programs are refused."""


@dataclass(frozen=True)
class Request:
    """The arguments of the command, as they were given."""

    file: str
    emit: str
    kernel: str | None
    constants: Sequence[str]
    schedule: Sequence[str]
    settings: Sequence[str]
    ranks: int
    dump: str | None
    target: str
    explain: bool
    no_import: bool = False


def output(request: Request) -> str | bytes:
    """What `--emit` asks for. Warnings and, if asked, explanations go to stderr. Raises `PkcError`."""
    sources = _sources(request)
    if sources is None:
        return _compile(request)[1]
    key = _key(request, sources)
    kept = cache.get(key)
    if kept is not None:
        said, content = _unpack(kept)
        for text in said:
            console.say(text)
        return content
    with console.recording() as said:
        program, content = _compile(request)
    # Not if the program, a file that it imports, or pkc were edited meanwhile.
    edited = program.span.source.text != _text(sources[0]) or _sources(request) != sources
    if not edited and _key(request, sources) == key:
        cache.put(key, _pack(said, content))
    return content


# The cache


def _sources(request: Request) -> list[bytes] | None:
    """All that the program says, its own text and then each file that it imports from, with its path; `None` if the
    output may depend on more than that, or if a file cannot be read.

    A Python file may import anything, `--dump` is asked for its files, and the key has no sources of targets that are
    not built in.
    """
    path = Path(request.file)
    if path.suffix != ".pk" or request.dump is not None or request.target not in BUILT_IN:
        return None
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return None
        data = path.read_bytes()
    except (OSError, ValueError):
        return None
    text = _text(data)
    imported = None if text is None else imported_texts(path, text)
    if imported is None:
        return None
    return [data, *(part for name, content in sorted(imported.items()) for part in (name.encode(), content))]


def _text(source: bytes) -> str | None:
    try:
        return source.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _key(request: Request, sources: list[bytes]) -> str:
    arguments = json.dumps(asdict(request))
    return cache.key("output 1", cache.compiler(), _nvrtc(request), str(hardware_queues()), arguments, *sources)


def _nvrtc(request: Request) -> str:
    """The version of NVRTC, if it takes part."""
    if request.emit not in ("ptx", "cubin", "artifact"):
        return ""
    from pkc.codegen.nvrtc import release

    try:
        return release()
    except PkcError:
        return "none"  # as the compiler will say, if the program is right


def _pack(said: list[console.Said], content: str | bytes) -> bytes:
    """A header in JSON, then the content."""
    text = isinstance(content, str)
    header = json.dumps({"said": said, "text": text}).encode()
    return struct.pack("<Q", len(header)) + header + (content.encode() if isinstance(content, str) else content)


def _unpack(data: bytes) -> tuple[list[console.Said], str | bytes]:
    (length,) = struct.unpack_from("<Q", data)
    header: dict[str, Any] = json.loads(data[8 : 8 + length])
    content = data[8 + length :]
    return [(plain, coloured) for plain, coloured in header["said"]], content.decode() if header["text"] else content


# The compiler


def _compile(request: Request) -> tuple[tree.Program, str | bytes]:
    from pkc.cli.build import BELOW_IR, emit
    from pkc.cli.program import Chosen, autoschedule_for, compile_far, compile_for, constants_of, schedule_options
    from pkc.cli.settings import numbers
    from pkc.driver.autoschedule import as_compiled
    from pkc.driver.building import lengths as lengths_of_program
    from pkc.driver.compiler import is_of_ranks
    from pkc.driver.programs import find_kernel, load_program
    from pkc.passes.run import print_ir

    file, kernel, target = request.file, request.kernel, request.target
    values = numbers("--const", request.constants, example="D=128")
    sizes = numbers("--set", request.settings, example="M=1024,N=512")
    below = request.emit in BELOW_IR
    program = load_program(file, imports=not request.no_import)
    options = schedule_options(request.schedule)
    chosen = find_kernel(program, file, kernel) if kernel is not None or below or sizes else None
    found = asked = None
    if sizes and chosen is not None:
        values |= {name: sizes.pop(name) for name in constants_of(chosen) if name in sizes}
        asked = Chosen(program, chosen, request.ranks, values, sizes, dict(options))
        found = autoschedule_for(asked, target)
        options |= found.schedule
    level = "machine" if below else request.emit
    divisors = None
    if sizes and chosen is not None:
        # What a launch with these sizes runs: for others it may be compiled anew.
        lengths = lengths_of_program(program, chosen.name, values, options)
        if request.emit == "artifact":  # which is launched with others, too: of blocks nothing checks where they begin
            lengths = replace(lengths, begins=())
        dims = {name: size for name, size in sizes.items() if isinstance(size, int)}
        divisors = lengths.divisors(dims, request.ranks)
    compiled = compile_for(
        program, kernel, values, options, level=level, target=target, dump=request.dump, divisors=divisors
    )
    if request.explain:
        planned = compiled if level == "machine" else compile_far(program, kernel, values, options, target, divisors)
        if found is not None and asked is not None:
            given = asked.schedule
            found = as_compiled(
                found,
                planned.schedule,
                lambda more: autoschedule_for(replace(asked, schedule={**given, **more}), target),
            )
        alone = found is not None and request.ranks == 1
        decided = [one for one in planned.explanations if not (alone and is_of_ranks(one))]
        console.explanations([*([] if found is None else [found]), *decided])
        left = [one for one in planned.remarks if not (alone and one.of_ranks)]
        console.remarks([*([] if found is None else found.remarks), *left])
    if below:
        return program, emit(compiled.kernel, request.emit, explain=request.explain)
    return program, print_ir(compiled.module)
