"""A time line as a page that needs nothing else: lanes, and below them the tasks and waits of some CTAs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from pkc.timeline.lanes import BINS, Span, Timeline
from pkc.timeline.looks import USED, WAITS, WORKS

_WIDTH, _LEFT, _HEIGHT = 960, 190, 22

STYLE = f"""
body {{ font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 1200px; padding: 0 1em; color: #222; }}
h1 {{ font-size: 1.5em; }} h2 {{ font-size: 1.15em; margin-top: 1.8em; }}
svg text {{ font: 11px system-ui, sans-serif; fill: #333; }}
pre {{ font: 12px/1.4 ui-monospace, monospace; background: #f6f6f4; padding: .8em; overflow-x: auto; }}
table {{ border-collapse: collapse; }} td, th {{ padding: .15em .8em; text-align: left; vertical-align: top; }}
.works {{ fill: {WORKS}; }} .waits {{ fill: {WAITS}; }} .used {{ fill: {USED}; }}
.key span {{ display: inline-block; width: 1em; height: 1em; vertical-align: -2px; margin: 0 .3em 0 1.2em; }}
"""

_COLOURS = {"works": WORKS, "waits": WAITS, "used": USED}

KEY = (
    '<p class="key">Share of the CTAs of a rank whose role'
    f'<span style="background:{WORKS}"></span>works<span style="background:{WAITS}"></span>waits'
    f'<span style="background:{USED}"></span>share of the tensor cores, link or memory in use</p>'
)


def page(title: str, body: str) -> str:
    """A whole page."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body><h1>{escape(title)}</h1>\n{body}\n"
        "</body></html>\n"
    )


def drawing(shown: Sequence[Timeline], until: float) -> str:
    """The lanes of time lines on one axis, then the spans of their CTAs."""
    parts = [KEY]
    for one in shown:
        parts.append(f"<h2>{escape(one.title)}</h2>")
        parts.append(_svg(list(_lanes(one, until)), len(one.lanes), until))
    for one in shown:
        rows = list(dict.fromkeys((span.rank, span.cta, span.role) for span in one.spans))
        parts.append(f"<h2>Some CTAs: {escape(one.title)}</h2>")
        parts.append(_svg(list(_spans(one, rows, until)), len(rows), until))
    return "\n".join(parts)


def picture(shown: Sequence[Timeline], until: float) -> str:
    """The lanes of rank 0 of the first time line as a file of its own."""
    one = shown[0]
    lanes = tuple(lane for lane in one.lanes if lane.rank == 0)
    first = Timeline(one.title, one.end, lanes, ())
    fills = "".join(f".{kind}{{fill:{colour}}}" for kind, colour in _COLOURS.items())
    look = f"<style>text{{font:11px sans-serif;fill:#777}}{fills}</style>"
    drawn = _svg([look, *_lanes(first, until)], len(lanes), until)
    return drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n"


def _svg(shapes: Sequence[str], rows: int, until: float) -> str:
    height = rows * _HEIGHT + 24
    ticks = "".join(
        f'<text x="{_LEFT + share * _WIDTH:.0f}" y="{height - 6}" text-anchor="middle">{share * until:.4g}'
        f"{' us' if share == 1 else ''}</text>"
        for share in (0, 0.25, 0.5, 0.75, 1)
    )
    box = f"0 0 {_LEFT + _WIDTH + 30} {height}"
    return f'<svg viewBox="{box}" width="100%" role="img">{"".join(shapes)}{ticks}</svg>'


def _label(row: int, text: str) -> str:
    return f'<text x="{_LEFT - 8}" y="{row * _HEIGHT + 15}" text-anchor="end">{escape(text)}</text>'


def _lanes(one: Timeline, until: float) -> Iterator[str]:
    for row, lane in enumerate(one.lanes):
        yield _label(row, f"rank {lane.rank} {lane.name}")
        kind = "works" if lane.is_role else "used"
        told = (
            f"works {lane.works.mean():.0%}, waits {lane.waits.mean():.0%}"
            if lane.is_role
            else f"{lane.works.mean():.0%}"
        )
        yield f"<g><title>{escape(lane.name)}: {told} of {until:.4g} us</title>"
        yield _area(row, [0.0] * BINS, list(lane.works), kind)
        yield _area(row, list(lane.works), list(lane.works + lane.waits), "waits") if lane.is_role else ""
        yield "</g>"


def _area(row: int, low: Sequence[float], high: Sequence[float], kind: str) -> str:
    """What lies between two heights, bin by bin; equal neighbours share a step."""
    base, tall = row * _HEIGHT + _HEIGHT - 2, _HEIGHT - 4

    def edge(heights: Sequence[float]) -> list[str]:
        """A step wherever the height changes."""
        drawn = [f"{base - min(1.0, height) * tall:.1f}" for height in heights]
        changes = [place for place in range(1, BINS) if drawn[place] != drawn[place - 1]]
        inner = ((place, drawn[place - side]) for place in changes for side in (1, 0))
        corners = [(0, drawn[0]), *inner, (BINS, drawn[-1])]
        return [f"{_LEFT + place * _WIDTH / BINS:.1f},{height}" for place, height in corners]

    return f'<polygon class="{kind}" points="{" ".join([*edge(high), *reversed(edge(low))])}"/>'


def _spans(one: Timeline, rows: Sequence[tuple[int, int, str]], until: float) -> Iterator[str]:
    places = {row: place for place, row in enumerate(rows)}
    for (rank, cta, role), place in places.items():
        yield _label(place, f"rank {rank} CTA {cta} {role}")
    for span in sorted(one.spans, key=lambda span: span.kind != "task"):
        yield _span(span, places[span.rank, span.cta, span.role], until)


def _span(span: Span, row: int, until: float) -> str:
    left, width = _LEFT + span.begin / until * _WIDTH, span.length / until * _WIDTH
    if width < 0.15:
        return ""
    kind = "works" if span.kind == "task" else "waits"
    told = f"{span.name}, {span.begin:.2f} to {span.begin + span.length:.2f} us"
    edge = ' stroke="#fff" stroke-width=".5"' if span.kind == "task" and width > 2 else ""
    return (
        f'<rect class="{kind}" x="{left:.2f}" y="{row * _HEIGHT + 3}" width="{width:.2f}" height="{_HEIGHT - 6}"{edge}>'
        f"<title>{escape(told)}</title></rect>"
    )
