"""pandas, by hand: from a DataFrame to DataFrames, with NumPy where pandas has no join over a range."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.peers.events import TYPES, load
from benchmarks.peers.queries import WINDOWS


def _ids(events: pd.DataFrame, kind: str) -> NDArray[np.int64]:
    ids: NDArray[np.int64] = events.index[events["type"] == kind].to_numpy()
    return ids


def _between(
    ids: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """All pairs of a row and an id from its `low` up to its `high`: rows, and ids."""
    first, last = np.searchsorted(ids, low), np.searchsorted(ids, high, side="right")
    counts = np.maximum(last - first, 0)
    rows = np.repeat(np.arange(counts.size), counts)
    within = np.arange(rows.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return rows, ids[first[rows] + within]


def sequence(events: pd.DataFrame) -> list[pd.DataFrame]:
    """From the rare D back to the A's of its window, then the B's between."""
    closing = _ids(events, "D")
    rows, opening = _between(_ids(events, "A"), closing - WINDOWS["sequence"], closing - 1)
    pairs = pd.DataFrame({"a": opening, "d": closing[rows]})
    rows, middle = _between(_ids(events, "B"), pairs["a"].to_numpy() + 1, pairs["d"].to_numpy() - 1)
    return [pairs.iloc[rows].assign(b=middle)]


def kleene(events: pd.DataFrame) -> list[pd.DataFrame]:
    """From the D's back: one B more in each round, as long as there are any; then the A's before."""
    opening, middle, closing = (_ids(events, kind) for kind in "ABD")
    chosen = pd.DataFrame({"d": closing, "first": closing})
    parts = []
    for number in range(WINDOWS["kleene"]):
        least = chosen["d"].to_numpy() - WINDOWS["kleene"]
        rows, earlier = _between(middle, least + 1, chosen["first"].to_numpy() - 1)
        chosen = chosen.iloc[rows].assign(first=earlier, **{f"b{number}": earlier})
        if chosen.empty:
            break
        least = chosen["d"].to_numpy() - WINDOWS["kleene"]
        rows, starts = _between(opening, least, chosen["first"].to_numpy() - 1)
        parts.append(chosen.iloc[rows].assign(a=starts).drop(columns="first"))
    return parts


def any_order(events: pd.DataFrame) -> list[pd.DataFrame]:
    """From the D's to the A's around them, then the B's around both."""
    window = WINDOWS["any order"]
    closing = _ids(events, "D")
    rows, other = _between(_ids(events, "A"), closing - window, closing + window)
    pairs = pd.DataFrame({"a": other, "d": closing[rows]})
    low, high = pairs.max(axis=1).to_numpy() - window, pairs.min(axis=1).to_numpy() + window
    rows, third = _between(_ids(events, "B"), low, high)
    return [pairs.iloc[rows].assign(b=third)]


def absence(events: pd.DataFrame) -> list[pd.DataFrame]:
    """Beside each A the next B or C, kept where it is a C."""
    either = events.index[events["type"].isin(["B", "C"])].to_numpy()
    opening = pd.DataFrame({"a": _ids(events, "A")})
    pairs = _next(opening, "a", pd.DataFrame({"c": either}), "c")
    closing = events["type"].to_numpy()[pairs["c"].to_numpy()] == "C"
    return [pairs[closing & (pairs["c"] - pairs["a"] <= WINDOWS["absence"])]]


def rising(events: pd.DataFrame) -> list[pd.DataFrame]:
    """Each price beside the next two."""
    first, second, third = (events["price"].shift(-by) for by in range(3))
    starts = events.index[(first < 100) & (first < second) & (second < third) & (third > 900)]
    return [pd.DataFrame({"x": starts, "y": starts + 1, "z": starts + 2})]


def keys(events: pd.DataFrame) -> list[pd.DataFrame]:
    """Beside each C the next A of its key, and beside that the next B."""
    return _next_two(events, WINDOWS["keys"], by="key")


def following(events: pd.DataFrame) -> list[pd.DataFrame]:
    """Beside each C the next A, and beside that the next B."""
    return _next_two(events, WINDOWS["next"])


def _next_two(events: pd.DataFrame, window: int, by: str | None = None) -> list[pd.DataFrame]:
    key = [by] if by else []
    c, a, b = (
        events.loc[events["type"] == kind, key].rename_axis(kind.lower()).reset_index() for kind in "CAB"
    )
    joined = _next(_next(c, "c", a, "a", by).sort_values("a"), "a", b, "b", by)
    return [joined.loc[joined["b"] - joined["c"] <= window, ["c", "a", "b"]]]


def _next(
    left: pd.DataFrame, after: str, right: pd.DataFrame, name: str, by: str | None = None
) -> pd.DataFrame:
    """Each row with the next id of `right` after that of its column `after`; without those that have none."""
    right = right.assign(at=right[name])
    joined = pd.merge_asof(
        left, right, left_on=after, right_on="at", by=by, direction="forward", allow_exact_matches=False
    )
    return joined.drop(columns="at").dropna().astype("int64")


QUERIES: dict[str, Callable[[pd.DataFrame], list[pd.DataFrame]]] = {
    "sequence": sequence,
    "kleene": kleene,
    "any order": any_order,
    "absence": absence,
    "rising": rising,
    "keys": keys,
    "next": following,
}


@dataclass(frozen=True, slots=True)
class Pandas:
    """The stream as a frame; its types are categories."""

    query: str
    stream: pd.DataFrame
    version: str

    def tables(self, events: int) -> list[pa.Table]:
        """What the function of the query gives."""
        frames = QUERIES[self.query](self.stream.iloc[:events])
        return [pa.Table.from_pandas(frame, preserve_index=False) for frame in frames]


def engine(folder: Path, query: str, _text: str) -> Pandas:
    """Pandas with the events of a folder."""
    columns = load(folder)
    types = pd.Categorical.from_codes(columns["type"], list(TYPES))
    stream = pd.DataFrame({"type": types, "key": columns["key"], "price": columns["price"]})
    return Pandas(query, stream, f"pandas {pd.__version__}")
