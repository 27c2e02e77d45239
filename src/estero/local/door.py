"""The function `estero.live`: a stream in this process, from a query or rules, a source and a sink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fsencode, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estero.addresses import Address
from estero.arguments import checked
from estero.errors import legible
from estero.events.streams.stream_layout import check_distances
from estero.local.checkpoints import Checkpoint
from estero.local.note import check_note, write_note
from estero.local.opening import check_apart, local_sink, local_source, opened_sink, opened_source
from estero.local.recognition import Asked
from estero.local.schemas import schema_of
from estero.local.stream import LiveStream, Settings
from estero.queries.query import Query
from estero.queries.rules.rule_origin import RuleOrigin
from estero.queries.rules.rule_set import RuleSet
from estero.queries.rules.rule_table import RuleTable, origin_of
from estero.recognize.recognizers.memory_limit import MemoryPolicy, bytes_of

if TYPE_CHECKING:
    import pyarrow as pa

    from estero.events.streams.stream_layout import Keep, Lateness


@checked
def live(  # noqa: PLR0913 (what users may have to say)
    rules: Query | RuleSet | RuleTable | str | PathLike[str],
    source: str,
    sink: str = "console",
    *,
    checkpoint: str | PathLike[str] | None = None,
    schema: pa.Schema | str | PathLike[str] | None = None,
    type: str | None = None,
    time: str | None = None,
    order: Sequence[str] = (),
    time_unit: str | None = None,
    lateness: Lateness | None = None,
    dead_letters: str | None = None,
    backfill: str | PathLike[str] | None = None,
    version: bool = False,
    checkpoint_every: float = 10.0,
    batch: int = 20_000,
    idle_after: float | None = None,
    keep: Keep | None = None,
    memory_limit: int | str | None = None,
    memory_policy: MemoryPolicy = "error",
    params: Mapping[str, object] | None = None,
    metadata: str | Sequence[str] = (),
) -> LiveStream:
    """A stream from a source to a sink, recognized in this process, without Spark.

    - `rules`: a query, a set of rules, a directory of rules, or a table of them (`estero.rule_table`); files
      and tables may change while the stream runs.
    - `source`: ``kafka://HOST:PORT/TOPIC``; ``parquet:DIR``, ``json:DIR`` or ``csv:DIR``, in which files
      appear; ``tcp://HOST:PORT`` or ``stdin``, with lines of JSON.
    - `sink`: Kafka, ``parquet:DIR``, ``json:DIR``, ``postgresql://USER@HOST:PORT/DATABASE/TABLE``, the URL of
      a webhook, or ``console``.
    - `schema`: the columns of the events ("kind STRING, time TIMESTAMP"), by default those of the first ones.
    - `checkpoint`: a directory from which the stream resumes; it is written every `checkpoint_every` seconds
      (0: after each batch).
    - `dead_letters`: an address for events that cannot be read; by default they are logged and counted.
    - `backfill`: files with the past, which are read first. From the stream, only events after the last one
      of these, by `time` and `order`, are taken.
    - `version`: answers have a column with the digest of the rules.
    - `batch`: the largest number of events taken at once.
    - `params`: values for the parameters of rules in a directory.
    - `metadata`: entries of the rules' metadata to show as columns after ``rule``, as in `RuleSet.run`.
    - `idle_after`: once no event has come for so many seconds, the time of the stream follows the clock at
      this distance. Absences and windows are decided without further events, and earlier events are late.
    - `keep`: past events to keep ("2 hours", "1000 events"; see `RuleSet.recognizer`), with a replay of which
      new and changed rules begin.
    - `memory_limit` and `memory_policy`, as in `Query.recognizer`: a stream with a larger state fails, or
      sheds the oldest partitions.
    - `type`, `time`, `order`, `time_unit` and `lateness`: as in `Query.recognizer`.

    Raises `DataError` for an invalid address, for a source that is also the sink and for a checkpoint of
    another stream, ValueError for a number that is out of range, and `MissingPackage` without the package
    that a source or sink needs.
    """
    _check(checkpoint_every, batch, backfill, time)
    _check_idle(idle_after, time)
    check_distances(lateness, keep, time)
    if memory_limit is not None:
        bytes_of(memory_limit)
    from_, to = local_source(source), local_sink(sink)
    letters = None if dead_letters is None else local_sink(dead_letters)
    for address in (to, letters):
        if address is not None:
            check_apart(from_, address)
    asked: Query | RuleSet | RuleOrigin
    if isinstance(rules, Query | RuleSet):
        asked = rules.bind(params) if params else rules
    else:
        asked = origin_of(rules if isinstance(rules, RuleTable) else Path(fspath(rules)), params)
    for name, is_given in {"metadata": bool(metadata), "keep": keep is not None}.items():
        if is_given and isinstance(asked, Query):
            raise ValueError(f"{name} is for a set of rules: leave it out for one query")
    columns = None if schema is None else schema_of(schema)
    layout: dict[str, Any] = {
        "type": type,
        "time": time,
        "order": order,
        "time_unit": time_unit,
        "lateness": lateness,
    }
    if keep is not None:
        layout["keep"] = keep
    settings = Settings(
        str(from_),
        columns,
        time,
        version,
        float(checkpoint_every),
        most=batch,
        idle_after=None if idle_after is None else float(idle_after),
        time_unit=time_unit,
        memory_limit=memory_limit,
        memory_policy=memory_policy,
    )
    place = None if checkpoint is None else _directory(checkpoint)
    if place is not None:
        check_note(place, _note(asked, from_, to))
    events = opened_source(from_)
    if backfill is not None and time is not None:
        from estero.local.sources.past import PastThenStream

        events = PastThenStream(fspath(backfill), events, time, order)
    sinks = opened_sink(to), None if letters is None else opened_sink(letters)
    kept = None if place is None else Checkpoint(place)
    if place is not None:
        write_note(place, _note(asked, from_, to))
    words = (metadata,) if isinstance(metadata, str) else tuple(metadata)
    return LiveStream(Asked(asked, layout, words), events, sinks, kept, settings)


def _directory(path: str | PathLike[str]) -> Path:
    name = fspath(path)
    try:
        if b"\0" in fsencode(name):
            raise ValueError(f"{legible(name)} is not the name of a directory: it contains a NUL")
    except UnicodeEncodeError:
        raise ValueError(
            f"{legible(name)} is not the name of a directory: it contains half a surrogate pair"
        ) from None
    return Path(name)


def _check(checkpoint_every: float, batch: int, backfill: object, time: str | None) -> None:
    if not 0 <= checkpoint_every <= 86_400:
        raise ValueError(f"checkpoint_every is from 0 to 86,400 seconds, not {checkpoint_every}")
    if not 1 <= batch <= 1_000_000:
        raise ValueError(f"batch is from 1 to 1,000,000 events, not {batch}")
    if backfill is not None and time is None:
        raise ValueError(
            "a backfill needs a time column, by which past and stream are told apart: give time="
        )


def _check_idle(idle_after: float | None, time: str | None) -> None:
    if idle_after is None:
        return
    if not 0 < idle_after <= 86_400:
        raise ValueError(f"idle_after is more than 0 and at most 86,400 seconds, not {idle_after}")
    if time is None:
        raise ValueError("without a time column no time passes on a stream: give time= with idle_after=")


def _note(asked: Query | RuleSet | RuleOrigin, source: Address, sink: Address) -> dict[str, str]:
    """The part of the arguments that must stay the same; rules in a directory or a table may change."""
    match asked:
        case Query():
            query = str(asked)
        case RuleSet():
            query = "; ".join(f"{name}: {asked[name]}" for name in asked)
        case _:
            query = asked.called
    return {"query": query, "source": str(source), "sink": str(sink), "engine": "local"}
