"""The explanation of a query in plain words: its plan, filters, automaton and SQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from estero.automata.cea import FIRST, EventPredicate
from estero.errors import legible
from estero.language.check.notes import notes
from estero.language.tree.query import Consume, SelectExpression
from estero.plan.division import division_in_words, threads_in_words
from estero.plan.plan import Plan
from estero.plan.reach import reach_in_words
from estero.queries.automaton_value import Automaton
from estero.queries.candidates import many_candidates

if TYPE_CHECKING:
    from estero.markup.html import Html

_MOST_LETTERS: Final = 100_000
"""The largest number of characters of a section that a notebook shows."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of one query.

    `sql` is the statement for DuckDB, and `read` lists the columns and rows that are read; without events
    there is neither. `tasks` says how tasks on Spark divide the work; by default, it is the work on a batch.
    """

    plan: Plan
    sql: str | None = None
    tasks: str | None = None
    read: tuple[str, ...] = ()

    def __str__(self) -> str:
        blocks = ("\n  ".join((title, *body.splitlines())) for title, body in self.sections())
        return legible("\n\n".join(blocks), lines=True)

    def sections(self) -> Iterator[tuple[str, str]]:
        """Titles with their texts, in order of evaluation."""
        plan = self.plan
        yield "Query", self.plan.text
        yield "Plan", "\n".join(plan_lines(plan, self.tasks))
        remarks = "\n".join([*notes(plan.tree), *many_candidates(plan)])
        if remarks:
            yield "Notes", remarks
        if self.read:
            yield "Read", "\n".join(self.read)
        filters = "\n".join(plan.filter_lines())
        if filters:
            yield "Filters", filters
        bits = _predicate_lines([*plan.classification.predicates, *[FIRST] * plan.from_first])
        yield "Predicates (one bit each)", "\n".join(bits)
        if plan.roles is not None:
            yield "Rows of events", "\n".join(plan.roles.lines())
        for title, lines in plan.automaton_sections():
            yield title, "\n".join(lines)
        if self.sql is not None:
            from estero.classify.classify import spark_text
            from estero.classify.duckdb_dialect import DUCKDB

            yield "Classification (DuckDB)", DUCKDB.readable(self.sql)
            yield "Classification (Spark)", spark_text(plan.classification)

    @property
    def automaton(self) -> Automaton:
        """The automaton of the query (a CEA, chain-CEA or PCEA) and the filters evaluated after it."""
        return Automaton.of(self.plan)

    def svg(self) -> str:
        """The picture of the automaton, or of the q-tree of a join."""
        from estero.plots.automaton import drawn_alone

        return drawn_alone(self.plan.drawn)

    def _repr_html_(self) -> str:
        from estero.markup.colours import LabelColours
        from estero.markup.html import element, text
        from estero.markup.query_text import highlighted, in_lines
        from estero.markup.style import shown
        from estero.plots.automaton import drawn_inline

        places = LabelColours.of_query(self.plan.tree).places
        parts: list[Html] = []
        for title, body in self.sections():
            if title == "Query":
                shown_body = highlighted(in_lines(body), places)
            elif title == "Filters" or title.startswith("Predicates"):
                shown_body = highlighted(body, places)
            elif title.startswith("Classification"):
                shown_body = highlighted(body, sql=True)
            else:
                shown_body = text(body, most=_MOST_LETTERS, lines=True)
            parts.append(_folded(title, element("pre", shown_body), is_open=not parts))
        return shown(*parts, _folded("Picture", drawn_inline(self.plan.drawn), is_open=True))


def _folded(title: str, content: Html, *, is_open: bool) -> Html:
    """A collapsible section of the page."""
    from estero.markup.html import element

    return element("details", element("summary", title), content, open="" if is_open else None)


def plan_lines(plan: Plan, tasks: str | None) -> Iterator[str]:
    """The plan, the reasons against other plans, and its use of events, memory, threads and tasks."""
    yield from plan.lines()
    yield plan.count_line()
    for title, reason in plan.refused:
        yield f"not {title}: {reason}"
    yield from plan.key_lines()
    yield f"events kept: {_kept(plan)}"
    if plan.tree.window is None:
        until = " until it is too old for its next step" if plan.forgets_by_age else ""
        yield f"window: none, so every partial match is kept{until}"
    else:
        yield f"window: at most {plan.tree.window!s} from start to end, which bounds memory use"
    if plan.consume is not Consume.NONE:
        of = "" if plan.consume is Consume.ANY else " of its partition"
        yield f"consume: after each position with an answer, all partial matches{of} are dropped"
    if plan.limit is not None:
        number = f"{plan.limit.most} complex event{'s' * (plan.limit.most != 1)}"
        where = "in each partition" if plan.shown_keys else "in the whole stream"
        if plan.interval is not None:
            yield f"limit: at most {number} in {plan.tree.per!s}, {where}; the others are only counted"
        else:
            yield f"limit: at most {number} at each end, where enumeration then stops"
    values = [str(item) for item in plan.tree.select or () if isinstance(item, SelectExpression)]
    if values:
        yield f"values: {', '.join(values)}; computed in batches as complex events are listed"
    skipped = reach_in_words(plan)
    yield f"in process: {threads_in_words(plan)}{'; ' if skipped else ''}{skipped}"
    yield f"on Spark: {tasks or division_in_words(plan)}"


def _kept(plan: Plan) -> str:
    if not plan.classification.keep_all:
        return "those that satisfy a predicate; the classification drops all others"
    if plan.keyed:
        return "all that have a partition key, because their positions in the partition matter"
    return "all, because a run can begin or end with any of them"


def _predicate_lines(predicates: Iterable[EventPredicate]) -> Iterator[str]:
    """The predicates with their bits, one per line."""
    for bit, predicate in enumerate(predicates):
        yield f"b{bit}  {predicate}{' (determined by its position)' if predicate == FIRST else ''}"
