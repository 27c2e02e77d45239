"""Many queries by name, over one stream: a set of rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from estero.arguments import checked, shown
from estero.errors import QueryError, warn
from estero.events.scan import Scan
from estero.language.tree.names import some, suggestion
from estero.queries.query import Query, on_spark, opened
from estero.queries.rules.rule_files import (
    RuleText,
    language_of,
)
from estero.recognize.recognizers.memory_limit import MemoryPolicy  # for `checked`
from estero.system.collection import without_collection
from estero.system.cores import threads_to_use

if TYPE_CHECKING:
    from estero.answers.rule_answers import RuleAnswers
    from estero.answers.rule_metadata import RuleColumns
    from estero.events.sources import Source
    from estero.events.streams.stream_layout import Keep, Lateness, StreamLayout
    from estero.language.tree.schema import EventLayout, Schema
    from estero.plan.plan import Layout, Plan
    from estero.queries.rules.explanation import RulesExplanation
    from estero.recognize.rules.set_recognizer import RuleSetRecognizer
    from estero.recognize.state_bytes import State
    from estero.recognize.until import Until

Paths: TypeAlias = "str | PathLike[str] | Sequence[str | PathLike[str]]"
Named: TypeAlias = "Mapping[str, Query | str]"


@checked
class RuleSet:
    """Queries by name, over one stream (`estero.rules` makes one).

    Each rule has exactly the answer that its query has alone; work that rules have in common is done once.
    Rules that differ only in the constants of their conditions are recognized together, with the rule as a
    part of the partition key. `metadata` holds what the file of a rule says about it, in comment lines or in
    YAML. `refused` holds the rules that cannot be run, by name, with the error that says why.

    `add`, `remove` and `replace` affect later runs only: a run keeps the rules that it began with. Sets may
    be used from several threads.
    """

    def __init__(
        self,
        rules: Mapping[str, Query],
        texts: Mapping[str, RuleText] | None = None,
        refused: Mapping[str, QueryError] | None = None,
    ) -> None:
        self._rules: Mapping[str, Query] = MappingProxyType(dict(rules))
        self._texts: Mapping[str, RuleText] = dict(texts or {})
        self._refused: Mapping[str, QueryError] = MappingProxyType(dict(refused or {}))
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {"rules": dict(self._rules), "texts": dict(self._texts), "refused": dict(self._refused)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._rules = MappingProxyType(state["rules"])
        self._texts = state["texts"]
        self._refused = MappingProxyType(state["refused"])
        self._lock = Lock()

    # ------------------------------------------------------------------------------------ its rules

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the rules, in order."""
        return tuple(self._rules)

    @property
    def metadata(self) -> dict[str, dict[str, str]]:
        """The metadata of each rule, by word: in CEQL, comment lines at the top, ``-- title: …``.

        Rules in Sigma and Elastic's have title, id, level, status and tags, and every rule from a file has
        ``file``. ``techniques`` are the ATT&CK techniques among the tags, as ``T1059.001``.
        """
        return {name: self._texts[name].said if name in self._texts else {} for name in self._rules}

    @property
    def refused(self) -> Mapping[str, QueryError]:
        """The rules that cannot be run, by name, with errors that say why and where."""
        return self._refused

    def file_of(self, name: str) -> Path | None:
        """The file of a rule, None for a rule without one; raises KeyError for an unknown name."""
        text = self._texts.get(self._known(name))
        return None if text is None else text.file

    def text_of(self, name: str) -> str:
        """The text of a rule as its file has it, else of its query; raises KeyError for an unknown name."""
        text = self._texts.get(self._known(name))
        return str(self._rules[name]) if text is None else text.text

    def __getitem__(self, name: str) -> Query:
        """The query of a rule; raises KeyError for an unknown name."""
        return self._rules[self._known(name)]

    def __contains__(self, name: object) -> bool:
        return name in self._rules

    def __iter__(self) -> Iterator[str]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    def __eq__(self, other: object) -> bool:
        return dict(self._rules) == dict(other._rules) if isinstance(other, RuleSet) else NotImplemented

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def add(self, name: str, query: Query | str) -> RuleSet:
        """Adds a rule after the others and returns the set.

        Raises ValueError for a name that is taken, and `QueryError`, which names the rule, for a wrong text.
        """
        with self._lock:
            if name in self._rules:
                raise ValueError(f"there is a rule {name!r} already: replace it, or choose another name")
            self._rules = MappingProxyType({**self._rules, name: read_rule(name, query)})
        return self

    def remove(self, name: str) -> RuleSet:
        """Removes a rule and returns the set; raises KeyError for an unknown name."""
        with self._lock:
            self._known(name)
            self._rules = MappingProxyType({key: rule for key, rule in self._rules.items() if key != name})
        return self

    def replace(self, name: str, query: Query | str) -> RuleSet:
        """Replaces the query of a rule and returns the set.

        Raises KeyError for an unknown name, and `QueryError`, which names the rule, for a wrong text.
        """
        with self._lock:
            self._known(name)
            self._rules = MappingProxyType({**self._rules, name: read_rule(name, query)})
            self._texts = {key: text for key, text in self._texts.items() if key != name}
        return self

    def bind(self, values: Mapping[str, object] | None = None, /, **named: object) -> RuleSet:
        """The set with parameters replaced by values, in every rule that has them.

        Raises ValueError for a parameter that no rule has, and the errors of `Query.bind`.
        """
        given = {**(values or {}), **named}
        known = {name for rule in self._rules.values() for name in rule.parameters}
        for name in given:
            if name not in known:
                raise ValueError(f"no rule has the parameter ${name}{_near(name, sorted(known))}")
        bound = {
            name: rule.bind({key: value for key, value in given.items() if key in rule.parameters})
            for name, rule in self._rules.items()
        }
        return RuleSet(bound, self._texts, self._refused)

    # ------------------------------------------------------------------------------------ questions

    def run(  # noqa: PLR0913 (what users may have to say)
        self,
        events: object,
        *,
        type: str | None = None,
        time: str | None = None,
        order: Sequence[str] = (),
        time_unit: str | None = None,
        types: Sequence[str] = (),
        csv_options: Mapping[str, object] | None = None,
        until: Until | None = None,
        progress: Callable[[int, int | None], None] | None = None,
        threads: int | None = None,
        metadata: str | Sequence[str] = (),
    ) -> RuleAnswers:
        """The complex events of all rules, evaluated lazily in this process.

        The arguments are those of `Query.run`; `threads` share the rules where there are many events.
        `metadata` names entries of the rules' metadata (`RuleSet.metadata`) to show as columns after
        ``rule``: ``["title", "level"]`` adds ``rule_title`` and ``rule_level``.

        For a Spark DataFrame the answer is a DataFrame with the columns of the common table, as
        `estero.spark.recognize` gives it. Rules from Elastic's files that do not fit the events are left out
        with an `EsteroWarning`.

        Raises `QueryError`, which names the rule, for the first other rule that does not fit, `DataError` for
        events that cannot be read, and ValueError for metadata that no rule has.
        """
        from estero.events.sources import open_source
        from estero.recognize.rules.set_run import RuleSetRun

        scan = Scan.of(events, type, time, order, time_unit, types, csv_options, only_type=self.only_type)
        if scan.is_of_spark:
            for name, given in {"progress": progress, "threads": threads}.items():
                if given is not None:
                    raise ValueError(f"{name} is for events in this process: leave it out for Spark")
            matches: RuleAnswers = on_spark().recognize(scan, self, until=until, metadata=metadata)
            return matches
        from estero.answers.rule_answers import RuleAnswers

        workers = threads_to_use(threads)
        source = open_source(scan.events, scan.layout, scan.csv_options, declared=False)
        with without_collection():
            plans = self._fitting(lambda name, rule: planned(name, rule, source, scan.layout), source.schema)
        known = None
        if until is not None:
            known = _known_until(until, plans, source)
        told = None
        if progress is not None:
            from estero.recognize.source_run import Progress

            told = Progress(progress)
        run = RuleSetRun(plans, source, until=known, progress=told, threads=workers)
        return RuleAnswers(run, self.columns(metadata))

    def columns(self, words: str | Sequence[str], *, encoded: bool = True) -> RuleColumns:
        """The columns for some metadata of the rules; raises ValueError for names that no rule has."""
        from estero.answers.rule_metadata import NOTHING_SAID, RuleColumns, words_of

        if not words:
            return NOTHING_SAID
        said = self.metadata
        return RuleColumns.of(words_of(words, said), said, encoded=encoded)

    def _fitting(self, plan: Callable[[str, Query], Plan], schema: Schema) -> dict[str, Plan]:
        """The plans of the rules for events of a schema.

        Warns of rules from Elastic's files that do not fit, and of rules with fields that the events lack.
        """
        plans: dict[str, Plan] = {}
        unfit: list[str] = []
        notes: dict[str, Sequence[str]] = {}
        for name, rule in self._rules.items():
            try:
                plans[name] = plan(name, rule)
                if said := rule.statement.notes_on(schema):
                    notes[name] = said
            except QueryError as error:
                text = self._texts.get(name)
                if text is None or text.file is None or language_of(text.file) != "eql":
                    raise
                unfit.append(f"{name}: {error.message}")
        if unfit:
            number = f"{len(unfit)} rule{'s do' if len(unfit) > 1 else ' does'}"
            others = "and the others run" if plans else "and there is no other"
            warn(f"{number} not fit these events, {others}: {some(unfit, most=3, word='and')}")
        warn_of_notes(notes)
        return plans

    def recognizer(  # noqa: PLR0913 (what users may have to say)
        self,
        schema: object,
        *,
        type: str | None = None,
        time: str | None = None,
        order: Sequence[str] = (),
        time_unit: str | None = None,
        types: Sequence[str] = (),
        lateness: Lateness | None = None,
        memory_limit: int | str | None = None,
        memory_policy: MemoryPolicy = "error",
        metadata: str | Sequence[str] = (),
        keep: Keep | None = None,
    ) -> RuleSetRecognizer:
        """A recognizer of all rules for pushed events; its rules can be changed between two pushes.

        The arguments are those of `Query.recognizer`, with `metadata` as in `run`; rules that are added to
        the recognizer later have no metadata. Changes to the recognizer leave the set as it is, and the other
        way round. Rules from Elastic's files that do not fit the columns are left out with an
        `EsteroWarning`; the first other one raises `QueryError`, which names the rule.

        `keep` says how many past events to keep, so that rules which are added later can start with a replay
        of them: a duration such as "2 hours", a number of ticks of the time column, "1000 events", or a list
        of two of these. An event before the watermark is then late for every rule.
        """
        from estero.events.streams.stream_layout import layout_of

        scan = Scan.of(schema, type, time, order, time_unit, types, only_type=self.only_type)
        recognizer = self.recognizer_of(layout_of(scan, lateness, keep), metadata=metadata)
        if memory_limit is not None:
            recognizer.limit_memory(memory_limit, memory_policy)
        return recognizer

    def recognizer_of(
        self, layout: StreamLayout, state: State | None = None, *, metadata: str | Sequence[str] = ()
    ) -> RuleSetRecognizer:
        """The recognizer for events of a layout, resumed from `state` if there is one."""
        from estero.recognize.rules.set_recognizer import RuleSetRecognizer

        def plan(name: str, query: object, source: Source) -> Plan:
            if not isinstance(query, Query | str):
                raise TypeError(f"a rule is a query or its text, not {shown(query)}")
            rule = planned(name, read_rule(name, query), source, layout.columns)
            with _Naming(name):
                rule.refuse_endless()
            return rule

        source = layout.source()
        with without_collection():
            fitting = self._fitting(lambda name, rule: plan(name, rule, source), source.schema)
            rules = {name: self._rules[name] for name in fitting}
            return RuleSetRecognizer(rules, plan, layout, state, self.columns(metadata))

    def check(
        self,
        events: object = None,
        *,
        type: str | None = None,
        time: str | None = None,
        order: Sequence[str] = (),
        time_unit: str | None = None,
        types: Sequence[str] = (),
        csv_options: Mapping[str, object] | None = None,
    ) -> dict[str, list[QueryError]]:
        """All errors of the rules for these events, by rule; rules that fit have no entry.

        Without events there is nothing left to check: the texts were checked when the set was made.
        """
        if events is None:
            return {}
        scan = Scan.of(events, type, time, order, time_unit, types, csv_options, only_type=self.only_type)
        if scan.is_of_spark:
            checks = {name: rule.check(scan) for name, rule in self._rules.items()}
        else:
            source = opened(scan)  # opened once for all rules
            checks = {name: rule.errors_for(source, scan.layout) for name, rule in self._rules.items()}
        return {name: errors for name, errors in checks.items() if errors}

    def explain(
        self,
        events: object = None,
        *,
        type: str | None = None,
        time: str | None = None,
        order: Sequence[str] = (),
        time_unit: str | None = None,
        types: Sequence[str] = (),
        csv_options: Mapping[str, object] | None = None,
    ) -> RulesExplanation:
        """The plan of the set: the passes over the events, and which rules share an automaton."""
        from estero.queries.candidates import UNKNOWN
        from estero.queries.rules.explanation import RulesExplanation

        if events is None:
            return RulesExplanation(
                {name: rule.statement.plan(UNKNOWN) for name, rule in self._rules.items()}
            )
        from estero.events.sources import open_source

        scan = Scan.of(events, type, time, order, time_unit, types, csv_options, only_type=self.only_type)
        _refuse_spark(scan)
        source = open_source(scan.events, scan.layout, scan.csv_options, declared=False)
        return RulesExplanation(
            {name: planned(name, rule, source, scan.layout) for name, rule in self._rules.items()}
        )

    def plans(self, layout: Layout) -> dict[str, Plan]:
        """The plans of the rules for events of a layout, by name.

        Rules from Elastic's files that do not fit are left out with an `EsteroWarning`. Raises `QueryError`,
        which names the rule, for the first other one that does not fit.
        """

        def plan(name: str, rule: Query) -> Plan:
            with _Naming(name):
                return rule.plan(layout)

        with without_collection():
            return self._fitting(plan, layout.schema)

    @property
    def only_type(self) -> str:
        """The type of all events if no column has it: that of FROM if all rules agree."""
        asked = ((name, rule.statement.streams) for name, rule in self._rules.items())
        streams = {streams[0]: name for name, streams in asked if streams}
        return next(iter(streams)) if len(streams) == 1 else "Event"

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.names[:5])) + (", …" if len(self) > 5 else "")
        return f"estero.rules({len(self)} rules: {shown})" if shown else "estero.rules({})"

    def _known(self, name: str) -> str:
        if not isinstance(name, str):
            raise TypeError(f"a rule is asked for by its name, not {shown(name)}")
        if name not in self._rules:
            raise KeyError(f"there is no rule {name!r}{_near(name, list(self._rules))}")
        return name


def warn_of_notes(notes: Mapping[str, Sequence[str]]) -> None:
    """Warns of fields that rules use and events lack, with the names of the rules."""
    if notes:
        shown = some([f"{name}: {', '.join(said)}" for name, said in notes.items()], most=3, word="and")
        warn(f"{len(notes)} rule{'s' * (len(notes) > 1)} cannot hold in full: {shown}")


def read_rule(name: str, query: Query | str, file: RuleText | None = None) -> Query:
    """The query of a rule; raises `QueryError`, which names the rule, and ValueError for an empty name."""
    if not name.strip():
        raise ValueError("the name of a rule is not empty")
    if isinstance(query, Query):
        return query
    try:
        return Query(query)
    except QueryError as error:
        for one in (error, *error.others):
            one.rule = f"rule {name}" if file is None else str(file.file)
        raise


def planned(name: str, query: Query, source: Source, layout: EventLayout) -> Plan:
    """The plan of a rule for a source of events; raises `QueryError`, which names the rule."""
    with _Naming(name):
        query.statement.refuse_pipes()
        return query.plan_for(source, layout)


class _Naming:
    """A context manager that makes errors name the rule."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, QueryError):
            for one in (error, *error.others):
                one.rule = f"rule {self._name}"


def _known_until(until: Until, plans: Mapping[str, Plan], source: Source) -> int | None:
    """The time up to which events are known, in ticks, for rules with a deadline at their end."""
    from estero.recognize.source_run import time_type
    from estero.recognize.until import known_until

    waiting = [plan for plan in plans.values() if plan.wait is not None]
    if not waiting:
        raise ValueError("until is for rules that end with NOT(…) FOR, and there is none: leave until out")
    return known_until(until, waiting[0], time_type(source))


def _refuse_spark(scan: Scan) -> None:
    if scan.is_of_spark:
        raise ValueError("a set of rules is explained for events in this process: leave the DataFrame out")


def _near(name: str, known: Sequence[str]) -> str:
    hint = suggestion(name, known)
    return f": {hint}" if hint else ""
