"""Mappings of field names: predefined ones, and those of users, as Python mappings or files."""

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
"""The name of a predefined mapping, a file, or a mapping of fields."""

READY: Final = ("ecs", "winlogbeat", "sysmon")
"""The names of the mappings in files of the package."""
_NAMES, _SOURCES = (Path(__file__).with_name(name) for name in ("names", "sources"))


@cache
def families() -> tuple[Mapped, ...]:
    """The families of log sources in files of the package, with the names of their fields."""
    import yaml  # read first, because families exclude its names

    paths = sorted(_SOURCES.iterdir(), key=lambda path: path.name)
    return tuple(_read(yaml.safe_load(path.read_text("utf-8")), path.name) for path in paths)


def content_of_files() -> bytes:
    """The content of all files of the package, which identifies the version of the cached sources."""
    paths = (path for folder in (_NAMES, _SOURCES) for path in folder.iterdir())
    return b"".join(path.read_bytes() for path in sorted(paths, key=lambda path: path.name))


@cache
def _ready(name: str) -> Mapped:
    import yaml

    return _read(yaml.safe_load(_NAMES.joinpath(f"{name}.yml").read_text("utf-8")), name)


def mapped_of(mappings: Given | Sequence[object] | None) -> Mapped:
    """The union of the mappings that a user passes; the first one that names a field is used.

    Raises `DataError` for unknown names, missing files and values that are not mappings of fields.
    """
    if mappings is None:
        return Mapped()
    names: dict[str, tuple[str, ...]] = {}
    sources: list[tuple[LogSource, Condition]] = []
    for one in [mappings] if isinstance(mappings, str | PathLike | Mapping) else mappings:
        if not isinstance(one, str | PathLike | Mapping):
            raise DataError(f"fields are a name, a file or a mapping, not {one!r}")
        mapped = _mapped(one)
        names = {**mapped.names, **names}
        sources += mapped.sources
    return Mapped(names, tuple(sources))


def _mapped(mapping: Given) -> Mapped:
    if isinstance(mapping, Mapping):
        return _read(mapping, "fields")
    name = fspath(mapping)
    if isinstance(mapping, str) and name in READY:
        return _ready(name)
    file = Path(name)
    if not file.is_file():
        raise DataError(f"there is no mapping and no file {name}", hint=f"ready are {listed(READY, 'and')}")
    import yaml

    try:
        content = yaml.safe_load(file.read_text("utf-8-sig"))  # JSON is a subset of YAML
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise DataError(f"this is not YAML of fields: {str(error).splitlines()[0]}", file=name) from error
    if not isinstance(content, Mapping):
        raise DataError("this is not a mapping of fields", file=name, hint="Image: process.executable")
    return _read(content, name)


def _read(content: Mapping[str, Any], place: str) -> Mapped:
    has_sections = isinstance(content.get("fields"), Mapping) or isinstance(content.get("sources"), list)
    fields, sources = (
        (content.get("fields") or {}, content.get("sources") or []) if has_sections else (content, [])
    )
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


def _source(entry: object, place: str) -> tuple[LogSource, Condition]:
    known = {"category", "product", "service", "where"}
    if (
        not isinstance(entry, Mapping)
        or set(entry) - known
        or not isinstance(entry.get("where"), Mapping | list)
    ):
        raise DataError(
            f"{place}: a source has category, product or service, and where, not {entry!r}",
            hint="where says what its events have in common, {field: value}, and may be empty: {}",
        )
    source = LogSource(*(entry.get(name) for name in ("category", "product", "service")))
    return source, _common(entry["where"], place)


def _common(where: Mapping[str, object] | Sequence[object], place: str) -> Condition:
    """The condition on the events of a log source, from a detection of Sigma, which may be empty."""
    if not where:
        return Every(())
    from sigma.rule.detection import SigmaDetections  # most mappings only have names

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
