"""Checks of a clause as a whole: names of variables, subsets and measures, and contradictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from estero.errors import QueryError, Span
from estero.language.row_patterns.clauses import raise_all
from estero.language.row_patterns.expressions import Names, Reader
from estero.language.row_patterns.slots import Expression
from estero.language.row_patterns.tree import Excluded, Named, RowPatternClause, nodes_of


def check_clause(clause: RowPatternClause) -> None:
    """Raises `QueryError` with all errors that do not depend on the columns."""
    raise_all(
        [
            *_of_define(clause),
            *_of_subsets(clause),
            *_of_measures(clause),
            *_of_skip(clause),
            *_of_exclusions(clause),
        ]
    )


def read_expressions(names: Names) -> tuple[dict[str, Expression], dict[str, Expression]]:
    """The conditions by variable and the measures by name; raises `QueryError` with all errors."""
    errors: list[QueryError] = []
    clause = names.clause
    conditions: dict[str, Expression] = {}
    measures: dict[str, Expression] = {}
    for entry in clause.define:
        try:
            conditions[entry.name.casefold()] = Reader(names, "DEFINE", entry.name.casefold()).read(
                entry.expression
            )
        except QueryError as error:
            errors.append(error)
    earlier: dict[str, exp.Expr] = {}
    for entry in clause.measures:
        reader = Reader(names, "MEASURES")
        try:
            measures[entry.name] = reader.read(entry.expression, earlier)
            earlier[entry.name] = reader.tree
        except QueryError as error:
            errors.append(error)
    raise_all(errors)
    return conditions, measures


def _wrong(clause: RowPatternClause, message: str, span: Span, hint: str = "") -> QueryError:
    piece = clause.text[span.start : span.end]
    return QueryError(message, text=clause.text, span=span, found=piece, hint=hint)


def _twice(entries: Sequence[Named]) -> Iterator[Named]:
    seen: set[str] = set()
    for entry in entries:
        if entry.name.casefold() in seen:
            yield entry
        seen.add(entry.name.casefold())


def _variables(clause: RowPatternClause) -> str:
    return f"its variables are {', '.join(map(str, clause.variables.values()))}"


def _of_define(clause: RowPatternClause) -> Iterator[QueryError]:
    for entry in clause.define:
        if entry.name.casefold() not in clause.variables:
            yield _wrong(
                clause,
                f"DEFINE has the variable {entry.name!r}, which PATTERN does not use",
                entry.span,
                _variables(clause),
            )
    for entry in _twice(clause.define):
        yield _wrong(
            clause, f"{entry.name!r} is defined more than once", entry.span, "join the conditions by AND"
        )


def _of_subsets(clause: RowPatternClause) -> Iterator[QueryError]:
    names = [subset.variable.key for subset in clause.subsets]
    for place, subset in enumerate(clause.subsets):
        variable = subset.variable
        if variable.key in clause.variables:
            yield _wrong(
                clause,
                f"{variable.name!r} is already a pattern variable",
                variable.span,
                "give the subset another name",
            )
        if variable.key in names[:place]:
            yield _wrong(clause, f"the subset {variable.name!r} is declared twice", variable.span)
        for part in subset.of:
            if part.key in names and part.key not in clause.variables:
                yield _wrong(
                    clause,
                    f"the subset has {part.name!r}, which is itself a SUBSET",
                    part.span,
                    "list the variables of PATTERN",
                )
            elif part.key not in clause.variables:
                yield _wrong(
                    clause, f"unknown pattern variable {part.name!r} in SUBSET", part.span, _variables(clause)
                )


def _of_measures(clause: RowPatternClause) -> Iterator[QueryError]:
    for entry in _twice(clause.measures):
        yield _wrong(
            clause,
            f"Duplicate name: there are two measures {entry.name!r}",
            entry.span,
            "give one another name",
        )
    if clause.rows == "one" and not clause.measures and not clause.partition_by:
        yield _wrong(
            clause,
            "ONE ROW PER MATCH without MEASURES and PARTITION BY gives a table without columns",
            Span(clause.span.start, clause.span.start + 1),
            "add MEASURES, or ALL ROWS PER MATCH",
        )


def _of_skip(clause: RowPatternClause) -> Iterator[QueryError]:
    variable = clause.skip.variable
    if variable is not None and variable.key not in clause.names:
        yield _wrong(
            clause, f"{variable.name!r} is not a pattern variable", variable.span, _variables(clause)
        )


def _of_exclusions(clause: RowPatternClause) -> Iterator[QueryError]:
    if clause.rows == "all unmatched" and any(
        isinstance(node, Excluded) for node in nodes_of(clause.pattern)
    ):
        yield _wrong(
            clause,
            "the exclusion {- -} is not allowed with ALL ROWS PER MATCH WITH UNMATCHED ROWS",
            clause.pattern_span,
            "leave out {- -} or WITH UNMATCHED ROWS",
        )
