"""The commands of `pkc` for a program. Each imports what it needs when it runs, so that help is fast."""

from __future__ import annotations

from pathlib import Path

import click

from pkc.cli.options import EXIT_STATUSES, SEED, Asked, OnFile, Whole, on_ranks
from pkc.targets import DEFAULT, names


@click.command("compile", cls=OnFile, epilog=EXIT_STATUSES)
@click.argument("file")
@click.option(
    "--emit",
    type=click.Choice(["tile", "roles", "machine", "cuda", "ptx", "cubin", "artifact"]),
    default="tile",
    help="The level of IR to print, or what is generated from it.",
)
@click.option("-o", "--output", metavar="FILE", help="Write there instead of to the terminal.")
@click.option("--kernel", metavar="NAME", help="Compile this kernel alone.")
@click.option("--const", "constants", metavar="K=V", multiple=True, help="Values of `const` parameters.")
@click.option("--schedule", metavar="K=V,...", multiple=True, help="How to run it; wins over the text.")
@click.option(
    "--set", "settings", metavar="M=V,...", multiple=True, help="Sizes to choose a schedule for, and constants."
)
@click.option("--ranks", type=Whole(min=1), default=1, show_default=True, help="GPUs to choose a schedule for.")
@click.option("--dump", metavar="DIR", help="Write the IR after each pass into a folder.")
@click.option("--target", default=DEFAULT, show_default=True, help="The GPU.")
@click.option(
    "--explain", is_flag=True, help="Say what was planned and why, what the kernel takes, and what was not optimised."
)
@click.option("--no-import", is_flag=True, help="Read a .py file without importing it: nothing in it is executed.")
def compile_command(
    file: str,
    emit: str,
    output: str | None,
    kernel: str | None,
    constants: tuple[str, ...],
    schedule: tuple[str, ...],
    settings: tuple[str, ...],
    ranks: int,
    dump: str | None,
    target: str,
    explain: bool,
    no_import: bool,
) -> None:
    """Compile FILE (.pk or .py) and print its IR, its CUDA C++, PTX or machine code. No GPU is needed.

    `--emit artifact` writes one file that `pkc.runtime.exported.load` reads without a compiler.

    A .py file is imported, and so executed, unless --no-import is given.

    \b
    Example:
      pkc compile examples/ring_attention.pk --const D=64 -o ring_attention.mlir
      pkc compile examples/ag_gemm.pk --emit roles --explain
      pkc compile examples/gemm_rs.pk --emit cubin -o gemm_rs.cubin --explain
      pkc compile examples/gemm_rs.pk --emit artifact -o gemm_rs.pkx --ranks 4 --set M=8192,N=8192,K=2048
      pkc compile examples/gemm_rs.pk --explain --ranks 4 --set M=16,N=8192,K=2048
    """
    from pkc import console
    from pkc.cli.compile import Request
    from pkc.cli.compile import output as output_of

    content = output_of(
        Request(file, emit, kernel, constants, schedule, settings, ranks, dump, target, explain, no_import),
    )
    if output is None:
        click.echo(content, nl=False)
        return
    with console.writing(output):
        Path(output).write_bytes(content.encode() if isinstance(content, str) else content)


@click.command(cls=OnFile, epilog=EXIT_STATUSES)
@on_ranks
@SEED
@click.option("--in", "inputs", metavar="A=FILE.npy", multiple=True, help="Read an input instead of drawing it.")
@click.option("--out", "outputs", metavar="C=FILE.npy", multiple=True, help="Write a result.")
@click.option(
    "--reference",
    "references",
    metavar="REF",
    multiple=True,
    help="Compare with FILE.py:FUNCTION or [NAME=]EXPRESSION too.",
)
@click.option("--target", default="sim", show_default=True, help=f"Simulated ranks, or GPUs ({', '.join(names())}).")
@click.option("--debug", is_flag=True, help="On GPUs: bound every wait, and report who waits for what if one fails.")
def run(
    asked: Asked,
    seed: int,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    references: tuple[str, ...],
    target: str,
    debug: bool,
) -> None:
    """Run a kernel of FILE (.pk or .py) and check every result against a float64 reference.

    Arrays that --in does not give are drawn from --seed, with the dimensions that --set gives. Private and
    symmetric arrays have a leading axis of ranks in their files; sharded and replicated ones are whole.
    A .npy file has no bf16 or 8-bit floats: such arrays are written as float32, and read from any file of
    floats, rounded to nearest.

    Floats are drawn normal, f32 scalars from 0.05 to 0.25, integers from the range that their uses ask for.

    The float64 reference is made from the program itself. One of your own says what the program should mean: a
    function, or an expression in numpy, of the arrays (floats as float64), scalars, constants, dimensions and
    `ranks` by name. `@pkc.kernel(reference=...)` gives it in the program.

    \b
    Example:
      pkc run examples/gemm_rs.pk --ranks 8 --set M=1024,N=512,K=512 --out C=c.npy
      pkc run examples/gemm_rs.pk --ranks 4 --set M=256,N=64,K=64 --reference "(A @ B).sum(0)"
    """
    from pkc.cli.program import choose
    from pkc.cli.run import Request, execute
    from pkc.cli.settings import assignments
    from pkc.targets.target import lookup

    if debug and target == "sim":
        raise click.UsageError("--debug is for GPUs; a simulation reports deadlocks as it is")
    read = assignments("--in", inputs, example="A=a.npy")
    written = assignments("--out", outputs, example="C=c.npy")
    chosen = choose(asked)
    compiled = chosen.compile()
    on_gpus = None
    if target != "sim":
        lookup(target)
        on_gpus = chosen.for_gpus(target, ["debug"] if debug else [])
    if not execute(compiled, Request(chosen, seed, read, written, references), on_gpus):
        raise SystemExit(1)


@click.command(cls=OnFile, epilog=EXIT_STATUSES)
@on_ranks
@click.option("--seeds", type=Whole(min=1), default=10, show_default=True, help="How many orders to try.")
@click.option(
    "--exhaustive",
    type=Whole(min=0),
    default=200,
    show_default=True,
    help="Try all orders of a small instance, in at most so many runs.",
)
@click.option("--delay", metavar="K=V,...", multiple=True, help="Let a rank, a role or both come last: rank=1,role=...")
@click.option("--in", "inputs", metavar="A=FILE.npy", multiple=True, help="Read a table instead of drawing it.")
@click.option("--target", default=DEFAULT, show_default=True, help="The GPU whose grid and budgets are checked.")
def check(
    asked: Asked, seeds: int, exhaustive: int, delay: tuple[str, ...], inputs: tuple[str, ...], target: str
) -> None:
    """Check the protocol that pkc derives for FILE: statically, and against the semantics of the program.

    The roles level is simulated in every order that makes a difference on a small instance, and in many orders on the
    given one, with stragglers; launched several times in a row without synchronisation and with other inputs each time.
    Every output must be the tile level's, to the bit. Sizes that --set does not give are small ones.

    Arrays of integers, such as counts and tables of rows, are drawn. Where a caller promises more of them than that
    they are in range, --in gives such ones, as to `pkc run`; then nothing but this instance is checked.

    \b
    Example:
      pkc check examples/ag_gemm.pk --ranks 8 --set M=1100,N=300,K=100 --schedule overlap=inter_sm
    """
    from pkc.cli.check import execute, levels_of
    from pkc.cli.check_request import Request, delays_of
    from pkc.cli.program import choose
    from pkc.cli.settings import assignments

    tables = assignments("--in", inputs, example="rows=rows.npy")
    chosen = choose(asked)
    tile, roles = levels_of(chosen, target)
    given = click.get_current_context().get_parameter_source("ranks") is not click.core.ParameterSource.DEFAULT
    delays = delays_of(delay, asked.ranks)
    request = Request(chosen, seeds, exhaustive, delays, target, other_ranks=not given, tables=tables)
    if not execute(tile, roles, request):
        raise SystemExit(1)


@click.command(cls=OnFile, epilog=EXIT_STATUSES)
@on_ranks
@click.option("-o", "--output", metavar="FILE", help="Write it as .png, .html or .json (for ui.perfetto.dev).")
@click.option("--measured", metavar="FILE.json", help="Draw what `pkc trace -o` has measured on the same axes.")
@click.option("--ctas", type=Whole(min=1), default=4, show_default=True, help="CTAs of each rank shown one by one.")
@click.option("--target", default=DEFAULT, show_default=True, help="The GPU.")
def timeline(asked: Asked, output: str | None, measured: str | None, ctas: int, target: str) -> None:
    """Predict what each role of a kernel of FILE (.pk or .py) does when. No GPU is needed.

    The steps of every role of every CTA of every rank are run against the rates of the GPU: tensor cores, shared
    memory, memory, links, signals. Whether that is what happens is measured by `pkc trace`.

    \b
    Example:
      pkc timeline examples/gemm_rs.pk --ranks 4 --set M=2048,N=2048,K=512
      pkc timeline examples/ag_gemm.pk --ranks 2 --set M=2048,N=512,K=2048 -o ag_gemm.html
    """
    from pkc.cli.program import choose
    from pkc.cli.timeline import Request, execute

    files = [None if name is None else Path(name) for name in (output, measured)]
    if files[0] is not None and files[0].suffix not in (".png", ".html", ".json"):
        raise click.UsageError("-o writes .png, .html or .json")
    execute(Request(choose(asked), target, ctas, files[0], files[1]))


@click.command(cls=OnFile, epilog=EXIT_STATUSES)
@on_ranks
@click.option("--html", "output", metavar="FILE.html", help="Write everything as one page.")
@click.option("--target", default=DEFAULT, show_default=True, help="The GPU.")
def explain(asked: Asked, output: str | None, target: str) -> None:
    """Show what pkc makes of a kernel of FILE (.pk or .py): who works beside whom, and how long. No GPU is needed.

    The page that --html writes has the source, the roles, the predicted time line, every decision and its reason,
    what was not optimised, what the machine code takes, and the IR before and after each pass.

    \b
    Example:
      pkc explain examples/ag_gemm.pk --ranks 2 --set M=2048,N=512,K=2048 --html ag_gemm.html
    """
    from pkc.cli.explain import execute
    from pkc.cli.program import choose

    path = None if output is None else Path(output)
    if path is not None and path.suffix != ".html":
        raise click.UsageError("--html writes .html")
    execute(choose(asked), target, path)
