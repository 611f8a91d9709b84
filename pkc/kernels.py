"""A kernel as Python sees it: something to call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, overload

from pkc.diagnostics import PkcError
from pkc.frontend import python_errors
from pkc.frontend.words import Readable, Reading, Word
from pkc.location import NOWHERE
from pkc.targets import DEFAULT

if TYPE_CHECKING:
    from inspect import Signature

    from pkc.check.report import Checked
    from pkc.driver.compiler import Compiled
    from pkc.driver.launcher import Launcher
    from pkc.driver.simulated import Simulated
    from pkc.frontend import tree
    from pkc.runtime.arrays import Array
    from pkc.runtime.mesh import Mesh
    from pkc.timeline.forecast import Forecast


class _Signature:
    """The parameters of a kernel, for `inspect.signature` and editors."""

    def __get__(self, kernel: Kernel | None, _owner: type[Kernel]) -> Signature:
        from inspect import Parameter, Signature

        if kernel is None:
            raise AttributeError
        (source,) = kernel.tree.kernels
        kind, empty = Parameter.POSITIONAL_OR_KEYWORD, Parameter.empty
        return Signature(
            [
                Parameter(
                    param.name,
                    kind,
                    default=empty if param.default is None else param.default.span.text,
                    annotation=param.annotation.span.text,
                )
                for param in source.params
            ]
        )


class Kernel(Readable):
    """A kernel that Python can call, written as a function (which is read and not run) or in a file.

    `kernel(a, b, c)` launches it: arrays, scalars and constants by position or by name, as docs/runtime.md says.
    """

    __signature__ = _Signature()

    def __init__(
        self,
        read: Callable[[], Reading],
        name: str,
        options: Mapping[str, object] | None = None,
        target: str = DEFAULT,
    ) -> None:
        self._read = read
        self.name = name
        self.target = target
        """The name of the GPU that calls compile for."""
        self.options: dict[str, str] = words_of(options or {})
        """The keys of the schedule that override those of the program."""
        self._variants: dict[object, Kernel] = {}
        self.__name__ = name

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle has the program as it is now, with the values that it captures."""
        return _kernel_of, (self.tree, self.name, self.options, self.target)

    @property
    def tree(self) -> tree.Program:
        """The kernel as a program of one kernel, read again: captured constants have their present values."""
        return self._read().program

    @cached_property
    def launcher(self) -> Launcher:
        """Launches calls; has what was compiled for them so far."""
        from pkc.driver.launcher import Launcher

        return Launcher(self._read, self.options, self.target)

    def __call__(self, /, *arguments: Any, stream: Any = None, **named: Any) -> None:
        """Launch the kernel on all ranks of this process; returns before it ends. Raises `PkcError`.

        Private arrays are torch tensors on the GPU (a list with one for each rank if this process drives several), the
        others are arrays of a mesh; scalars and constants are numbers. A name may also be that of a dimension which no
        array shows. The first call with other constants compiles.

        `stream` is as for `LoadedKernel`. Without it, it is torch's current stream if the program uses torch.
        """
        self.launcher.launch(arguments, named, stream)

    @property
    def source(self) -> str:
        """The text that the kernel is read from."""
        return self.tree.span.source.text

    def simulate(self, *, ranks: int = 2, seed: int | None = None, **given: Any) -> Simulated:
        """Run the kernel on so many simulated ranks, without a GPU, and compare with the reference: the outputs by
        name, with a report.

        `given` are arrays, scalars, constants and run-time dimensions by name. Arrays may have any type of floats, and
        are rounded to that of the parameter; private and symmetric ones have a leading axis of ranks, the others are
        global. Arrays and scalars that are missing are drawn with `seed` (0), which also decides the order in which
        ranks and roles run; without any size, small ones are taken. What the program prints goes to stdout.

        Raises `PkcError`.
        """
        from pkc.driver.arguments import refuse_hidden, seed_of, whole
        from pkc.driver.simulated import simulated

        program = self.tree
        refuse_hidden(program.kernels[0], "`simulate`", seed=seed)
        ranks, seed = whole("ranks", ranks), seed_of(0 if seed is None else seed)
        return simulated(program, given, ranks=ranks, seed=seed, schedule=self.options)

    def check(
        self, *, ranks: int = 2, orders: int | None = None, explored: int | None = None, **given: int | float | bool
    ) -> Checked:
        """Check the protocol that pkc derives, as `pkc check` does: statically, in every order of a small instance (at
        most `explored` runs, 200), and in so many `orders` (10) on the given one.

        `given` are constants and run-time dimensions by name; small ones are taken for those that are missing. The
        result has `ok` and `findings`. Raises `PkcError` if the kernel does not compile.
        """
        from pkc.check.report import check_kernel
        from pkc.driver.arguments import refuse_hidden, whole

        program = self.tree
        refuse_hidden(program.kernels[0], "`check`", orders=orders, explored=explored)
        explored = whole("explored", 200 if explored is None else explored, 0)
        return check_kernel(
            program,
            given,
            ranks=whole("ranks", ranks),
            orders=whole("orders", 10 if orders is None else orders, 0 if explored else 1),
            explored=explored,
            schedule=self.options,
            target=self.target,
        )

    def timeline(self, *, ranks: int = 2, **given: int | float | bool) -> Forecast:
        """Predict what each role does when, on so many GPUs: printed as lanes, and drawn in a notebook.

        `given` are constants, scalars and all run-time dimensions by name. `save("x.html")` writes it, also as `.png`
        or `.json` (docs/timeline.md). Raises `PkcError`.
        """
        from pkc.driver.arguments import whole
        from pkc.timeline.forecast import forecast

        return forecast(self.tree, given, ranks=whole("ranks", ranks), schedule=self.options, target=self.target)

    def ir(self, level: str = "tile", **constants: int | float | bool) -> str:
        """The text of the IR at a level: `tile`, `roles` or `machine`. Raises `PkcError`."""
        from pkc.driver.arguments import LEVELS, one_of

        return str(self._compiled(one_of("level", level, LEVELS), constants).module)

    def explain(self, *, ranks: int | None = None, **given: int | float | bool) -> str:
        """What passes decided for this kernel and why, and what they left unoptimised, as `pkc compile --explain` has
        it: a line each.

        `given` are constants by name, or these and all run-time dimensions: then the first line is the schedule that
        pkc chooses for these sizes on so many `ranks` (2), and the others are about it. Raises `PkcError`.
        """
        from pkc.driver.compiler import constants_of

        (source,) = self.tree.kernels
        if ranks is None and set(given) <= set(constants_of(source)):
            compiled = self._compiled("machine", given)
            return "\n".join(map(str, [*compiled.explanations, *compiled.remarks]))
        from pkc.driver.arguments import whole
        from pkc.driver.planned import planned

        options: Any = {"schedule": self.options, "target": self.target, "level": "machine"}
        found = planned(self.tree, given, ranks=2 if ranks is None else whole("ranks", ranks), **options)
        return "\n".join(map(str, [found.schedule, *found.compiled.explanations, *found.compiled.remarks]))

    def _compiled(self, level: str, constants: Mapping[str, int | float | bool]) -> Compiled:
        from pkc.driver.compiler import compile_program

        return compile_program(self.tree, constants=constants, schedule=self.options, level=level, target=self.target)

    def empty(self, array: str, mesh: Mesh | None = None, /, **dims: Any) -> Array:
        """An array that fits the parameter of this name, content undefined: `gemm_rs.empty("C", M=8192, N=8192)`.

        It is an array of `mesh`, by default of `pkc.mesh()`, and all ranks must make it. Raises `PkcError`.
        """
        return self.launcher.empty(array, mesh, dims)

    def with_schedule(self, /, **options: object) -> Kernel:
        """The same kernel with another schedule: `gemm_rs.with_schedule(overlap="inter_sm", comm_sms=16)(a, b, c)`.

        Other keys stay as they are. The same options give the same kernel, which compiles once. Raises `PkcError` for
        keys and values that no schedule has.
        """
        from pkc.frontend.schedule import values_in

        words = words_of(options)
        values_in(words)
        return self._variant(self.options | words, self.target)

    def with_target(self, target: str, /) -> Kernel:
        """The same kernel for another GPU, by the name that `--target` has for it. The same name gives the same kernel.

        A call raises `PkcError` if there is no such target, or if the GPUs of its mesh are others.
        """
        return self._variant(self.options, target)

    def _variant(self, options: Mapping[str, str], target: str) -> Kernel:
        key = tuple(sorted(options.items())), target
        if key not in self._variants:
            self._variants[key] = Kernel(self._read, self.name, options, target)
        return self._variants[key]

    def __repr__(self) -> str:
        return f"<pkc kernel {self.name}>"


def _kernel_of(program: tree.Program, name: str, options: Mapping[str, str], target: str) -> Kernel:
    reading = Reading(program)
    return Kernel(lambda: reading, name, options, target)


def words_of(schedule: Mapping[str, object]) -> dict[str, str]:
    """A schedule that Python gives as the command line has it."""
    words = {key: value.name if isinstance(value, Word) else value for key, value in schedule.items()}
    return {str(key): str(value) for key, value in words.items()}


class FunctionKernel(Kernel):
    """A kernel that is a Python function; `schedule` holds the keywords of its decorator, apart from `target` and
    `reference`."""

    def __init__(
        self,
        function: FunctionType,
        schedule: dict[str, object],
        target: str = DEFAULT,
        reference: Callable[..., Any] | str | None = None,
    ) -> None:
        if not isinstance(function, FunctionType):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise PkcError(python_errors.NotAFunction(NOWHERE, type(function).__name__))
        if schedule and function.__name__ != "<lambda>":
            from pkc.frontend.python import check_schedule

            check_schedule(function, schedule)
        super().__init__(self._read_function, function.__name__, target=target)
        self.function = function
        self.schedule = schedule
        self.reference = reference
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__

    def _read_function(self) -> Reading:
        from pkc.frontend.python import read_captured

        reading = read_captured(self.function, self.schedule)
        kernels = tuple(replace(kernel, reference=self.reference) for kernel in reading.program.kernels)
        return replace(reading, program=replace(reading.program, kernels=kernels))


@overload
def kernel(fn: Callable[..., Any], /) -> Kernel: ...
@overload
def kernel(
    *, target: str = DEFAULT, reference: Callable[..., Any] | str | None = None, **schedule: object
) -> Callable[[Callable[..., Any]], Kernel]: ...
def kernel(
    fn: Any = None,
    /,
    *,
    target: str = DEFAULT,
    reference: Callable[..., Any] | str | None = None,
    **schedule: object,
) -> Any:
    """Make a function a kernel: `@kernel`, or `@kernel(overlap="intra_sm", stages=4)`; calls compile for `target`.

    `pkc run` compares its results with a `reference`: a function, or what `--reference` takes.
    """
    if fn is not None:
        return FunctionKernel(fn, schedule, target)
    return partial(FunctionKernel, schedule=schedule, target=target, reference=reference)
