"""The commands of `pkc` that measure on GPUs. Each imports what it needs when it runs, so that help is fast."""

from __future__ import annotations

from pathlib import Path

import click

from pkc.cli.options import EXIT_STATUSES, SEED, Asked, OnFile, Whole, on_ranks
from pkc.targets import DEFAULT


@click.command(cls=OnFile, epilog=EXIT_STATUSES)
@on_ranks
@SEED
@click.option("-o", "--output", metavar="FILE.json", help="Write the time line, for ui.perfetto.dev.")
@click.option("--launches", type=Whole(min=1), default=3, show_default=True, help="The last one is shown.")
@click.option("--ctas", type=Whole(min=1), default=8, show_default=True, help="CTAs of each rank in the time line.")
@click.option("--target", default=DEFAULT, show_default=True, help="The GPUs.")
def trace(asked: Asked, seed: int, output: str | None, launches: int, ctas: int, target: str) -> None:
    """Run a kernel of FILE (.pk or .py) on GPUs and show what each of its roles spends its time on.

    One thread of each warp role records when the role, each task, each wait and each drain begins or ends.
    The table is over all CTAs of all ranks; --output has some of them with every event. Results are not checked.

    \b
    Example:
      pkc trace examples/gemm_rs.pk --ranks 4 --set M=8192,N=8192,K=2048 -o gemm_rs.json
    """
    from pkc.cli.program import choose
    from pkc.cli.trace import Request, execute

    chosen = choose(asked)
    path = None if output is None else Path(output)
    execute(chosen.compile(), Request(chosen, seed, launches, ctas, path), chosen.for_gpus(target, ["trace"]))


@click.command(epilog=EXIT_STATUSES)
@click.option("--ranks", type=Whole(min=1), default=1, show_default=True, help="GPUs; of several the link.")
@click.option("--target", default=DEFAULT, show_default=True, help="The GPU.")
def calibrate(ranks: int, target: str) -> None:
    """Measure rates of the GPUs of this machine, for estimates: memory, MMAs, and the link if there are several.

    They are kept in the file of `pkc tune`, and every choice of a schedule takes them from there.

    \b
    Example:
      pkc calibrate --ranks 2
    """
    from pkc.cli.tune import measure_rates

    measure_rates(ranks, target)


@click.command(cls=OnFile, epilog=EXIT_STATUSES)
@on_ranks
@SEED
@click.option("--most", type=Whole(min=1), default=8, show_default=True, help="Schedules that are measured.")
@click.option("--rounds", type=Whole(min=1), default=5, show_default=True, help="Times that each is measured.")
@click.option("--target", default=DEFAULT, show_default=True, help="The GPU.")
def tune(asked: Asked, seed: int, most: int, rounds: int, target: str) -> None:
    """Measure the schedules that seem best for a kernel of FILE (.pk or .py) at some sizes, on GPUs.

    The fastest is kept in a file, $PKC_TUNED or pkc/tuned.json in the configuration folder of the user, and taken by
    every later launch of the kernel at these sizes. --most and --rounds say how long it takes.

    \b
    Example:
      pkc tune examples/gemm.pk --ranks 1 --set M=4096,N=4096,K=4096
      pkc tune examples/gemm_rs.pk --ranks 4 --set M=8192,N=8192,K=2048 --most 16
    """
    from pkc.cli.program import choose
    from pkc.cli.tune import execute

    execute(choose(asked), target, seed, most, rounds)


@click.command(cls=OnFile, epilog=EXIT_STATUSES)
@click.argument("file")
@click.option(
    "--sizes", metavar="A,B,...", help="M = N = K, or MxNxK; BxHxS, BxHxSxD, +causal behind. Of all GPUs together."
)
@click.option("--quick", is_flag=True, help="pkc and the work alone, and less warming up.")
@click.option("--overlap", metavar="A,B,...", help="Measure these too; the same as --variant overlap=A and so on.")
@click.option("--variant", "variants", metavar="K=V,...", multiple=True, help="Measure this schedule too.")
@click.option(
    "--schedule", metavar="K=V,...", multiple=True, help="How to run it, in all variants; wins over the text."
)
@click.option("--repetitions", type=Whole(min=20), default=30, show_default=True, help="Of each contestant.")
@click.option("--json", "output", metavar="FILE", help="Write all that was measured, after each size.")
@click.option("--target", default=DEFAULT, show_default=True, help="The GPUs.")
@click.option("--kernel", metavar="NAME", help="The kernel to measure, if FILE has several.")
def bench(
    file: str,
    sizes: str | None,
    quick: bool,
    overlap: str | None,
    variants: tuple[str, ...],
    schedule: tuple[str, ...],
    repetitions: int,
    output: str | None,
    target: str,
    kernel: str | None,
) -> None:
    """Measure a kernel of FILE (.pk or .py) on GPUs, beside cuBLAS, cuDNN, NCCL and torch's fused operators.

    On several GPUs it runs under torchrun, one process for each; alone it takes the first GPU. Every result is checked
    against float64 before it is timed. A time is the median of the slowest rank, without the host's share.

    \b
    Example:
      pkc bench examples/gemm.pk --sizes 8192
      pkc bench examples/attention.pk --sizes 4x16x8192,4x32x4096x64+causal --quick
      torchrun --nproc-per-node 8 -m pkc bench examples/gemm_rs.pk --json gemm_rs.json
    """
    from pkc.bench import run as measuring
    from pkc.cli.settings import assignments
    from pkc.driver.programs import find_kernel, load_program

    example = "overlap=inter_sm,comm_sms=16"
    program = load_program(file)
    chosen = find_kernel(program, file, kernel)
    request = measuring.Request(
        path=file,
        kernel=chosen.name,
        sizes=sizes,
        schedule=assignments("--schedule", schedule, example=example, split=True),
        variants=[
            *({"overlap": value.strip()} for value in (overlap or "").split(",") if value.strip()),
            *(assignments("--variant", [variant], example=example, split=True) for variant in variants),
        ],
        repetitions=repetitions,
        output=None if output is None else Path(output),
        target=target,
        quick=quick,
    )
    if not measuring.execute(program, request):
        raise SystemExit(1)
