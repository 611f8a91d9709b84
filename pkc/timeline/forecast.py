"""The predicted time line of a kernel, with the schedule that it would run with, and how it is shown and written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pkc import console
from pkc.diagnostics import PkcError
from pkc.driver.chosen import duration
from pkc.driver.compiler import Number
from pkc.driver.errors import BadArgument
from pkc.driver.planned import Planned, planned
from pkc.frontend import tree
from pkc.location import NOWHERE
from pkc.timeline import chrome, page, png
from pkc.timeline.lanes import Timeline, end_of, timeline
from pkc.timeline.measured import read
from pkc.timeline.predict import MOST_STEPS, Prediction, predict
from pkc.timeline.text import text

WRITTEN = (".html", ".png", ".json")
"""How names of files end that a time line is written to."""

_APART = 1.25
"""By which factor the end of a time line may differ from the estimate without a word."""


@dataclass(frozen=True, repr=False)
class Forecast(Planned):
    """A kernel as it would run at its sizes: its schedule, its IR at the roles level, its time line.

    Printed, it is the lanes of rank 0; as the last line of a notebook's cell, those of all ranks.
    """

    prediction: Prediction

    @property
    def title(self) -> str:
        """One line: kernel, ranks, sizes and how long it takes."""
        sizes = "".join(f", {name}={size}" for name, size in self.dims.items())
        gpus = f"{self.ranks} GPU{'s' * (self.ranks > 1)}"
        name = self.compiled.kernel.sym_name.data
        took = f"{self.prediction.nanoseconds / 1e3:.1f} us"
        taken = self.schedule.taken
        if self.prediction.ends:
            return f"{name} on {gpus}{sizes}: predicted, {took}"
        whole = "" if taken is None else f" of about {duration(taken.total - taken.launch)} (estimated)"
        return f"{name} on {gpus}{sizes}: the first {took}{whole}"

    @property
    def note(self) -> str:
        """What to say where the time line is cut, or ends far from the estimate that the schedule was chosen by; else
        nothing."""
        taken = self.schedule.taken
        if not self.prediction.ends:
            return (
                f"the time line is cut after {MOST_STEPS // 10**6} million steps: what is not shown may take its time"
                " differently; at smaller sizes it is whole"
            )
        if taken is None:
            return ""
        launched = taken.total - taken.launch
        apart = self.prediction.nanoseconds / launched
        if 1 / _APART < apart < _APART:
            return ""
        return (
            f"the time line, which plays the steps of every CTA, ends at {apart:.2g} times the estimate"
            f" of {duration(launched)} without the launch; schedules are compared by estimates,"
            " which were fitted to measured times"
        )

    def timelines(self, measured: Path | None = None, ctas: int = 4) -> tuple[list[Timeline], float]:
        """The predicted time line, and a measured one on the same axis; when that ends. Raises `PkcError`."""
        every = self.prediction.events.sms.shape[1]
        events = [list(chrome.listed(self.prediction.events, every, self.prediction.used))]
        titles = [self.title]
        if measured is not None:
            events.append(read(measured))
            titles.append(f"measured: {measured.name}, {end_of(events[1]):.1f} us")
        until = max(map(end_of, events))
        return [timeline(title, one, until, ctas) for title, one in zip(titles, events, strict=True)], until

    def save(self, path: str | Path, *, measured: str | Path | None = None, ctas: int = 4) -> None:
        """Write it as `.html`, `.png` (with matplotlib) or `.json`, for ui.perfetto.dev; pictures may have a time line
        that `pkc trace -o` has `measured` on the same axis. Raises `PkcError`."""
        path = Path(path)
        if path.suffix not in WRITTEN:
            expected = f"a name that ends in {', '.join(WRITTEN[:-1])} or {WRITTEN[-1]}"
            raise PkcError(BadArgument(NOWHERE, "path", repr(str(path)), expected))
        with console.writing(path):
            self._write(path, measured, ctas)

    def _write(self, path: Path, measured: str | Path | None, ctas: int) -> None:
        if path.suffix == ".json":
            with path.open("w", encoding="utf-8") as file:
                chrome.write(self.prediction.events, file, ctas, self.prediction.used)
            return
        shown, until = self.timelines(None if measured is None else Path(measured), ctas)
        if path.suffix == ".png":
            png.draw(shown, until, path)
        else:
            path.write_text(page.page(self.title, page.drawing(shown, until)), encoding="utf-8")

    def __repr__(self) -> str:
        shown, until = self.timelines()
        return f"{self.schedule}\n{text(first_rank(shown[0]), until)}"

    def _repr_html_(self) -> str:
        return f"<style>{page.STYLE}</style>{page.drawing(*self.timelines())}"


def first_rank(one: Timeline) -> Timeline:
    """The lanes of rank 0 alone."""
    return Timeline(one.title, one.end, tuple(lane for lane in one.lanes if lane.rank == 0), ())


def forecast(
    program: tree.Program,
    given: Mapping[str, Number],
    *,
    ranks: int,
    schedule: Mapping[str, str],
    target: str,
    kernel: str | None = None,
) -> Forecast:
    """Compile a kernel with the schedule that it would run with, and predict its time line.

    `given` are constants, scalars and dimensions by name. Raises `PkcError`.
    """
    found = planned(program, given, ranks=ranks, schedule=schedule, target=target, kernel=kernel)
    return Forecast(**vars(found), prediction=predict(found.compiled.kernel, ranks=ranks, dims=found.dims))
