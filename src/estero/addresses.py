"""The source or sink of a stream, as users write it: ``parquet:events/`` → an `Address`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

from estero.errors import DataError

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
    "stdin": "stdin",
    "tcp": "tcp://HOST:PORT",
    "http": "http://HOST/PATH",
    "https": "https://HOST/PATH",
}
_ALONE = ("console", "stdin")
"""The addresses without a place."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(.*)", re.DOTALL)
_OPTIONS = re.compile(r"\?(?=[\w.-]+=)")
_SERVERS = re.compile(r"[^\s:,/@]+:\d+(,[^\s:,/@]+:\d+)*|\[[0-9a-fA-F:]+\]:\d+")
_DATABASE = re.compile(
    r"(?:(?P<user>[^:@/]*)(?::(?P<password>[^@/]*))?@)?(?P<server>\[[0-9a-fA-F:]+\](?::\d+)?|[^:@/]*(?::\d+)?)"
    r"/(?P<database>[^/]+)/(?P<table>[^/]+)"
)


@dataclass(frozen=True, slots=True)
class Address:
    """A place that is read or written; it prints without a password.

    `place` is a path, Kafka's ``host:port[,host:port]`` or a database's ``host:port/database``; `name` the
    topics (with commas) or the table; `options` the further settings of the reader or writer. For a webhook
    `place` is the whole URL, which is printed without its query, as that may hold a secret.
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
        if self.scheme in ("http", "https"):
            url = urlsplit(self.place)
            return f"{self.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"
        slashes = "//" if self.scheme == "tcp" else ""
        return f"{self.scheme}:{slashes}{self.place}" if self.place else self.scheme


def address_of(text: str, known: tuple[str, ...], role: str) -> Address:
    """The address of a text, with one of the `known` schemes; `role` is its word in messages.

    The format of a path without a scheme is given by its suffix. Raises `DataError` for other texts.
    """
    if text in _ALONE and text in known:
        return Address(text)
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
    if scheme in _ALONE:
        raise DataError(f"{text}: {scheme} stands alone, without a place")
    if scheme in ("http", "https"):
        return _webhook(text, scheme)
    if scheme == "tcp":
        return _socket(text, rest, options)
    path = rest.removeprefix("//")
    if not path:
        raise DataError(f"{text}: the directory is missing", hint=f"write {_EXAMPLES[scheme]}")
    return Address(scheme, path, options=options)


def _split_options(text: str) -> tuple[str, dict[str, str]]:
    """The text before ``?key=value&…``, and the keys with their values; a glob's ``?`` is not a separator."""
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


def _webhook(text: str, scheme: str) -> Address:
    url = urlsplit(text)
    if not url.hostname:
        raise DataError("this is not the URL of a webhook", hint=f"write {_EXAMPLES[scheme]}")
    return Address(scheme, text)


def _socket(text: str, rest: str, options: dict[str, str]) -> Address:
    server = rest.removeprefix("//")
    if not _SERVERS.fullmatch(server) or "," in server:
        raise DataError(f"{text} is not a TCP socket", hint=f"write {_EXAMPLES['tcp']}")
    return Address("tcp", server, options=options)


def _postgresql(rest: str, options: dict[str, str]) -> Address:
    match = _DATABASE.fullmatch(rest.removeprefix("//"))
    if match is None:
        raise DataError("this is not a PostgreSQL table", hint=f"write {_EXAMPLES['postgresql']}")
    user, password = (None if part is None else unquote(part) for part in (match["user"], match["password"]))
    place = f"{match['server'] or 'localhost'}/{match['database']}"
    return Address("postgresql", place, match["table"], user or None, password, options)


def _listed(schemes: tuple[str, ...]) -> str:
    return ", ".join(_EXAMPLES[scheme] for scheme in schemes)
