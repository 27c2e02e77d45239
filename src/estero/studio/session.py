"""A session: events and the questions about queries over them, as messages and their answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any, Final

from estero.automata.cea import CEA
from estero.automata.skeleton import skeleton
from estero.errors import EsteroError, EsteroWarning, LimitExceeded, QueryError, legible
from estero.events.scan import Scan
from estero.language.syntax.vocabulary import vocabulary
from estero.language.tree.names import some
from estero.plots.automaton import drawn_inline
from estero.queries.parameters import value_in
from estero.queries.query import Query
from estero.queries.texts import check
from estero.studio.as_code import as_code
from estero.studio.completion import completions
from estero.studio.fixes import fixes_of
from estero.studio.offsets import from_browser, span_in_browser, to_browser
from estero.studio.shown import row_of, shown
from estero.studio.stream import Stream
from estero.studio.ways import way_of
from estero.studio.without import without
from estero.system.cached_property import cached_property

if TYPE_CHECKING:
    from estero.answers.answer import Answer
    from estero.queries.explanation import Explanation

ROWS: Final = 50
"""The rows of a page by default."""
MOST_ROWS: Final = 500
FEW: Final = 1 << 17
"""The number of events up to which one thread answers: others start slowly, and the page needs a core."""
SECONDS: Final = 60.0
"""The default time limit of a question."""
_SECONDS_WHY: Final = 10.0
"""The seconds of the limit that the enumeration of a why-not may take."""
_WRONG: Final = (EsteroError, ValueError, IndexError, KeyError, TypeError, MemoryError)
"""The errors that are reported in words in the reply."""
_MOST_FIXED: Final = 5
"""The largest number of errors for which fixes are sought."""

Message = Mapping[str, Any]
Reply = tuple[dict[str, Any], list[bytes]]
"""A reply as JSON, and columns as bytes after it."""


@dataclass(frozen=True, slots=True)
class Example:
    """A query to click, and a description of what it finds."""

    title: str
    text: str


@dataclass
class _Asked:
    """The latest query: its answer remembers its count, and its plan is made once."""

    key: tuple[str, str]
    query: Query
    answer: Answer
    scan: Scan

    @cached_property
    def explanation(self) -> Explanation:
        """The result of `explain` for the query."""
        return self.query.explain(self.scan)


class Session:
    """One stream of events, and the answers to messages about it.

    A message is a dict with ``kind``, one of `KINDS`; most have the ``text`` of a query, and ``params``, the
    values of its parameters as texts. `answer` never raises for what users can get wrong: the reply has
    ``error``, in words. Numbers of complex events are texts, as they may be of any size. Places in a text are
    in units of UTF-16. A question stops after `seconds`, or once it is `cancelled`, when the next batch of
    events has been read.
    """

    def __init__(
        self,
        scan: Scan,
        *,
        text: str | None = None,
        examples: tuple[Example, ...] = (),
        seconds: float = SECONDS,
        title: str = "",
        cancelled: Callable[[], bool] | None = None,
    ) -> None:
        self.stream: Stream = Stream(scan)
        self.text = text
        self.examples = examples
        self.title = title
        self.seconds = seconds
        self._cancelled = cancelled or (lambda: False)
        self._ends = 0.0
        self._asked: _Asked | None = None

    def answer(self, message: Message) -> Reply:
        """The reply to a message: its ``kind``, content, duration ``ms``, and notes on the query."""
        kind = str(message.get("kind"))
        ask = _QUESTIONS.get(kind)
        begun = perf_counter()
        self._ends = monotonic() + self.seconds
        buffers: list[bytes] = []
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", EsteroWarning)
            try:
                if ask is None:
                    raise ValueError(f"{kind} is not a message: there are {some(KINDS, most=99, word='and')}")
                reply = ask(self, message)
                buffers = reply.pop("buffers", [])
            except _WRONG as error:
                reply = {"error": _in_words(error)}
        notes = [legible(str(one.message)) for one in said if issubclass(one.category, EsteroWarning)]
        reply["notes"] = [*reply.get("notes", []), *dict.fromkeys(notes)]
        return {"kind": kind, **reply, "ms": round((perf_counter() - begun) * 1e3, 1)}, buffers

    # ---------------------------------------------------------------------- of the events

    def hello(self, _message: Message) -> dict[str, Any]:
        """The data with which a page begins: words of the language, columns, the first query, examples."""
        from estero import __version__

        stream = self.stream
        return {
            "version": __version__,
            "title": self.title,
            "words": vocabulary(),
            "types": list(stream.types),
            "columns": [
                {"name": name, "kind": stream.source.column_types[name].kind.value}
                for name in stream.source.columns
            ],
            "lanes": list(stream.columns_for_lanes),
            "time": stream.source.schema.time,
            "events": stream.table.num_rows,
            "text": self.text if self.text is not None else self._first_text(),
            "examples": [{"title": one.title, "text": one.text} for one in self.examples],
        }

    def event(self, message: Message) -> dict[str, Any]:
        """The event at a ``position``."""
        return {"event": self.stream.event(_number(message, "position"))}

    def timeline(self, message: Message) -> dict[str, Any]:
        """The events from ``from`` to ``to`` on the axis, in lanes ``by`` a column (`Stream.timeline`)."""
        by, first, last = (message.get(name) for name in ("by", "from", "to"))
        head, buffers = self.stream.timeline(
            None if by is None else str(by),
            None if first is None else float(first),
            None if last is None else float(last),
        )
        return {**head, "by": by, "buffers": buffers}

    # ---------------------------------------------------------------------- of the text

    def check(self, message: Message) -> dict[str, Any]:
        """The errors of the text, each with its place, its hint, and the edits that the hint suggests."""
        text, values = _text(message), _values(message)
        errors = self._complaints(text, values)
        described = []
        for number, error in enumerate(errors):
            fixes = []
            if number < _MOST_FIXED:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", EsteroWarning)
                    fixes = fixes_of(error, errors, lambda mended: self._complaints(mended, values))
            described.append(
                {
                    "message": legible(error.message),
                    "hint": legible(error.hint, lines=True),
                    "expected": legible(error.expected),
                    **span_in_browser(text, error.span),
                    "fixes": [{**span_in_browser(text, fix.span), "insert": fix.insert} for fix in fixes],
                }
            )
        reply: dict[str, Any] = {"errors": described, "parameters": [], "notes": [], "key": None}
        if not errors:
            query = Query(text)
            keys = query.tree.partition_by
            reply["parameters"] = list(query.parameters)
            reply["notes"] = [legible(note) for note in query.notes()]
            reply["key"] = next((key.alternatives[0] for key in keys), None)
        return reply

    def complete(self, message: Message) -> dict[str, Any]:
        """The completions at a ``place``."""
        text, stream = _text(message), self.stream
        kinds = {name: kind.kind.value for name, kind in stream.source.column_types.items()}
        place = from_browser(text, _number(message, "place"))
        start, options = completions(text, place, stream.source.schema, stream.types, kinds)
        return {"from": to_browser(text, start), "options": [option.shown() for option in options]}

    def code(self, message: Message) -> dict[str, Any]:
        """The query as Python, command line and Spark."""
        return {"code": as_code(_text(message), self.stream.asked, _values(message))}

    def without(self, message: Message) -> dict[str, Any]:
        """The text without a ``condition`` of a why-not; None if it cannot be removed."""
        return {"text": without(_text(message), str(message["of"]), str(message["condition"]))}

    # ---------------------------------------------------------------------- of the query

    def typed(self, message: Message) -> dict[str, Any]:
        """The result of `check` and, if there are no errors and all parameters have values, that of `run`.

        So one message is enough for a keystroke. ``ran`` says whether there are rows.
        """
        checked = self.check(message)
        if checked["errors"] or not set(checked["parameters"]) <= _values(message).keys():
            return {**checked, "ran": False}
        try:
            return {**checked, **self.run(message), "ran": True}
        except _WRONG as error:
            return {**checked, "error": _in_words(error), "ran": False}

    def automaton(self, message: Message) -> dict[str, Any]:
        """The automaton as a picture of HTML."""
        machine = self._remembered(message).explanation.plan.machine
        cea = machine if isinstance(machine, CEA) else skeleton(machine, comparing=True)
        return {"automaton": drawn_inline(cea)}

    def plan(self, message: Message) -> dict[str, Any]:
        """The explanation of the plan, in sections."""
        sections = self._remembered(message).explanation.sections()
        return {"sections": [{"title": title, "body": legible(body, lines=True)} for title, body in sections]}

    def run(self, message: Message) -> dict[str, Any]:
        """The first page, and the number of complex events if it can be known without enumeration."""
        answer = self._answer(message)
        reply = self.page({**message, "at": 0})
        if reply["last"]:
            return {**reply, "count": str(len(reply["rows"]))}
        counted = answer.quick_count
        return {**reply, "count": None if counted is None else str(counted())}

    def count(self, message: Message) -> dict[str, Any]:
        """The number of complex events, however long it takes."""
        return {"count": str(self._answer(message).count())}

    def page(self, message: Message) -> dict[str, Any]:
        """The complex events from number ``at`` on (a number, or its text): at most ``rows`` of them."""
        at, rows = _number(message, "at", 0), min(_number(message, "rows", ROWS), MOST_ROWS)
        if at < 0 or rows < 0:
            raise ValueError("pages begin at 0")
        complex_events = list(self._answer(message)[at : at + rows + 1])
        return {
            "at": str(at),
            "rows": [self._row(at + number, one) for number, one in enumerate(complex_events[:rows])],
            "last": len(complex_events) <= rows,
        }

    def states(self, message: Message) -> dict[str, Any]:
        """The path of complex event ``at`` through the automaton, or ``why`` it is unknown (`way_of`)."""
        at = _number(message, "at")
        plan = self._remembered(message).explanation.plan
        one = self._answer(message)[at]
        marks: dict[int, set[str]] = {}
        for label, positions in one.positions.items():
            for position in positions:
                marks.setdefault(position, set()).add(label)
        labels = {position: frozenset(names) for position, names in marks.items()}
        way = way_of(plan, self.stream, one.start, one.end, labels)
        return {"at": str(at), "way": way.steps, "why": way.why}

    def funnel(self, message: Message) -> dict[str, Any]:
        """The number of starts that reach each step."""
        table = self._answer(message).funnel().to_arrow()
        rows = [{name: shown(value) for name, value in row.items()} for row in table.to_pylist()]
        return {"steps": rows}

    def partials(self, message: Message) -> dict[str, Any]:
        """The first partial matches, and their number."""
        at, rows = _number(message, "at", 0), min(_number(message, "rows", ROWS), MOST_ROWS)
        answer = self._answer(message).partials()
        complex_events = list(answer[at : at + rows])
        return {
            "count": str(answer.count()),
            "at": str(at),
            "rows": [self._row(at + number, one) for number, one in enumerate(complex_events)],
        }

    def why_not(self, message: Message) -> dict[str, Any]:
        """The reasons why there are not more complex events, with the text without each, if possible."""
        text = _text(message)
        why_not = self._answer(message).why_not(seconds=min(_SECONDS_WHY, self.seconds))
        reasons = [
            {
                "kind": reason.kind,
                "condition": legible(reason.condition),
                "events": reason.events,
                "nearest": legible(reason.nearest),
                "without": without(text, reason.kind, reason.condition),
            }
            for reason in why_not.reasons
        ]
        return {
            "found": None if why_not.found is None else str(why_not.found),
            "undecided": why_not.undecided,
            "steps": [{"part": legible(step.part), "events": step.events} for step in why_not.steps],
            "waited": legible(why_not.waited_for),
            "came": why_not.came,
            "passed": why_not.passed,
            "reasons": reasons,
            "lines": why_not.lines(),
            "unanswered": [legible(one) for one in why_not.unanswered],
        }

    # ---------------------------------------------------------------------- inside

    def _complaints(self, text: str, values: dict[str, object]) -> list[QueryError]:
        """The errors of a text; with parameters, those over the events once all of them have values."""
        if "$" not in text:
            return self._fitting(text)
        errors = check(text)
        if errors or not (parameters := Query(text).parameters):
            return errors or check(text, self.stream.scan)
        if not set(parameters) <= values.keys():
            return []
        try:
            return Query(text).bind({name: values[name] for name in parameters}).check(self.stream.scan)
        except QueryError as error:
            return [error, *error.others]

    def _fitting(self, text: str) -> list[QueryError]:
        """The result of `check` for a text; one that can be parsed is parsed once, for its answer, too."""
        try:
            errors = Query(text).check(self.stream.scan)
        except QueryError:
            return check(text, self.stream.scan)
        return sorted(errors, key=lambda error: (error.span.start, -error.span.end))

    def _answer(self, message: Message) -> Answer:
        return self._remembered(message).answer

    def _remembered(self, message: Message) -> _Asked:
        text, values = _text(message), _values(message)
        key = (text, repr(values))
        if self._asked is None or self._asked.key != key:
            query = Query(text)
            given = {name: values[name] for name in query.parameters if name in values} if values else {}
            bound = query.bind(given) if given else query
            threads = 1 if self.stream.table.num_rows <= FEW else None
            answer = bound.run(self.stream.scan, progress=self._progress, threads=threads)
            self._asked = _Asked(key, bound, answer, self.stream.scan)
        return self._asked

    def _progress(self, _read: int, _all: int | None) -> None:
        if self._cancelled():
            raise LimitExceeded("cancelled")
        if monotonic() > self._ends:
            raise LimitExceeded(
                f"this takes longer than {self.seconds:g} seconds: "
                "ask for less, by a window, keys or a filter"
            )

    def _row(self, number: int, one: Any) -> dict[str, Any]:
        row = row_of(number, one)
        row["from"], row["to"] = self.stream.places([one.start, one.end])
        for label in row["labels"]:
            label["at"] = self.stream.places(label["positions"])
        return row

    def _first_text(self) -> str:
        """A query to begin with, over the first existing types."""
        from estero.language.tree.words import quoted

        names = [quoted(name) for name in self.stream.types[:2]] or ["Event"]
        if len(names) == 1:
            return f"SELECT *\nWHERE {names[0]} AS a\nLIMIT 10 PER END\n"
        return f"SELECT *\nWHERE {names[0]} AS a ; {names[1]} AS b\nWITHIN 10 EVENTS\n"


def _text(message: Message) -> str:
    text = message.get("text")
    if not isinstance(text, str):
        raise TypeError("the message has no text")
    return text


def _number(message: Message, name: str, otherwise: int | None = None) -> int:
    """An integer in a message, which may be its text: it can be longer than JavaScript's numbers."""
    value: Any = message.get(name, otherwise)
    try:
        return int(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is a whole number, such as 0, not {value!r}") from None


def _values(message: Message) -> dict[str, object]:
    params = message.get("params") or {}
    return {str(name): value_in(str(value)) for name, value in params.items() if str(value).strip()}


def _in_words(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "the question needs more memory than it may have: ask for less"
    said = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return legible(said or type(error).__name__, lines=True)


_QUESTIONS: Final[dict[str, Callable[[Session, Message], dict[str, Any]]]] = {
    "hello": Session.hello,
    "event": Session.event,
    "timeline": Session.timeline,
    "check": Session.check,
    "complete": Session.complete,
    "code": Session.code,
    "without": Session.without,
    "typed": Session.typed,
    "automaton": Session.automaton,
    "plan": Session.plan,
    "run": Session.run,
    "count": Session.count,
    "page": Session.page,
    "states": Session.states,
    "funnel": Session.funnel,
    "partials": Session.partials,
    "why_not": Session.why_not,
}
KINDS: Final = tuple(_QUESTIONS)
"""The kinds of messages."""
