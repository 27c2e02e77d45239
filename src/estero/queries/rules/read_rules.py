"""Sets of rules, read from files or from texts by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from estero.arguments import checked
from estero.errors import DataError, QueryError, warn
from estero.queries.query import Query
from estero.queries.rules.rule_cache import RuleCache
from estero.queries.rules.rule_files import (
    LANGUAGES,
    FilesRead,
    RuleText,
    files_of_rules,
    language_of,
    rules_in_files,
)
from estero.queries.rules.rule_set import Named, Paths, RuleSet, read_rule
from estero.queries.rules.sigma_files import sigma_in_files
from estero.queries.statement import raise_first
from estero.system.collection import without_collection


@checked
def rules(rules: Named | Paths, *, sigma: Mapping[str, object] | None = None) -> RuleSet:
    """A set of rules, made from a mapping of names to queries or texts, or from files.

    `rules` may be a file, a list of files, or a directory, which is read with everything below it:

    - ``.ceql``: one rule in CEQL, named by the stem of the file. Comment lines at the top, ``-- title: …``,
      are its `RuleSet.metadata`.
    - ``.yml``, ``.yaml``: rules in Sigma, named by their ``name``, else ``id``, else the stem of the file.
      `sigma` holds arguments of `estero.sigma` for them, such as ``{"fields": "ecs"}``.
    - ``.eql``: one rule in EQL; ``.toml``: one of Elastic's rules. Both are named by the stem of the file.

    A rule in Sigma or EQL that cannot be run, because it is wrong or because nothing says which events its
    log source has (``logsource=False`` asks all events), goes to `RuleSet.refused`, and an `EsteroWarning`
    counts those. Rules in EQL that do not fit the events are left out by `RuleSet.run` with a warning.

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


def read_files(paths: Paths, sigma: Mapping[str, object] | None = None) -> tuple[RuleSet, list[QueryError]]:
    """The valid rules of files, as a set, and the errors of the others in CEQL."""
    files: dict[str, list[Path]] = {language: [] for language in LANGUAGES.values()}
    for file in files_of_rules(paths):
        files[language_of(file)].append(file)
    cache = RuleCache.opened() if files["sigma"] or files["eql"] else RuleCache(None)
    with without_collection():
        of_sigma = sigma_in_files(files["sigma"], sigma, cache)
        of_elastic = FilesRead()
        if files["eql"]:
            from estero.queries.rules.eql_files import eql_in_files  # which imports all of EQL

            of_elastic = eql_in_files(files["eql"], cache)
        cache.save()
    texts = rules_in_files(files["ceql"])
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
    """The valid rules, as a set, and the errors of the others, which name their rules."""
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
