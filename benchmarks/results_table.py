"""Results (JSON) as a Markdown page: every target beside its figure, a miss said plainly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks import alone, compare

MISSED = "**missed**"


def render(results: dict[str, Any]) -> str:
    """The page; sections that were not run are not in it."""
    lines = [
        "# Benchmark results",
        "",
        "Made by `python -m benchmarks.run`; see README.md for what is measured and how answers are checked.",
        "",
        *(f"- {name}: {value}" for name, value in results["setting"].items()),
        "",
    ]
    for section, make in SECTIONS.items():
        if results.get(section):
            lines += [*make(results[section]), ""]
    return "\n".join(lines)


def _throughput(lines: list[dict[str, Any]]) -> Iterator[str]:
    yield "## Throughput"
    yield ""
    yield (
        "Million events per second, classification and writing out the answers included; × is how many "
        f"times CORE's rate. Targets: selective sequences {compare.PLAIN_TARGET:.0f} × with plain string "
        f"columns, {compare.DICTIONARY_TARGET:.0f} × with dictionary-encoded ones; dense "
        f"{compare.DENSE_TARGET:.0f} ×. “Same” is Estero on exactly the events that CORE was given; the "
        "other two columns are the longer stream that begins with them."
    )
    yield ""
    yield "| stream | query | CORE | same | × | plain | × | | dictionary | × | | equal answers |"
    yield "|---|---|--:|--:|--:|--:|--:|---|--:|--:|---|--:|"
    for line in lines:
        dense = line["workload"] == "dense"
        plain = compare.DENSE_TARGET if dense else compare.PLAIN_TARGET
        encoded = compare.DENSE_TARGET if dense else compare.DICTIONARY_TARGET
        yield (
            f"| {line['workload']} | {line['query']} | {_rate(line, 'core')} "
            f"| {_rate(line, 'estero same events')} | {_times(line, 'estero same events')} "
            f"| {_rate(line, 'estero plain')} | {_times(line, 'estero plain')} "
            f"| {_verdict(line, 'estero plain', plain)} "
            f"| {_rate(line, 'estero dictionary')} | {_times(line, 'estero dictionary')} "
            f"| {_verdict(line, 'estero dictionary', encoded)} | {_checked(line)} |"
        )


def _enumeration(lines: list[dict[str, Any]]) -> Iterator[str]:
    yield "## Enumeration"
    yield ""
    yield (
        "Million complex events per second, each with its marked events and their attributes: Estero as "
        "Arrow tables (and as Python objects), CORE as text. "
        f"Target: {compare.ENUMERATION_TARGET:.0f} × CORE, tables."
    )
    yield ""
    yield "| query | answers | CORE | Estero, tables | × | | Estero, objects |"
    yield "|---|--:|--:|--:|--:|---|--:|"
    for line in lines:
        unit = "outputs/s"
        yield (
            f"| {line['query']} | {line['estero']['outputs']:,} | {_rate(line, 'core', unit)} "
            f"| {_rate(line, 'estero', unit)} | {_times(line, 'estero', unit)} "
            f"| {_verdict(line, 'estero', compare.ENUMERATION_TARGET, unit)} "
            f"| {_rate(line, 'estero objects', unit)} |"
        )


def _flat(lines: list[dict[str, Any]]) -> Iterator[str]:
    yield "## Updates by window"
    yield ""
    yield (
        "Million events per second of the dense stream, pushed to a recognizer a million at a time, nothing "
        f"to enumerate. Target: slowest window at most {alone.FLAT_TARGET} times slower than the fastest."
    )
    yield ""
    windows = list(lines[0]["events/s by window"])
    yield f"| query | {' | '.join(f'{int(window):,}' for window in windows)} | slowest : fastest | |"
    yield f"|---|{'--:|' * (len(windows) + 1)}---|"
    for line in lines:
        rates = " | ".join(f"{line['events/s by window'][window] / 1e6:.2f}" for window in windows)
        spread = line["spread"]
        yield f"| {line['query']} | {rates} | {spread:.2f} | {_met(spread <= alone.FLAT_TARGET)} |"


def _memory(lines: list[dict[str, Any]]) -> Iterator[str]:
    yield "## Memory"
    yield ""
    yield (
        "Resident memory of the process while generated events pass through, batch by batch. Target: "
        f"flat, here at most {alone.MEMORY_GROWTH_TARGET} times as much in the second half as in the first."
    )
    yield ""
    yield "| query | events | MB in the first half | MB at most | growth | |"
    yield "|---|--:|--:|--:|--:|---|"
    for line in lines:
        growth = line["peak MB"] / line["early MB"]
        yield (
            f"| {line['query']} | {line['events']:,} | {line['early MB']:.0f} | {line['peak MB']:.0f} "
            f"| {growth:.2f} | {_met(growth <= alone.MEMORY_GROWTH_TARGET)} |"
        )


def _times_to_wait(waits: dict[str, Any]) -> Iterator[str]:
    first, imported, command = waits["first answers"], waits["import"], waits["command line"]
    yield "## Waiting"
    yield ""
    yield "| what | target | figure | |"
    yield "|---|--:|--:|---|"
    for what, target, seconds in (
        ("first 10 of 2^9,998 − 1 answers", alone.FIRST_TARGET, first["seconds to first answers"]),
        ("`import estero`", alone.IMPORT_TARGET, imported["seconds"]),
        (
            "`estero run --engine duckdb`, 50,000 rows, after a first run",
            alone.COMMAND_TARGET,
            command["warm"],
        ),
    ):
        yield f"| {what} | {target * 1e3:,.0f} ms | {seconds * 1e3:,.0f} ms | {_met(seconds <= target)} |"
    yield f"| the exact number of those 2^9,998 − 1 answers | | {first['seconds to count'] * 1e3:,.0f} ms | |"


SECTIONS: dict[str, Callable[[Any], Iterator[str]]] = {
    "throughput": _throughput,
    "enumeration": _enumeration,
    "flat updates": _flat,
    "memory": _memory,
    "waiting": _times_to_wait,
}


def _rate(line: dict[str, Any], name: str, unit: str = "events/s") -> str:
    return f"{line[name][unit] / 1e6:.2f}" if name in line else "–"


def _ratio(line: dict[str, Any], name: str, unit: str) -> float | None:
    return line[name][unit] / line["core"][unit] if name in line and "core" in line else None


def _times(line: dict[str, Any], name: str, unit: str = "events/s") -> str:
    ratio = _ratio(line, name, unit)
    return "–" if ratio is None else f"{ratio:.0f}" if ratio >= 20 else f"{ratio:.1f}"


def _verdict(line: dict[str, Any], name: str, target: float, unit: str = "events/s") -> str:
    ratio = _ratio(line, name, unit)
    return "" if ratio is None else _met(ratio >= target)


def _met(met: bool) -> str:
    return "met" if met else MISSED


def _checked(line: dict[str, Any]) -> str:
    if "equal answers" not in line:
        return "no peer"
    return f"{line['equal answers']['whole answers']:,} + {line['equal answers']['end positions']:,} ends"
