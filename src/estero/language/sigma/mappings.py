"""Names of fields in other schemas: ready ones, and those that users give, as mappings or in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final

from estero.errors import DataError, QueryError
from estero.language.sigma.fields import Mapped
from estero.language.sigma.tree import Condition, Every, LogSource
from estero.language.tree.names import listed

Given = str | PathLike[str] | Mapping[str, object]
"""A ready mapping by name, a file, or a mapping of fields."""

READY: Final = ("ecs", "winlogbeat", "sysmon")
"""Mappings by name, which files of the package have."""
_NAMES, _SOURCES = (Path(__file__).with_name(name) for name in ("names", "sources"))


@cache
def families() -> tuple[Mapped, ...]:
    """The log sources that files of the package tell, a family in each, and names of fields of its events."""
    import yaml  # read before, the families take none of it

    paths = sorted(_SOURCES.iterdir(), key=lambda path: path.name)
    return tuple(_read(yaml.safe_load(path.read_text("utf-8")), path.name) for path in paths)


def content_of_files() -> bytes:
    """The content of all files of the package, by which it is told from that of another version."""
    paths = (path for folder in (_NAMES, _SOURCES) for path in folder.iterdir())
    return b"".join(path.read_bytes() for path in sorted(paths, key=lambda path: path.name))


@cache
def _ready(name: str) -> Mapped:
    import yaml

    return _read(yaml.safe_load(_NAMES.joinpath(f"{name}.yml").read_text("utf-8")), name)


def mapped_of(given: Given | Sequence[object] | None) -> Mapped:
    """What is given of fields, as one; the first that names a field counts.

    Raises `DataError` for a name or a file that there is not, and for what is not a mapping of fields.
    """
    if given is None:
        return Mapped()
    names: dict[str, tuple[str, ...]] = {}
    sources: list[tuple[LogSource, Condition]] = []
    for one in [given] if isinstance(given, str | PathLike | Mapping) else given:
        if not isinstance(one, str | PathLike | Mapping):
            raise DataError(f"fields are a name, a file or a mapping, not {one!r}")
        mapped = _mapped(one)
        names = {**mapped.names, **names}
        sources += mapped.sources
    return Mapped(names, tuple(sources))


def _mapped(given: Given) -> Mapped:
    if isinstance(given, Mapping):
        return _read(given, "fields")
    name = fspath(given)
    if isinstance(given, str) and name in READY:
        return _ready(name)
    file = Path(name)
    if not file.is_file():
        raise DataError(f"there is no mapping and no file {name}", hint=f"ready are {listed(READY, 'and')}")
    import yaml

    try:
        content = yaml.safe_load(file.read_text("utf-8-sig"))  # JSON is YAML
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise DataError(f"this is not YAML of fields: {str(error).splitlines()[0]}", file=name) from error
    if not isinstance(content, Mapping):
        raise DataError("this is not a mapping of fields", file=name, hint="Image: process.executable")
    return _read(content, name)


def _read(given: Mapping[str, Any], place: str) -> Mapped:
    whole = isinstance(given.get("fields"), Mapping) or isinstance(given.get("sources"), list)
    fields, sources = (given.get("fields") or {}, given.get("sources") or []) if whole else (given, [])
    names = {}
    for field, other in fields.items():
        others = [other] if isinstance(other, str) else other
        if not (
            isinstance(field, str)
            and isinstance(others, list | tuple)
            and others
            and all(isinstance(one, str) for one in others)
        ):
            raise DataError(
                f"{place}: a field has a name or a list of names, not {other!r}",
                hint="Image: process.executable",
            )
        names[field] = tuple(others)
    return Mapped(names, tuple(_source(one, place) for one in sources))


def _source(given: object, place: str) -> tuple[LogSource, Condition]:
    known = {"category", "product", "service", "where"}
    if (
        not isinstance(given, Mapping)
        or set(given) - known
        or not isinstance(given.get("where"), Mapping | list)
    ):
        raise DataError(
            f"{place}: a source has category, product or service, and where, not {given!r}",
            hint="where says what its events have in common, {field: value}, and may be empty: {}",
        )
    told = LogSource(*(given.get(name) for name in ("category", "product", "service")))
    return told, _common(given["where"], place)


def _common(where: Mapping[str, object] | Sequence[object], place: str) -> Condition:
    """What the events of a log source have in common: a detection of Sigma, which may be empty."""
    if not where:
        return Every(())
    from sigma.rule.detection import SigmaDetections  # most mappings have names alone

    from estero.language.sigma.read import FAILURES, condition_of

    try:
        read = SigmaDetections.from_dict({"where": where, "condition": "where"})
        return condition_of(read.parsed_condition[0].parsed, {})
    except (QueryError, *FAILURES) as error:
        message = error.message if isinstance(error, QueryError) else str(error)
        raise DataError(
            f"{place}: where cannot be read, {message}",
            hint="it is a detection of Sigma: {field: value}, or a list of these, of which one holds",
        ) from error
