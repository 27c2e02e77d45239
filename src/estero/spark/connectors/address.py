"""Where a stream comes from or goes to, and when: text such as ``parquet:events/`` → an `Address`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from estero.arguments import checked
from estero.errors import DataError

SOURCES = ("parquet", "json", "csv", "kafka", "delta")
SINKS = ("parquet", "json", "csv", "kafka", "delta", "postgresql", "console")

_ALIASES = {"jsonl": "json", "ndjson": "json", "postgres": "postgresql"}
_SUFFIXES = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".csv": "csv"}
_EXAMPLES = {
    "parquet": "parquet:DIR",
    "json": "json:DIR",
    "csv": "csv:DIR",
    "delta": "delta:DIR",
    "kafka": "kafka://HOST:PORT/TOPIC",
    "postgresql": "postgresql://USER@HOST:PORT/DATABASE/TABLE",
    "console": "console",
}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(.*)", re.DOTALL)
_OPTIONS = re.compile(r"\?(?=[\w.-]+=)")
_SERVERS = re.compile(r"[^\s:,/@]+:\d+(,[^\s:,/@]+:\d+)*|\[[0-9a-fA-F:]+\]:\d+")
_DATABASE = re.compile(
    r"(?:(?P<user>[^:@/]*)(?::(?P<password>[^@/]*))?@)?(?P<server>\[[0-9a-fA-F:]+\](?::\d+)?|[^:@/]*(?::\d+)?)"
    r"/(?P<database>[^/]+)/(?P<table>[^/]+)"
)
_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "min": "minutes", "h": "hours", "d": "days"}
_WORDS = r"milliseconds?|seconds?|minutes?|hours?|days?"
_INTERVAL = re.compile(rf"(\d+)\s*({_WORDS}|{'|'.join(_UNITS)})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Address:
    """A place that Spark reads or writes; prints as it can be shown, without a password.

    `place` is a path, Kafka's ``host:port[,host:port]`` or a database's ``host:port/database``; `name` the
    topics (with commas) or the table; `options` what Spark's reader or writer is told besides.
    """

    scheme: str
    place: str = ""
    name: str = ""
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    options: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.scheme in ("kafka", "postgresql"):
            user = "" if self.user is None else f"{self.user}@"
            return f"{self.scheme}://{user}{self.place}/{self.name}"
        return f"{self.scheme}:{self.place}" if self.place else self.scheme


@checked
def source_address(text: str) -> Address:
    """The address of a source: files of a format, a topic of Kafka, a Delta table.

    A path without a scheme is of the format that its suffix says. Raises `DataError` for other texts.

    >>> str(source_address("events/*.parquet"))
    'parquet:events/*.parquet'
    """
    return _address(text, SOURCES, "source")


@checked
def sink_address(text: str) -> Address:
    """The address of a sink: what a source can be, or a table of PostgreSQL, or ``console``.

    >>> sink_address("parquet:found?compression=zstd").options
    {'compression': 'zstd'}
    """
    return _address(text, SINKS, "sink")


def _address(text: str, known: tuple[str, ...], role: str) -> Address:
    if text == "console" and text in known:
        return Address("console")
    place, options = _split_options(text)
    scheme, rest = _split_scheme(place)
    if not scheme:
        return _path_alone(place, options, known, role)
    if scheme not in known:
        raise DataError(f"there is no {role} {scheme}:", hint=f"the {role}s are {_listed(known)}")
    if scheme == "kafka":
        return _kafka(text, rest, options)
    if scheme == "postgresql":
        return _postgresql(rest, options)
    if scheme == "console":
        raise DataError(f"{text}: console stands alone, without a place")
    path = rest.removeprefix("//")
    if not path:
        raise DataError(f"{text}: the directory is missing", hint=f"write {_EXAMPLES[scheme]}")
    return Address(scheme, path, options=options)


def _split_options(text: str) -> tuple[str, dict[str, str]]:
    """The text before ``?key=value&…``, and the keys with their values; a glob's ``?`` is neither."""
    match = _OPTIONS.search(text)
    if match is None:
        return text, {}
    return text[: match.start()], dict(parse_qsl(text[match.end() :], keep_blank_values=True))


def _split_scheme(text: str) -> tuple[str, str]:
    """The scheme and the rest; no scheme for a path, even one in a store such as ``s3a://bucket/…``."""
    match = _SCHEME.fullmatch(text)
    if match is None:
        return "", text
    scheme = match[1].lower()
    scheme = _ALIASES.get(scheme, scheme)
    if scheme not in _EXAMPLES and match[2].startswith("//") and _suffix(text) is not None:
        return "", text
    return scheme, match[2]


def _path_alone(path: str, options: dict[str, str], known: tuple[str, ...], role: str) -> Address:
    scheme = _suffix(path)
    if scheme is None:
        raise DataError(
            f"{path!r} does not say what kind of {role} it is", hint=f"the {role}s are {_listed(known)}"
        )
    return Address(scheme, path, options=options)


def _suffix(path: str) -> str | None:
    lowered = path.lower().rstrip("/").removesuffix(".gz")
    return next((form for suffix, form in _SUFFIXES.items() if lowered.endswith(suffix)), None)


def _kafka(text: str, rest: str, options: dict[str, str]) -> Address:
    servers, _, topics = rest.removeprefix("//").partition("/")
    if not _SERVERS.fullmatch(servers) or not topics or "/" in topics:
        raise DataError(f"{text} is not a Kafka topic", hint=f"write {_EXAMPLES['kafka']}")
    return Address("kafka", servers, topics, options=options)


def _postgresql(rest: str, options: dict[str, str]) -> Address:
    match = _DATABASE.fullmatch(rest.removeprefix("//"))
    if match is None:
        raise DataError("this is not a PostgreSQL table", hint=f"write {_EXAMPLES['postgresql']}")
    user, password = (None if part is None else unquote(part) for part in (match["user"], match["password"]))
    place = f"{match['server'] or 'localhost'}/{match['database']}"
    return Address("postgresql", place, match["table"], user or None, password, options)


def _listed(schemes: tuple[str, ...]) -> str:
    return ", ".join(_EXAMPLES[scheme] for scheme in schemes)


def located(path: str) -> str:
    """A local path with a scheme, so that Spark's default file system does not matter; nothing is encoded.

    >>> located("s3a://bucket/events")
    's3a://bucket/events'
    >>> located("/data/100% here")
    'file:///data/100% here'
    """
    return path if "://" in path else f"file://{Path(path).absolute()}"


@checked
def trigger_of(text: str | None) -> dict[str, Any]:
    """The keyword argument of Spark's `trigger`; `DataError` for other texts.

    >>> trigger_of("10s"), trigger_of("available-now")
    ({'processingTime': '10 seconds'}, {'availableNow': True})
    """
    if text is None:
        return {"processingTime": "0 seconds"}
    plain = text.strip().lower()
    if plain.replace("_", "-").replace(" ", "-") in ("available-now", "availablenow"):
        return {"availableNow": True}
    match = _INTERVAL.fullmatch(plain)
    if match is None:
        raise DataError(
            f"{text!r} is not a trigger", hint="write available-now, or an interval such as 10 seconds"
        )
    return {"processingTime": f"{match[1]} {_UNITS.get(match[2], match[2])}"}
