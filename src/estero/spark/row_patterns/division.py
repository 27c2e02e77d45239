"""How tasks on Spark divide the rows of a MATCH_RECOGNIZE, as far as the clause alone decides it.

Without PARTITION BY rows are divided by ranges of time, each followed by the window. Matches from a row
depend only on the rows of its window, so a task finds the matches that begin in its range. Which of these
AFTER MATCH SKIP takes depends on all matches before; a task therefore follows the search from each row at
which it could enter the range, and a last one takes the matches in their order (range_work.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from estero.language.row_patterns.tree import (
    Choice,
    Excluded,
    Repetition,
    RowPattern,
    RowPatternClause,
    Sequence,
    Skip,
    Variable,
    nodes_of,
    parts_of,
)
from estero.recognize.row_patterns.resumption import ends_with_partition

if TYPE_CHECKING:
    from estero.recognize.row_patterns.evaluation import Evaluation
    from estero.spark.row_patterns.time_axis import TimeAxis


def is_chained(clause: RowPatternClause) -> bool:
    """Whether AFTER MATCH SKIP leaves out matches, so that ranges do not know which of theirs count."""
    return clause.skip.to != "next"


def why_one_task(evaluation: Evaluation, axis: TimeAxis | None) -> str:
    """The reason why one task must see all rows without PARTITION BY in order; empty if ranges may.

    `axis` has the times of the first entry of ORDER BY; it is None without one.
    """
    clause = evaluation.clause
    if clause.within is None or axis is None:
        return "without WITHIN a match may extend to any row"
    if ends_with_partition(clause):
        return "$ is the last of all rows"
    if evaluation.reads_number:
        return "MATCH_NUMBER() depends on all earlier matches"
    if clause.rows == "all unmatched":
        return "which rows are unmatched depends on all earlier matches"
    if axis.why_not:
        return axis.why_not
    if not is_chained(clause):
        return ""
    if evaluation.conditions.far:
        return "DEFINE refers to the match so far, which costs too much from rows at which no match is taken"
    if clause.rows != "one" and any(isinstance(node, Excluded) for node in nodes_of(clause.pattern)):
        return "a match without shown rows makes the search skip others"
    if not always_goes_on(clause.pattern, clause.skip, clause.names):
        return f"AFTER MATCH SKIP {clause.skip} may find no row at which to resume"
    return ""


def always_goes_on(pattern: RowPattern, skip: Skip, names: Mapping[str, frozenset[str]]) -> bool:
    """Whether AFTER MATCH SKIP always resumes after the first row of a match that has rows."""
    if skip.variable is None:
        return True
    return _goes_on(pattern, names[skip.variable.key], first=skip.to == "first")


def _goes_on(pattern: RowPattern, wanted: frozenset[str], *, first: bool) -> bool:
    match pattern:
        case Choice(alternatives):
            return all(_goes_on(part, wanted, first=first) for part in alternatives)
        case Repetition(part=part, least=least):
            return least > 0 and _goes_on(part, wanted, first=first)
        case Excluded(part):
            return _goes_on(part, wanted, first=first)
        case Sequence(parts):
            before = 0
            for part in parts:
                if before and _always_has(part, wanted):
                    return True
                if first and any(
                    isinstance(node, Variable) and node.key in wanted for node in nodes_of(part)
                ):
                    return False
                before += _fewest_rows(part)
    return False


def _always_has(pattern: RowPattern, wanted: frozenset[str]) -> bool:
    """Whether each match of a part has a row of one of these variables."""
    match pattern:
        case Variable():
            return pattern.key in wanted
        case Choice(alternatives):
            return all(_always_has(part, wanted) for part in alternatives)
        case Repetition(part=part, least=least):
            return least > 0 and _always_has(part, wanted)
    return any(_always_has(part, wanted) for part in parts_of(pattern))


def _fewest_rows(pattern: RowPattern) -> int:
    match pattern:
        case Variable():
            return 1
        case Choice(alternatives):
            return min(map(_fewest_rows, alternatives))
        case Repetition(part=part, least=least):
            return least * _fewest_rows(part)
    return sum(map(_fewest_rows, parts_of(pattern)))


def division_in_words(evaluation: Evaluation, axis: TimeAxis | None, *, streaming: bool) -> str:
    """The line of `explain_sql` on tasks; it has "one ordered task" if one has to see all rows."""
    clause = evaluation.clause
    if streaming:
        return (
            "each bucket has some of the partitions, and one task processes a bucket"
            if clause.partition_by
            else "one ordered task, with one bucket for all rows"
        )
    if clause.partition_by:
        return "each task processes some of the partitions"
    why = why_one_task(evaluation, axis)
    if why:
        return f"one ordered task, because {why}"
    taken = ", and one takes their matches in order" if is_chained(clause) else ""
    how = f"each task processes a range of time and the window after it{taken}"
    return f"{how}; with few rows or few tasks, there is one ordered task"
