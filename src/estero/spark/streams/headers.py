"""What the state of a stream says that it is of: a checkpoint goes on with its own query only."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa

from estero.errors import DataError
from estero.plan.identity import fingerprint, query_of
from estero.plan.plan_joins import AnyPlan

FORMAT = 1
"""The version of the state of streams. Another one is refused."""

_ANEW = "give the stream a checkpoint directory of its own"


def header_of(plan: AnyPlan, packed: pa.Schema, buckets: int) -> str:
    """The header of the state of a stream that runs `plan` on events packed in columns of `packed`."""
    about = {
        "format": FORMAT,
        "query": query_of(plan),
        "plan": fingerprint(plan, packed),
        "buckets": buckets,
    }
    return json.dumps(about)


def refuse_other(found: str, expected: str) -> None:
    """Raises `DataError` unless the two headers are of the same."""
    if found == expected:
        return
    there: Mapping[str, object] = json.loads(found)
    here: Mapping[str, object] = json.loads(expected)
    if there["format"] != here["format"]:
        raise DataError(
            f"the checkpoint has format {there['format']}, and this version of Estero reads {here['format']}",
            hint=f"{_ANEW}, or go on with the version of Estero that wrote it",
        )
    if there["query"] != here["query"]:
        raise DataError(
            f"the checkpoint is of another query: {there['query']}",
            hint=f"it cannot go on with {here['query']}; {_ANEW}",
        )
    if there["buckets"] != here["buckets"]:
        raise DataError(
            f"the checkpoint has the keys in {there['buckets']} buckets, and {here['buckets']} are asked for",
            hint=f"ask for partitions={there['buckets']}, or {_ANEW}",
        )
    raise DataError(
        "the checkpoint is of this query, but of other columns or other settings",
        hint=f"events must come with the columns and types that they had; else {_ANEW}",
    )
