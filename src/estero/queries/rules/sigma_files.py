"""Files with rules in Sigma: the rules that can be run, and the reasons why others cannot."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estero.errors import DataError, QueryError, require
from estero.queries.query import Query
from estero.queries.rules.rule_cache import RuleCache, key_of, sigma_trees
from estero.queries.rules.rule_files import FilesRead, RuleText, text_of_file

if TYPE_CHECKING:
    from estero.language.sigma.log_sources import KnownSources
    from estero.language.sigma.tree import Refusal, Rule
    from estero.queries.sigma_rules import SigmaOptions, SigmaRule


def sigma_in_files(files: Iterable[Path], options: Mapping[str, Any] | None, cache: RuleCache) -> FilesRead:
    """The rules of some files, in the order of the files; a file may have several documents.

    - `options`: arguments of `estero.sigma`; a rule with an unknown log source is refused unless they have
      ``logsource=False``.
    - `cache`: the cache of parsed files.

    A rule is named by its ``name``, else its ``id``, else the stem of the file. Rules to which a correlation
    refers are not rules of their own unless it has ``generate: true``.

    Raises `MissingPackage` without pySigma, and `DataError` for options that cannot be read.
    """
    given = list(files)
    if not given:
        return FilesRead()
    require("sigma", f"{given[0]}, a rule in Sigma,")
    from estero.language.sigma.documents import Document, documents_of
    from estero.language.sigma.reading import Reading
    from estero.queries.sigma_rules import rules_in_documents

    asked = _options_of(options or {}, cache)
    read = FilesRead()
    remembers = cache.is_on and asked.reading == Reading()
    new: dict[Path, _New] = {}
    before: dict[int, Rule | Refusal] = {}
    documents: list[Document] = []
    places: dict[int, Path] = {}
    for file in given:
        try:
            text = text_of_file(file)
            key = key_of("sigma", text.encode()) if remembers else ""
            known = _trees_of(key, cache) if remembers else ()
            here = [Document({}, text, number) for number in range(len(known))]
            before |= zip(map(id, here), known, strict=True)
            if not known:
                here = documents_of(text)
                if remembers and len(here) == here[-1].number + 1:
                    new[file] = _New(key, len(here))
        except (QueryError, DataError) as error:
            problem = error if isinstance(error, QueryError) else QueryError(error.message, hint=error.hint)
            _refuse(read, _free(file.stem, read), problem, file)
            continue
        documents += here
        places |= {id(document): file for document in here}
    for rule in rules_in_documents(documents, asked, before):
        file = places[id(rule.document)]
        if file in new:
            new[file].add(rule)
        name = rule.name or _free(file.stem, read)
        metadata = {**rule.about.metadata(), "file": str(file)}
        if name in read.rules:
            other = read.texts[name].file
            problem = rule.document.error(
                f"there is a rule {name!r} already, in {other}", "name" if rule.about.name else "id"
            )
            _refuse(read, _free(name, read), problem, file, metadata)
        elif rule.problem is not None:
            _refuse(read, _free(name, read), rule.problem, file, metadata)
        else:
            read.rules[name] = Query(rule.statement())
            read.texts[name] = RuleText(rule.document.text, file, metadata)
    for one in new.values():
        one.put_into(cache)
    return read


def _trees_of(key: str, cache: RuleCache) -> tuple[Rule | Refusal, ...]:
    """The rules of a file that was read before, one for each of its documents; none for another file."""
    from estero.language.sigma.tree import Correlation, Detection, Refusal

    known = cache.get(key, sigma_trees())
    trees = () if known is None else known[1]
    kinds = Correlation | Detection | Refusal
    is_of_rules = isinstance(trees, tuple) and all(isinstance(tree, kinds) for tree in trees)
    return trees if is_of_rules else ()


@dataclass(slots=True)
class _New:
    """A file that was not read before: its key, its number of documents, and their rules as trees."""

    key: str
    size: int
    trees: list[Rule | Refusal] = field(default_factory=list)

    def add(self, rule: SigmaRule) -> None:
        """Adds a rule, or why it cannot be read, but nothing that refers to rules of other files."""
        from estero.language.sigma.tree import Refusal

        if not {"correlation", "filter"}.isdisjoint(rule.document.content):
            return
        if rule.rule is not None:
            self.trees.append(rule.rule)
        elif rule.problem is not None:
            self.trees.append(Refusal.of(rule.about, rule.problem))

    def put_into(self, cache: RuleCache) -> None:
        """Puts the file into a cache if all of its documents are rules of their own."""
        if len(self.trees) == self.size:
            cache.put(self.key, {}, tuple(self.trees), sigma_trees())


def _options_of(given: Mapping[str, Any], cache: RuleCache) -> SigmaOptions:
    """The options for files from arguments of `estero.sigma`; raises TypeError for other arguments."""
    from estero.queries.sigma_rules import options_of

    unknown = set(given) - {"fields", "pipeline", "placeholders", "logsource"}
    if unknown:
        raise TypeError(f"sigma takes fields, pipeline, placeholders and logsource, not {min(unknown)!r}")
    asked = options_of(**{"logsource": None if given.get("pipeline") else True, **given})
    return replace(asked, known=_sources_in(cache))


def _sources_in(cache: RuleCache) -> KnownSources | None:
    """The known log sources, without pySigma if they are cached; None without a cache."""
    if not cache.is_on:
        return None
    from estero.language.sigma.log_sources import KnownSources, known_sources
    from estero.language.sigma.mappings import content_of_files

    key = key_of("log sources", content_of_files())
    before = cache.get(key, sigma_trees())
    if before is not None:
        with contextlib.suppress(TypeError, ValueError):
            return KnownSources.of_tree(before[1])
    known = known_sources()
    cache.put(key, {}, known.tree, sigma_trees())
    return known


def _refuse(
    read: FilesRead, name: str, problem: QueryError, file: Path, metadata: Mapping[str, str] | None = None
) -> None:
    for one in (problem, *problem.others):
        one.rule = str(file)
    read.refused[name] = problem
    read.texts[name] = RuleText(problem.text, file, metadata or {"file": str(file)})


def _free(name: str, read: FilesRead) -> str:
    """The name, with a number appended if a rule already has it."""
    place, free = 1, name
    while free in read.texts:
        place += 1
        free = f"{name}-{place}"
    return free
