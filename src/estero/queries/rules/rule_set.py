"""Many queries by name, over one stream: a set of rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from estero.arguments import checked, shown
from estero.errors import DataError, QueryError, warn
from estero.events.scan import Scan
from estero.language.tree.names import some, suggestion
from estero.queries.query import Query, on_spark, opened
from estero.queries.rules.rule_cache import RuleCache
from estero.queries.rules.rule_files import (
    FilesRead,
    RuleText,
    files_of_rules,
    is_eql,
    is_sigma,
    rules_in_files,
)
from estero.queries.rules.sigma_files import sigma_in_files
from estero.queries.statement import raise_first
from estero.recognize.memory_limit import MemoryPolicy  # for `checked`
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

    The answer of each rule is that of its query alone; what rules have in common is done once. Rules that
    differ in the constants of their conditions only are recognized together, with the rule as a part of the
    partition. `metadata` has for each rule from a file what its comment lines say, or its YAML. `refused` are
    the rules in Sigma that cannot be run, by name, with the error that says why.

    `add`, `remove` and `replace` change the set for what is run later; a run, and what is read of it, keeps
    the rules that it began with. Sets may be used from several threads.
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
        """What files say of their rules, by rule and word: comment lines at the top, ``-- title: …``.

        Of rules in Sigma and Elastic's it is title, id, level, status and tags, and of all ``file``; where
        there are techniques of ATT&CK among the tags, ``techniques`` has them, as ``T1059.001``.
        """
        return {name: self._texts[name].said if name in self._texts else {} for name in self._rules}

    @property
    def refused(self) -> Mapping[str, QueryError]:
        """The rules in Sigma that cannot be run, by name: their errors say why, and where."""
        return self._refused

    def file_of(self, name: str) -> Path | None:
        """The file that a rule is from, if it is from one; KeyError for a name that the set does not have."""
        text = self._texts.get(self._known(name))
        return None if text is None else text.file

    def text_of(self, name: str) -> str:
        """The text of a rule as its file has it, else that of its query; KeyError for an unknown name."""
        text = self._texts.get(self._known(name))
        return str(self._rules[name]) if text is None else text.text

    def __getitem__(self, name: str) -> Query:
        """The query of a rule; KeyError for a name that the set does not have."""
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
        """Adds a rule behind the others, and returns the set.

        Raises ValueError for a name that is taken, and `QueryError`, which names the rule, for its text.
        """
        with self._lock:
            if name in self._rules:
                raise ValueError(f"there is a rule {name!r} already: replace it, or choose another name")
            self._rules = MappingProxyType({**self._rules, name: read_rule(name, query)})
        return self

    def remove(self, name: str) -> RuleSet:
        """Removes a rule, and returns the set; KeyError for a name that it does not have."""
        with self._lock:
            self._known(name)
            self._rules = MappingProxyType({key: rule for key, rule in self._rules.items() if key != name})
        return self

    def replace(self, name: str, query: Query | str) -> RuleSet:
        """Puts another query in the place of a rule, and returns the set.

        Raises KeyError for a name that it does not have, and `QueryError`, which names the rule.
        """
        with self._lock:
            self._known(name)
            self._rules = MappingProxyType({**self._rules, name: read_rule(name, query)})
            self._texts = {key: text for key, text in self._texts.items() if key != name}
        return self

    def bind(self, values: Mapping[str, object] | None = None, /, **named: object) -> RuleSet:
        """The set with values for parameters, each given to the rules that have it.

        Raises ValueError for a name that no rule has, and as `Query.bind`.
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
        """The complex events of all rules, lazily, evaluated in this process.

        The arguments are those of `Query.run`; where events are many, the rules are shared out to `threads`.
        `metadata` are words that files say of their rules (`metadata` of the set has them), each a column of
        the answer behind ``rule``: ``["title", "level"]`` makes ``rule_title`` and ``rule_level``. ValueError
        for a word that is said of no rule.

        Of a DataFrame of Spark the answer is a DataFrame with the columns of the common table, that of
        `estero.spark.recognize`. Rules of Elastic's files that do not fit the events are left out, with an
        `EsteroWarning`. Raises `QueryError`, which names the rule, for the first other one that does not, and
        `DataError` if they cannot be read.
        """
        from estero.events.sources import open_source
        from estero.recognize.rules.set_run import RuleSetRun
        from estero.recognize.source_run import Progress

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
        told = None if progress is None else Progress(progress)
        run = RuleSetRun(plans, source, until=known, progress=told, threads=workers)
        return RuleAnswers(run, self.columns(metadata))

    def columns(self, words: str | Sequence[str], *, encoded: bool = True) -> RuleColumns:
        """The columns for some words of the rules' `metadata`; ValueError for one that no rule has."""
        from estero.answers.rule_metadata import NOTHING_SAID, RuleColumns, words_of

        if not words:
            return NOTHING_SAID
        said = self.metadata
        return RuleColumns.of(words_of(words, said), said, encoded=encoded)

    def _fitting(self, plan: Callable[[str, Query], Plan], schema: Schema) -> dict[str, Plan]:
        """The plans of the rules for events of a schema.

        Those of Elastic's files that do not fit are warned of, and rules that name fields which events lack.
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
                if text is None or text.file is None or not is_eql(text.file):
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
        """A recognizer of all rules for events that are pushed; its rules can be changed between two pushes.

        The arguments are those of `Query.recognizer`, and `metadata` as for `run`; a rule that is added to
        the recognizer has none. The set itself and the recognizer do not change one
        another. Rules of Elastic's files that do not fit the columns are left out, with an `EsteroWarning`;
        for the first other one `QueryError` is raised, which names the rule.

        With `keep` events are kept so that rules which come later can begin with a replay of them:
        "2 hours" or another duration, a number of ticks of the time column, "1000 events", or two of these in
        a list. Then an event before the watermark is late for every rule.
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
        """The recognizer for events of a layout; it goes on from a `state`, if any."""
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
        """All errors of the rules for these events, by name; rules that fit are not in it.

        Without events nothing is checked that was not as the set was made.
        """
        if events is None:
            return {}
        scan = Scan.of(events, type, time, order, time_unit, types, csv_options, only_type=self.only_type)
        if scan.is_of_spark:
            checks = {name: rule.check(scan) for name, rule in self._rules.items()}
        else:
            source = opened(scan)  # once for all rules
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
        """How often events are read, what rules share, and which recognition serves which rules."""
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

        Those of Elastic's files that do not fit are left out, with an `EsteroWarning`. Raises `QueryError`,
        which names the rule, for the first other one that does not.
        """

        def plan(name: str, rule: Query) -> Plan:
            with _Naming(name):
                return rule.plan(layout)

        with without_collection():
            return self._fitting(plan, layout.schema)

    @property
    def only_type(self) -> str:
        """The type of all events where no column has it: what FROM says, the same in all rules."""
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


@checked
def rules(rules: Named | Paths, *, sigma: Mapping[str, object] | None = None) -> RuleSet:
    """A set of rules: a mapping of names to queries or their texts, or files with rules.

    Of a directory all of its files count, also those below it. The name of a file in CEQL is that of its
    rule, and comment lines at its top, ``-- title: …``, are its `RuleSet.metadata`. Files ending in ``.yml``
    or ``.yaml`` have rules in Sigma, by ``name``, else ``id``, else the stem of the file; `sigma` are
    arguments of `estero.sigma` for them, ``{"fields": "ecs"}``. Those that cannot be run are in
    `RuleSet.refused`, and an `EsteroWarning` counts them: what is wrong with them, or a log source of which
    nothing says which events it has (``logsource=False`` asks all events).

    Files ending in ``.eql`` have one rule in EQL, those in ``.toml`` one of Elastic's, with the stem of the
    file as its name. Those that cannot be run are in `RuleSet.refused`, too; those that do not fit the events
    are left out by `RuleSet.run`, with an `EsteroWarning`.

    Raises `QueryError` with all errors of all rules in CEQL, each with its name and file, `DataError` for
    files that cannot be read, and `MissingPackage` for rules in Sigma without pySigma.

    >>> pair = rules({"ab": "SELECT * WHERE a ; b", "ba": "SELECT * WHERE b ; a"})
    >>> pair.names
    ('ab', 'ba')
    """
    if isinstance(rules, Mapping):
        read, errors = read_rules(rules, {})
    else:
        read, errors = read_files(rules, sigma)
    raise_first(errors)
    if read.refused:
        error = next(iter(read.refused.values()))
        many = f"{len(read.refused)} of {len(read) + len(read.refused)} rules cannot be run"
        warn(f"{many} (all are in refused, and estero check lists them): {error.rule}: {error.message}")
    return read


def warn_of_notes(notes: Mapping[str, Sequence[str]]) -> None:
    """Warns of what rules ask for that the events do not have, by the names of the rules."""
    if notes:
        shown = some([f"{name}: {', '.join(said)}" for name, said in notes.items()], most=3, word="and")
        warn(f"{len(notes)} rule{'s' * (len(notes) > 1)} cannot hold in full: {shown}")


def read_files(paths: Paths, sigma: Mapping[str, object] | None = None) -> tuple[RuleSet, list[QueryError]]:
    """The set of those rules of files that are right, and the errors of the others in CEQL."""
    files = files_of_rules(paths)
    sigmas: list[Path] = []
    eqls: list[Path] = []
    others: list[Path] = []
    for file in files:
        (sigmas if is_sigma(file) else eqls if is_eql(file) else others).append(file)
    cache = RuleCache.opened() if sigmas or eqls else RuleCache(None)
    with without_collection():
        of_sigma = sigma_in_files(sigmas, sigma, cache)
        of_elastic = FilesRead()
        if eqls:
            from estero.queries.rules.eql_files import eql_in_files  # and all of EQL

            of_elastic = eql_in_files(eqls, cache)
        cache.save()
    texts = rules_in_files(others)
    read, errors = read_rules({name: rule.text for name, rule in texts.items()}, texts)
    together = dict(texts)
    for further in (of_sigma.texts, of_elastic.texts):
        for name in together.keys() & further.keys():
            raise DataError(
                f"two files have the rule {name!r}: {together[name].file} and {further[name].file}",
                hint="rename one of them",
            )
        together |= further
    rules = {**{name: read[name] for name in read}, **of_sigma.rules, **of_elastic.rules}
    return RuleSet(rules, together, {**of_sigma.refused, **of_elastic.refused}), errors


def read_rules(
    rules: Mapping[str, Query | str], texts: Mapping[str, RuleText]
) -> tuple[RuleSet, list[QueryError]]:
    """The set of those rules that are right, and the errors of the others, which name their rules."""
    read: dict[str, Query] = {}
    errors: list[QueryError] = []
    with without_collection():
        for name, query in rules.items():
            try:
                read[name] = read_rule(name, query, texts.get(name))
            except QueryError as error:
                errors += [error, *error.others]
                error.others = ()
    return RuleSet(read, texts), errors


def read_rule(name: str, query: Query | str, file: RuleText | None = None) -> Query:
    """The query of a rule; raises `QueryError`, which names it, and ValueError for an empty name."""
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
    """Inside it the errors of a rule name it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, QueryError):
            for one in (error, *error.others):
                one.rule = f"rule {self._name}"


def _known_until(until: Until, plans: Mapping[str, Plan], source: Source) -> int | None:
    """The ticks of a time up to which events are known, for the rules that ask for it."""
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
