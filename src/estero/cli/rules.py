"""The commands for a directory of rules: run, check and explain all of them at once."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import estero
from estero.cli.inputs import Stream
from estero.cli.options import Format
from estero.cli.outputs import format_of
from estero.errors import QueryError, legible
from estero.queries.rules.rule_files import language_of

if TYPE_CHECKING:
    from estero import RuleAnswers, RuleSet
    from estero.cli.terminal import Meter


def is_rules(path: Path) -> bool:
    """Whether the argument of a command is a directory of rules or a file in Sigma or EQL, not one query."""
    return path.is_dir() or language_of(path) != "ceql"


FOR_ONE_QUERY = "is for one query, not for a directory of rules"


def run_rules(
    rules: RuleSet,
    stream: Stream,
    *,
    out: Path | None,
    format: Format | None,
    count: bool,
    until: str | None,
    explain: bool,
    threads: int | None,
    metadata: Sequence[str],
) -> None:
    """Finds the complex events of all rules."""
    from estero.cli.terminal import Meter, say

    try:
        rules.columns(metadata)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--metadata") from None
    chosen, meter = format_of(out, format, stream.paths), Meter()
    if explain:
        say(str(rules.explain(stream.scan)))
    answers = _answers(rules, stream, until, progress=meter, threads=threads, metadata=metadata)
    if count:
        with meter.showing("counting"):
            numbers = answers.counts()
        _show_counts(rules, numbers, metadata)
    elif out is not None:
        with meter.showing(f"writing {out}"):
            written = answers.write(out, format=chosen)
        say(f"{written:,} complex event{'' if written == 1 else 's'} in {out}")
    elif chosen is Format.TABLE:
        _show(answers, meter)
    else:
        answers.write(sys.stdout.buffer, format=chosen)


def _answers(rules: RuleSet, stream: Stream, until: str | None, **options: Any) -> RuleAnswers:
    """The answers of all rules; a usage error for `until` if no rule waits for it."""
    try:
        return rules.run(stream.scan, until=until, **options)
    except ValueError as error:
        if until is None:
            raise
        raise click.BadParameter(str(error), param_hint="--until") from None


def check_rules(path: Path, stream: Stream | None) -> None:
    """Prints the errors in the rules of a directory, one per line, as ``file:line:column: message``."""
    from estero.cli.terminal import say, working
    from estero.queries.query import opened
    from estero.queries.rules.read_rules import read_files
    from estero.queries.rules.rule_set import warn_of_notes

    with working(f"reading {path}"):
        rules, errors = read_files(path)
    errors += rules.refused.values()
    unfit: dict[str, list[QueryError]] = {}
    if stream is not None:
        with working("checking"):
            unfit = rules.check(stream.scan)
            schema = opened(stream.scan).schema
            fitting = [name for name in rules.names if name not in unfit]
            notes = {name: rules[name].statement.notes_on(schema) for name in fitting}
        warn_of_notes({name: said for name, said in notes.items() if said})
    for name, wrong in unfit.items():
        for error in wrong:
            error.rule = str(rules.file_of(name))
        errors += wrong
    for error in errors:
        line, column = error.line_and_column
        print(legible(f"{error.rule}:{line}:{column}: {_sentence(error)}"))
    if errors:
        right = len(rules) - len(unfit)
        say(f"{len(errors):,} error{'s' * (len(errors) > 1)}, {right:,} rule{'s' * (right != 1)} without")
        raise click.exceptions.Exit(2)
    print(f"{path}: {len(rules)} rule{'' if len(rules) == 1 else 's'}: ok")


def _sentence(error: QueryError) -> str:
    """An error on one line."""
    said = error.message
    said += f"; expected: {error.expected}" if error.expected else ""
    return f"{said} (hint: {error.hint})" if error.hint else said


def rules_in(path: Path, values: Mapping[str, object]) -> RuleSet:
    """The rules of a directory, with values for parameters; raises their errors if none can be run."""
    from estero.cli.terminal import working

    with working(f"reading {path}"):
        rules = estero.rules(path)
    if not rules.names and rules.refused:
        raise next(iter(rules.refused.values()))
    try:
        return rules.bind(values) if values else rules
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--param") from None


def _show_counts(rules: RuleSet, numbers: Mapping[str, int], metadata: Sequence[str]) -> None:
    """Prints a row for each rule; if there are many, only those that have complex events, the most first."""
    from estero.cli.tables import Table
    from estero.cli.terminal import ROWS_OF_A_TABLE, say, show_table

    shown = dict(numbers)
    if len(numbers) > ROWS_OF_A_TABLE:
        with_answers = [(name, number) for name, number in numbers.items() if number]
        shown = dict(sorted(with_answers, key=lambda one: -one[1]))
    said = rules.metadata
    rows = [
        [legible(name), *(legible(said.get(name, {}).get(word, "")) for word in metadata), f"{number:,}"]
        for name, number in shown.items()
    ]
    heads = ["rule", *(f"rule_{word}" for word in metadata), "complex events"]
    show_table(Table(heads, [False] * (len(heads) - 1) + [True], [*rows]))
    if len(shown) < len(numbers):
        say(f"{len(numbers) - len(shown):,} rules have no complex events")


def _show(answers: RuleAnswers, meter: Meter) -> None:
    """Prints the first rows of the common table."""
    from estero.cli.tables import Table
    from estero.cli.terminal import ROWS_OF_A_TABLE, say, short, show_table

    rows: list[dict[str, Any]] = []
    with meter.showing("recognising"):
        for batch in answers.batches():
            rows += batch.slice(0, ROWS_OF_A_TABLE + 1 - len(rows)).to_pylist(maps_as_pydicts="strict")
            if len(rows) > ROWS_OF_A_TABLE:
                break
    names = answers.schema.names
    cells = [
        [_named(row[name]) if isinstance(row[name], dict) else short(row[name]) for name in names]
        for row in rows[:ROWS_OF_A_TABLE]
    ]
    show_table(Table(names, [name in {"start", "end"} for name in names], [*cells]))
    if not rows:
        say("no complex events")
    if len(rows) > ROWS_OF_A_TABLE:
        say(f"the first {ROWS_OF_A_TABLE}; --count says how many there are, --out FILE writes them all")


def _named(values: Mapping[str, str | Sequence[int]]) -> str:
    """The entries of a map, one per line."""
    return "\n".join(legible(f"{name}={value}") for name, value in values.items())
