"""Filters of Sigma: conditions that are added to rules of others, which stay as they are."""

from __future__ import annotations

from dataclasses import dataclass, replace

from estero.language.sigma.documents import Document
from estero.language.sigma.read import detection_of
from estero.language.sigma.reading import Reading
from estero.language.sigma.tree import Condition, Detection, LogSource


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition that the events of some rules have to satisfy, too.

    `rules` are the names or ids of the rules; without any, these are all rules of the log source.
    """

    rules: tuple[str, ...]
    source: LogSource
    condition: Condition

    def selects(self, rule: Detection) -> bool:
        """Whether the condition is added to a rule: one of the log source, and of `rules` if it has any."""
        own, other = self.source, rule.source
        pairs = (
            (own.category, other.category),
            (own.product, other.product),
            (own.service, other.service),
        )
        of_source = all(mine is None or mine == theirs for mine, theirs in pairs)
        return of_source and (not self.rules or not {rule.about.name, rule.about.id}.isdisjoint(self.rules))


def filter_of(document: Document, reading: Reading) -> Filter:
    """The filter of a document; raises `QueryError`, with the place in the text, for mistakes."""
    section = document.content["filter"]
    if not isinstance(section, dict):
        raise document.error("a filter is a mapping", "filter", expected="rules, detections and a condition")
    rules = section.get("rules")
    if isinstance(rules, str):
        rules = [] if rules.lower() == "any" else [rules]
    if not isinstance(rules, list) or not all(isinstance(one, str) for one in rules):
        raise document.error(
            "a filter says to which rules it is added",
            "filter",
            "rules",
            expected="a list of names or ids of rules, or any",
        )
    detection = {name: value for name, value in section.items() if name != "rules"}
    content = {key: value for key, value in document.content.items() if key != "filter"}
    read = detection_of(
        replace(document, content={**content, "detection": detection}, section="filter"), reading
    )
    return Filter(tuple(rules), read.source, read.condition)
