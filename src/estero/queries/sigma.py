"""Rules in Sigma as queries: `estero.sigma`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, TypeAlias

from estero.arguments import checked
from estero.errors import QueryError, require, warn
from estero.language.tree.names import some
from estero.queries.query import Query
from estero.queries.statement import raise_first

if TYPE_CHECKING:
    from sigma.processing.pipeline import ProcessingPipeline


FieldNames: TypeAlias = "str | PathLike[str] | Mapping[str, object]"


@checked
def sigma(
    text: str,
    /,
    *,
    fields: FieldNames | Sequence[FieldNames] | None = None,
    pipeline: ProcessingPipeline | str | PathLike[str] | None = None,
    placeholders: Mapping[str, Sequence[str]] | None = None,
    logsource: bool | None = None,
) -> Query:
    """The query of a rule in Sigma: a detection, or a correlation with the rules that it refers to.

    A complex event of a detection is one event, and one of a correlation is the events of one window. Fields
    are looked up in the columns of the events when the query runs: by their names, where dots may lead into
    structs, and in the structs of raw exports of Windows. `fields` maps them to other names: a dict such as
    ``{"Image": "process.executable"}``, a file with one, a ready mapping ("ecs", "winlogbeat", "sysmon"), or
    a list of these. `placeholders` are the values of ``%name%``, by name. `pipeline`, one of pySigma's or the
    path of one in YAML, is applied to the rule first.

    The events of a log source are recognized by channel and event id, or by the fields in their published
    shape. For a log source of which neither is known all events are asked, with an `EsteroWarning`;
    ``logsource=True`` makes this an error, and ``logsource=False``, or a pipeline, ignores the log source.

    Raises `QueryError`, with the place in the text, for what is wrong with the rule, `DataError` for names of
    fields that cannot be read, and `MissingPackage` without pySigma (``estero[sigma]``).
    """
    require("sigma", "a rule in Sigma")
    from estero.queries.sigma_rules import options_of, rules_in_text

    options = options_of(fields=fields, pipeline=pipeline, placeholders=placeholders, logsource=logsource)
    rules = rules_in_text(text, options)
    raise_first([one.problem for one in rules if one.problem is not None])
    if len(rules) != 1:
        named = some([one.name or one.about.title for one in rules], word="and")
        raise QueryError(
            f"a query is made of one rule, and this text has {len(rules)}: {named}",
            text=text,
            hint="estero.rules reads files with any number of them",
        )
    (only,) = rules
    query = Query(only.statement())
    if only.unknown_source:
        warn(f"nothing says which events have the log source {only.unknown_source}: the rule applies to all")
    return query


def sigma_named(name: str, text: str) -> Query:
    """The query of the rule that a file with this text has by a name: its own, or that of the file.

    Raises `QueryError` as `sigma`, and for a name that no rule has.
    """
    require("sigma", "a rule in Sigma")
    from estero.queries.sigma_rules import options_of, rules_in_text

    rules = rules_in_text(text, options_of())
    unnamed = [rule for rule in rules if not rule.name]
    number = name.rpartition("-")[2]  # unnamed rules of one file are numbered from 2
    place = int(number) - 1 if len(unnamed) > 1 and number.isdecimal() else 0
    called = [rule for rule in rules if rule.name == name] or unnamed[place : place + 1]
    if not called:
        raise QueryError(f"there is no rule {name} in this text", text=text)
    raise_first([rule.problem for rule in called if rule.problem is not None])
    return Query(called[0].statement())
