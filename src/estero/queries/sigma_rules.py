"""Texts with rules in Sigma: the statement of each rule, or the reason why it cannot be run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from estero.arguments import checked, shown
from estero.errors import DataError, QueryError
from estero.language.sigma.documents import Document, documents_of
from estero.language.sigma.fields import Mapped
from estero.language.sigma.log_sources import KnownSources, condition_of
from estero.language.sigma.mappings import mapped_of
from estero.language.sigma.reading import Reading
from estero.language.sigma.tree import (
    About,
    Condition,
    Correlation,
    Detection,
    Every,
    LogSource,
    Refusal,
    Rule,
)
from estero.queries.sigma_statement import SigmaStatement
from estero.queries.statement import Statement

if TYPE_CHECKING:
    from sigma.processing.pipeline import ProcessingPipeline

    from estero.language.sigma.filters import Filter


@dataclass(frozen=True)
class SigmaOptions:
    """How rules are read and where their fields are; `logsource` as in `estero.sigma`.

    `known` is the information on log sources, if it has been loaded before.
    """

    mapped: Mapped
    reading: Reading
    logsource: bool | None
    known: KnownSources | None = None
    _told: dict[LogSource, tuple[Condition | None, Mapped]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def told(self, source: LogSource) -> tuple[Condition | None, Mapped]:
        """The information on a log source, computed once: thousands of rules share few of them."""
        if source not in self._told:
            self._told[source] = condition_of(source, self.mapped, self.known)
        return self._told[source]


@checked
def options_of(
    *,
    fields: str | PathLike[str] | Mapping[str, object] | Sequence[object] | None = None,
    pipeline: ProcessingPipeline | str | PathLike[str] | None = None,
    placeholders: Mapping[str, Sequence[str]] | None = None,
    logsource: bool | None = None,
) -> SigmaOptions:
    """The options given by arguments of `estero.sigma`; raises `DataError` for files with mistakes."""
    if pipeline is not None and logsource is None:
        logsource = False
    values = {name: _texts(name, texts) for name, texts in (placeholders or {}).items()}
    return SigmaOptions(mapped_of(fields), Reading(values, _pipeline(pipeline)), logsource)


def _texts(name: str, given: object) -> tuple[str, ...]:
    """The values of a placeholder."""
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Iterable):
        raise TypeError(f"placeholders has a list of texts for {name!r}, not {shown(given)}")
    return tuple(map(str, given))


@dataclass(frozen=True)
class SigmaRule:
    """One rule of a text: its statement, or the `problem` because of which it cannot be run.

    `filters` are conditions that filters add to it. `unknown_source` is a log source that cannot be
    recognized. `refers` are the names and ids of the rules to which a correlation refers; unless it generates
    them, they do not count as separate rules.
    """

    document: Document
    about: About
    rule: Rule | None = None
    problem: QueryError | None = None
    sources: tuple[tuple[Condition | None, Mapped], ...] = ()
    unknown_source: LogSource | None = None
    refers: tuple[str, ...] = ()
    filters: tuple[Condition, ...] = ()

    @property
    def name(self) -> str:
        """The name of the rule, else its id, else its title, else nothing."""
        return self.about.name or self.about.id

    def statement(self) -> Statement:
        """The statement of a rule that has no problem."""
        rule = self.filtered
        if isinstance(rule, Correlation):
            from estero.queries.sigma_correlation_statement import SigmaCorrelationStatement

            return SigmaCorrelationStatement.of(rule, self.sources)
        if rule is None:
            raise ValueError(f"the rule {self.name} has a problem")
        ((source, mapped),) = self.sources
        return SigmaStatement(rule, mapped, source)

    @property
    def filtered(self) -> Rule | None:
        """The rule with the conditions that filters add to it."""
        if not self.filters or self.rule is None:
            return self.rule
        if isinstance(self.rule, Correlation):
            return replace(self.rule, rules=tuple(map(self._with_filters, self.rule.rules)))
        return self._with_filters(self.rule)

    def is_selected_by(self, added: Filter) -> bool:
        """Whether the condition of a filter is added to this rule."""
        if self.rule is None:
            return False
        return any(
            map(added.selects, self.rule.rules if isinstance(self.rule, Correlation) else (self.rule,))
        )

    def _with_filters(self, rule: Detection) -> Detection:
        return replace(rule, condition=Every((rule.condition, *self.filters)))


def rules_in_text(text: str, options: SigmaOptions) -> list[SigmaRule]:
    """The rules of a text, including those with mistakes; raises `QueryError` if the text is not YAML."""
    return rules_in_documents(documents_of(text), options)


def rules_in_documents(
    documents: Iterable[Document],
    options: SigmaOptions,
    before: Mapping[int, Rule | Refusal] | None = None,
) -> list[SigmaRule]:
    """The rules of documents, from any texts, in order; correlations may refer to any of them.

    Rules read `before` are given by the identity of their documents.
    """
    given, known_before = list(documents), before or {}
    read = {
        id(one): _known(one, known_before[id(one)], options)
        if id(one) in known_before
        else _detection(one, options)
        for one in given
        if not {"correlation", "filter"} & one.content.keys()
    }
    read = _filtered(read, [one for one in given if "filter" in one.content], options)
    known: dict[str, SigmaRule] = {}
    for rule in read.values():
        known |= dict.fromkeys(filter(None, (rule.about.name, rule.about.id)), rule)
    windows = {
        name for one in given if id(one) not in read for name in (_about(one).name, _about(one).id) if name
    }
    rules = [
        read.get(id(one)) or _correlation(one, known, windows)
        for one in given
        if id(one) in read or "correlation" in one.content
    ]
    hidden = {
        name
        for rule in rules
        for name in rule.refers
        if not (isinstance(rule.rule, Correlation) and rule.rule.generate)
    }
    return [rule for rule in rules if not hidden & {rule.about.name, rule.about.id} - {""} or rule.refers]


def _detection(document: Document, options: SigmaOptions) -> SigmaRule:
    """The rule of a document, with its problem if there is one."""
    from estero.language.sigma.aggregations import is_aggregation
    from estero.language.sigma.read import detection_of  # which loads pySigma

    about = _about(document)
    if is_aggregation(document):
        return _aggregation(document, options)
    try:
        rule = detection_of(document, options.reading)
    except QueryError as error:
        return SigmaRule(document, about, problem=error)
    return _placed(document, rule, options)


def _filtered(
    read: Mapping[int, SigmaRule], filters: Iterable[Document], options: SigmaOptions
) -> dict[int, SigmaRule]:
    """The rules with the conditions of filters, and filters that cannot be added to any rule as problems."""
    rules = dict(read)
    for document in filters:
        from estero.language.sigma.filters import filter_of  # which loads pySigma

        try:
            added = filter_of(document, options.reading)
            named = {name for rule in rules.values() for name in (rule.about.name, rule.about.id)}
            for name in added.rules:
                if name not in named:
                    raise document.error(
                        f"there is no rule {name}",
                        "filter",
                        "rules",
                        hint="a rule is referred to by name or id",
                    )
            selected = [key for key, rule in rules.items() if rule.is_selected_by(added)]
            if not selected:
                raise document.error(
                    f"the filter is added to no rule: none of its rules has the log source {added.source}",
                    "logsource",
                )
        except QueryError as error:
            rules[id(document)] = SigmaRule(document, _about(document), problem=error)
            continue
        for key in selected:
            rules[key] = replace(rules[key], filters=(*rules[key].filters, added.condition))
    return rules


def _aggregation(document: Document, options: SigmaOptions) -> SigmaRule:
    """The correlation that an aggregation of Sigma's first specification means."""
    from estero.language.sigma.aggregations import aggregation_of

    try:
        return _known(document, aggregation_of(document, options.reading), options)
    except QueryError as error:
        return SigmaRule(document, _about(document), problem=error)


def _known(document: Document, before: Rule | Refusal, options: SigmaOptions) -> SigmaRule:
    """The rule of a document that was read before."""
    match before:
        case Refusal():
            return SigmaRule(document, before.about, problem=before.error(document.text))
        case Detection():
            return _placed(document, before, options)
        case Correlation():
            rules = [_placed(document, rule, options) for rule in before.rules]
            for rule in rules:
                if rule.problem is not None:
                    return replace(rule, about=before.about, rule=before)
            sources = tuple(source for rule in rules for source in rule.sources)
            return SigmaRule(
                document, before.about, before, sources=sources, unknown_source=rules[0].unknown_source
            )


def _placed(document: Document, rule: Detection, options: SigmaOptions) -> SigmaRule:
    """A rule with the condition of its log source, or the problem that there is none."""
    about = rule.about
    if options.logsource is False:
        return SigmaRule(document, about, rule, sources=((None, options.mapped),))
    source, mapped = options.told(rule.source)
    if source is None and options.logsource:
        problem = document.error(
            f"nothing says which events have this log source: {rule.source}",
            "logsource",
            hint="fields= has ready mappings, and takes sources of your own; logsource=False asks all events",
        )
        return SigmaRule(document, about, rule, problem=problem)
    unknown = rule.source if source is None else None
    return SigmaRule(document, about, rule, sources=((source, mapped),), unknown_source=unknown)


def _correlation(document: Document, known: Mapping[str, SigmaRule], windows: Collection[str]) -> SigmaRule:
    """The correlation of a document over `known` rules; `windows` are the names and ids of correlations."""
    from estero.language.sigma.correlations import correlation_of, references_of

    about = _about(document)
    refers = references_of(document)
    try:
        detections: list[Detection] = []
        sources: list[tuple[Condition | None, Mapped]] = []
        for name in refers:
            if name in windows:
                raise document.error(
                    f"{name} is a correlation itself, whose windows are known only as time passes",
                    "correlation",
                    "rules",
                    hint="correlate the rules that it refers to",
                )
            if name not in known:
                raise document.error(
                    f"there is no rule {name}",
                    "correlation",
                    "rules",
                    hint="a rule is referred to by name or id",
                )
            rule = known[name]
            detection = rule.filtered
            if rule.problem is not None or not isinstance(detection, Detection):
                reason = "it is an aggregation" if rule.problem is None else rule.problem.message
                raise document.error(f"the rule {name} cannot be run: {reason}", "correlation", "rules")
            detections.append(detection)
            sources += rule.sources
        read = correlation_of(document, detections)
    except QueryError as error:
        return SigmaRule(document, about, problem=error, refers=refers)
    unknown = next((known[name].unknown_source for name in refers if known[name].unknown_source), None)
    return SigmaRule(
        document,
        read.about,
        read,
        sources=tuple(sources),
        unknown_source=unknown,
        refers=refers,
    )


def _about(document: Document) -> About:
    """The metadata of a document, as far as it is text: it may be malformed."""
    said = {key: document.content.get(key) for key in ("title", "id", "name", "level", "status")}
    tags = document.content.get("tags")
    texts = {key: value for key, value in said.items() if isinstance(value, str)}
    return About(**texts, tags=tuple(map(str, tags)) if isinstance(tags, list) else ())


def _pipeline(given: object) -> ProcessingPipeline | None:
    """A pipeline of pySigma, or that of a file."""
    if given is None:
        return None
    from sigma.processing.pipeline import ProcessingPipeline

    from estero.language.sigma.read import FAILURES

    if isinstance(given, ProcessingPipeline):
        return given
    if not isinstance(given, str | PathLike):
        raise TypeError(f"a pipeline is one of pySigma or the path of one, not {type(given).__name__}")
    file = Path(fspath(given))
    if not file.is_file():
        raise DataError(f"there is no file {file} with a pipeline of pySigma")
    try:
        return ProcessingPipeline.from_yaml(file.read_text("utf-8-sig"))
    except (*FAILURES, UnicodeDecodeError) as error:
        raise DataError(f"this is not a pipeline of pySigma: {error}", file=str(file)) from error
