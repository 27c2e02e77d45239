"""Files with rules in EQL: plain texts, and Elastic's rules in TOML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from estero.errors import DataError, QueryError
from estero.language.eql.tree import EqlTree
from estero.queries.eql_statement import EqlStatement, eql_statement
from estero.queries.query import Query
from estero.queries.rules.rule_cache import RuleCache, eql_trees, key_of
from estero.queries.rules.rule_files import FilesRead, RuleText, text_of_file

_SAID: Final = {"name": "title", "rule_id": "id", "severity": "level", "risk_score": "risk", "type": "type"}
"""The entries of a rule that become metadata, and the names of this metadata."""


def eql_in_files(files: Iterable[Path], cache: RuleCache) -> FilesRead:
    """The rules of some files, in the order of the files, by the stems of their names.

    A file ending in ``.eql`` is the text of a query. A ``.toml`` file has the text in ``[rule] query`` and
    metadata beside it: ``name`` is the title, ``severity`` the level, ``tags`` and the techniques of
    ``threat`` are the tags. Texts that are not queries in EQL, and queries with pipes, are refused. Files in
    the `cache` are not parsed again.
    """
    read = FilesRead()
    for file in files:
        name = _free(file.stem, read.texts)
        metadata: dict[str, str] = {"file": str(file)}
        text = ""
        try:
            content = text_of_file(file)
            text = content if file.suffix == ".eql" else ""
            key = key_of(file.suffix, content.encode()) if cache.is_on else ""
            known = cache.get(key, eql_trees())
            if known is not None and isinstance(known[1], EqlTree):
                said, statement = known[0], EqlStatement.of_tree(known[1])
                text = statement.eql.text
            else:
                said = {}
                if file.suffix == ".toml":
                    text, said = _of_toml(content)
                statement = eql_statement(text)
                cache.put(key, said, statement.eql, eql_trees())
            metadata = said | metadata
            statement.refuse_pipes()
            read.rules[name] = Query(statement)
        except (QueryError, DataError) as error:
            problem = error if isinstance(error, QueryError) else QueryError(error.message, hint=error.hint)
            for one in (problem, *problem.others):
                one.rule = str(file)
            read.refused[name] = problem
        read.texts[name] = RuleText(text, file, metadata)
    return read


def _of_toml(text: str) -> tuple[str, dict[str, str]]:
    """The query of a rule in TOML, and its metadata."""
    import tomllib

    try:
        rule = tomllib.loads(text).get("rule")
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"this is not TOML: {error}") from error
    if not isinstance(rule, Mapping) or not isinstance(rule.get("query"), str):
        raise DataError("there is no rule with a query here", hint='a rule is [rule] with query = """…"""')
    language = rule.get("language", "eql")
    if language != "eql":
        raise DataError(f"this rule is in {language}, not in EQL")
    said = {word: str(rule[entry]) for entry, word in _SAID.items() if isinstance(rule.get(entry), str | int)}
    tags = ", ".join(dict.fromkeys(_tags(rule)))
    return rule["query"], said | ({"tags": tags} if tags else {})


def _tags(rule: Mapping[str, Any]) -> Iterator[str]:
    """The tags of a rule, including its techniques as ``attack.t1059.001``."""
    yield from (tag for tag in _listed(rule.get("tags")) if isinstance(tag, str))
    for threat in _listed(rule.get("threat")):
        for technique in _listed(threat.get("technique") if isinstance(threat, Mapping) else None):
            if isinstance(technique, Mapping):
                for one in (technique, *_listed(technique.get("subtechnique"))):
                    if isinstance(one, Mapping) and isinstance(one.get("id"), str):
                        yield f"attack.{one['id'].lower()}"


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _free(name: str, taken: Mapping[str, object]) -> str:
    """The name, with a number appended if a rule already has it."""
    place, free = 1, name
    while free in taken:
        place += 1
        free = f"{name}-{place}"
    return free
