"""Figures (JSON) of the engines as a page and a picture: seconds over the length of the stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from benchmarks.peers.engines import ENGINES, Engine
from benchmarks.peers.queries import QUERIES, Query, Unsaid
from estero.markup.colours import PALETTE
from estero.plots.picture import FAINT, GRID, INK, Picture, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Figures = dict[str, Any]
OURS = "estero"
COLOURS = (*PALETTE, INK)
"""Of the lines, one for each engine."""


def page(figures: Figures) -> str:
    """The figures as Markdown."""
    return "\n".join(_lines(figures)) + "\n"


def _lines(figures: Figures) -> Iterator[str]:
    yield "# Peers"
    yield ""
    yield "Written by `python -m benchmarks.peers run --write`. Estero and other engines: the same events,"
    yield "the same answers, compared before anything is timed. How, and what is not compared:"
    yield "[README.md](README.md)."
    yield ""
    yield from (f"- {name}: {value}" for name, value in figures["setting"].items())
    yield from (f"- {_engine(name).title} is missing: {why}" for name, why in figures["missing"].items())
    yield ""
    yield "![Seconds over the number of events, by query](results/peers.svg)"
    yield ""
    yield "## Who is fastest"
    yield ""
    yield "| query | events | fastest | then | Estero beside the others on streams | beside those on tables |"
    yield "|---|--:|---|---|---|---|"
    for query in _asked(figures):
        yield from _ranks(figures, query)
    yield ""
    yield "A row is for the longest stream that Estero and at least one other took. Trino, DuckDB and pandas"
    yield "look at a whole table at once, not at a stream; DuckDB and pandas stand for what one would write"
    yield "without any engine. Below, **the fastest of a length** is bold."
    for query in _asked(figures):
        yield ""
        yield from _section(figures, query)
    yield ""
    yield "## What is timed"
    yield ""
    yield from (f"- **{engine.title}**: {engine.how}." for engine in ENGINES)


def _asked(figures: Figures) -> list[Query]:
    """The queries that have figures."""
    return [query for query in QUERIES if any(run["query"] == query.name for run in figures["runs"])]


def _engine(name: str) -> Engine:
    return next(engine for engine in ENGINES if engine.name == name)


def _runs(figures: Figures, query: Query, engine: str) -> list[dict[str, Any]]:
    return [run for run in figures["runs"] if (run["query"], run["engine"]) == (query.name, engine)]


def _timed(figures: Figures, query: Query, events: int) -> list[tuple[float, str]]:
    """Seconds and names of the engines that took so many events; the fastest first."""
    return sorted(
        (run["seconds"], run["engine"])
        for run in figures["runs"]
        if run["query"] == query.name and run.get("events") == events and run["seconds"] is not None
    )


def _sizes(figures: Figures, query: Query) -> list[int]:
    return sorted(
        {run["events"] for run in figures["runs"] if run["query"] == query.name and "events" in run}
    )


def _ranks(figures: Figures, query: Query) -> Iterator[str]:
    for events in reversed(_sizes(figures, query)):
        timed = _timed(figures, query, events)
        own = {name: seconds for seconds, name in timed}.get(OURS)
        if own is None or len(timed) < 2:
            continue
        (first, winner), *others = timed
        then = ", ".join(f"{_engine(name).title} ×{seconds / first:.1f}" for seconds, name in others[:2])
        beside = " | ".join(_beside(own, timed, whole=whole) for whole in (False, True))
        yield f"| {query.name} | {events:,} | {_engine(winner).title} | {then} | {beside} |"
        return


def _beside(own: float, timed: list[tuple[float, str]], *, whole: bool) -> str:
    """Estero compared with the fastest of the others that look at a stream, or at a whole table."""
    others = ((seconds, name) for seconds, name in timed if name != OURS and _engine(name).whole == whole)
    seconds, name = next(others, (0.0, ""))
    if not name:
        return "–"
    if own <= seconds:
        return f"{seconds / own:.1f} times as fast as {_engine(name).title}"
    return f"**{own / seconds:.1f} times as slow as {_engine(name).title}**"


def _section(figures: Figures, query: Query) -> Iterator[str]:
    sizes = _sizes(figures, query)
    yield f"## {query.name.capitalize()}"
    yield ""
    window = f"; a window of {query.window:,} events" if query.window > 2 else ""
    yield f"{query.meaning[0].upper()}{query.meaning[1:]}{window}. Seconds:"
    yield ""
    answers = {run["events"]: run["answers"] for run in figures["runs"] if _counted(run, query)}
    heads = (f"{events:,} events" for events in sizes)
    yield f"| | {' | '.join(heads)} | events/s |"
    yield f"|---|{'--:|' * len(sizes)}--:|"
    counts = (f"{answers[events]:,}" if events in answers else "" for events in sizes)
    yield f"| *answers* | {' | '.join(counts)} | |"
    for engine in ENGINES:
        runs = _runs(figures, query, engine.name)
        if any("events" in run for run in runs):
            yield _row(figures, query, engine, sizes)
    left = [(engine.title, why) for engine in ENGINES for why in _absent(figures, query, engine)]
    if left:
        yield ""
        yield "Left out:"
        yield ""
        yield from (f"- {title}: {why}." for title, why in left)
    yield ""
    yield "<details><summary>The query for each engine</summary>"
    yield ""
    for engine in ENGINES:
        said = engine.said[query.name]
        if isinstance(said, str):
            yield f"{engine.title}:"
            yield ""
            yield from (f"    {line}" for line in dedent(said.strip("\n")).splitlines())
            yield ""
    yield "</details>"


def _counted(run: dict[str, Any], query: Query) -> bool:
    return run["query"] == query.name and run.get("answers") is not None


def _absent(figures: Figures, query: Query, engine: Engine) -> Iterator[str]:
    """Why an engine has no figures for a query, or not all."""
    said = engine.said[query.name]
    if isinstance(said, Unsaid):
        yield said.reason
    for run in _runs(figures, query, engine.name):
        if "problem" in run:
            yield run["problem"]
    for gap in figures["unmeasured"]:
        if (gap["query"], gap["engine"]) == (query.name, engine.name):
            yield f"not measured from {gap['from']:,} events on; the run was broken off before"


def _row(figures: Figures, query: Query, engine: Engine, sizes: Sequence[int]) -> str:
    runs = {run["events"]: run for run in _runs(figures, query, engine.name) if "events" in run}
    cells = []
    for events in sizes:
        run = runs.get(events)
        if run is None:
            cells.append("–")
        elif run["seconds"] is None:
            cells.append(f"> {run['over']:g}" if "over" in run else f"< {run['under']:g}")
        else:
            text = _seconds(run["seconds"])
            fastest = _timed(figures, query, events)[0][1] == engine.name
            cells.append(f"**{text}**" if fastest else text)
    last = [run for run in runs.values() if run["seconds"]]
    rate = f"{_rate(last[-1]['events'] / last[-1]['seconds'])}" if last else ""
    return f"| {engine.title} | {' | '.join(cells)} | {rate} |"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f}" if seconds >= 10 else f"{seconds:.2f}" if seconds >= 1 else f"{seconds:.3f}"


def _rate(rate: float) -> str:
    return f"{rate / 1e6:.1f} M" if rate >= 1e6 else f"{rate / 1e6:.2f} M" if rate >= 1e5 else f"{rate:,.0f}"


def picture(figures: Figures) -> Picture:
    """Seconds over the number of events, both logarithmic: a frame for each query, a line for each engine.

    Lines of engines that look at a whole table are dashed.
    """
    queries = _asked(figures)
    columns = min(4, len(queries) + 1)
    rows = -(-(len(queries) + 1) // columns)
    with styled():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(2.9 * columns, 2.7 * rows), layout="constrained")
        frames = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
        for axes, query in zip(frames, queries, strict=False):
            _draw(axes, figures, query)
        for axes in frames[len(queries) :]:
            axes.set_axis_off()
        drawn: dict[str, Any] = {}
        for axes in frames:
            lines, names = axes.get_legend_handles_labels()
            drawn |= dict(zip(names, lines, strict=True))
        shown = [engine.title for engine in ENGINES if engine.title in drawn]
        frames[-1].legend([drawn[name] for name in shown], shown, loc="center", frameon=False)
    return Picture(figure)


def _draw(axes: Axes, figures: Figures, query: Query) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    for axis, scale in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
        scale("log")
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axis.set_minor_formatter(NullFormatter())
    for number, engine in enumerate(ENGINES):
        runs = [run for run in _runs(figures, query, engine.name) if run.get("seconds")]
        if runs:
            axes.plot(
                [run["events"] for run in runs],
                [run["seconds"] for run in runs],
                "o--" if engine.whole else "o-",
                color=COLOURS[number],
                linewidth=2.2 if engine.name == OURS else 1.1,
                markersize=3.4,
                label=engine.title,
            )
    axes.set_title(f"{query.name}, seconds", loc="left", color=INK, fontsize=10)
    axes.set_xlabel("events", color=INK)
    axes.grid(visible=True, color=GRID, linewidth=0.6)
    axes.tick_params(colors=FAINT, labelsize=7.5, labelbottom=True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
