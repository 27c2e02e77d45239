"""``python mended_states.py SEED``: states with wrong content and a right checksum are gone on with.

Prints what came of them, each once; anything but an answer or a refusal ends the program with an error.
"""

from __future__ import annotations

import random
import struct
import sys
import zlib
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import estero
from estero.recognize.state_bytes import State, read, written

QUERIES = (
    "SELECT * WHERE A AS a ; B+ AS b ; C AS c PARTITION BY [k] WITHIN 30 SECONDS",
    "SELECT NEXT * WHERE A AS a ; B+ AS b PARTITION BY [k] WITHIN 30 SECONDS",
    "SELECT MAX * WHERE A AS a ; B+ AS b WITHIN 30 SECONDS",
    "SELECT * WHERE A AS a ; B AS b FILTER a.k = b.k AND a.v < b.v WITHIN 30 SECONDS",
    "SELECT * WHERE A AS a ; B AS b ; C AS c FILTER a.k = b.k AND a.v != b.v AND b.k = c.k",
    "SELECT LONGEST DISJOINT * WHERE A AS a ; B+ AS b : C PARTITION BY [k] WITHIN 30 SECONDS",
    "SELECT LONGEST * WHERE A AS a ; B+ AS b WITHIN 20 SECONDS LIMIT 2 PER 10 SECONDS",
    "SELECT LONGEST DISJOINT * WHERE A+[<= 5 SECONDS] ; C PARTITION BY [k] WITHIN 20 SECONDS",
    "SELECT SHORTEST * WHERE A AS a ; B AS b FILTER a.v < b.v WITHIN 20 SECONDS LIMIT 2 PER 10 SECONDS",
    "SELECT * WHERE NOT(C) FOR 2 SECONDS ; A+ ; NOT(B FILTER B[v > 4]) FOR 9 SECONDS PARTITION BY [k]",
)
IN_EQL = (
    (
        "sequence by k with maxspan=20s ![C where v > 6] [A where true] ![C where v < 2] [B where true] "
        "![C where v < 4]"
    ),
    "sequence by ?k with maxspan=9s [A where true] [B where true] [C where true] until [B where v == 3]",
    "sample by k [A where v > 3] [B where v > 7] [C where v > 7]",
)
RULES = {
    "keyed": QUERIES[0],
    "keyed too": "SELECT * WHERE A AS a ; B AS b FILTER b[v > 3] PARTITION BY [k] WITHIN 30 SECONDS",
    "its sibling": "SELECT * WHERE A AS a ; B AS b FILTER b[v > 5] PARTITION BY [k] WITHIN 30 SECONDS",
    "absent": QUERIES[-1],
    "free": QUERIES[2],
}
EACH = 20
EDGES = (0, 1, -1, -2, 127, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 2**32, 59, 60, 61)

Asked = estero.Query | estero.RuleSet
Arrays = dict[str, NDArray[Any]]


def events(seed: int, first: int, count: int) -> pa.Table:
    drawn = np.random.default_rng(seed)
    return pa.table(
        {
            "type": pa.array(drawn.choice(list("ABC"), count)),
            "time": pa.array((np.arange(count) + first) * 10**6, pa.timestamp("us")),
            "k": drawn.integers(0, 4, count),
            "v": drawn.integers(0, 9, count),
        }
    )


def begun(asked: Asked) -> bytes:
    table = events(1, 0, 60)
    how: dict[str, Any] = {"type": "type", "time": "time", "lateness": "3 seconds"}
    if isinstance(asked, estero.RuleSet):
        how["keep"] = "30 seconds"
    recognizer = asked.recognizer(table.schema, **how)
    recognizer.push(table)
    return recognizer.snapshot()


def go_on(asked: Asked, state: bytes) -> None:
    recognizer: Any = estero.restore(asked, state)
    if isinstance(asked, estero.RuleSet):
        recognizer.add("replayed", QUERIES[0], replay=True)
    recognizer.push(events(5, 60, 40)).to_arrow()
    recognizer.snapshot()
    recognizer.flush().to_arrow()


def changed(arrays: Arrays, chance: random.Random) -> Arrays:
    """The arrays, of which one is another one, shorter, or not there."""
    name = chance.choice([label for label in arrays if arrays[label].size])
    array, how = arrays[name], chance.random()
    if how < 0.1:
        return {label: kept for label, kept in arrays.items() if label != name}
    if how < 0.2:
        return {**arrays, name: array[:-1]}
    flat = array.reshape(-1).copy()
    limits, place = np.iinfo(flat.dtype), chance.randrange(flat.size)
    if how < 0.6:
        flat[place] = min(max(chance.choice(EDGES), limits.min), limits.max)
    else:
        flat.view(np.uint8)[chance.randrange(flat.nbytes)] ^= 1 << chance.randrange(8)
    return {**arrays, name: flat.reshape(array.shape)}


def wrong(state: bytes, chance: random.Random) -> bytes:
    """A state with a right checksum whose content was changed at one place."""
    outer = read(state)
    if chance.random() < 0.7:
        name = chance.choice([label for label in outer.arrays if "recognition" in label])
        inner = read(outer.arrays[name].tobytes())
        mended = written(State(inner.about, changed(inner.arrays, chance)))
        return written(State(outer.about, {**outer.arrays, name: np.frombuffer(mended, np.uint8)}))
    if "readings" in outer.about and chance.random() < 0.5:
        said = outer.about["readings"]
        place = chance.randrange(len(said))
        other = f"{said[:place]}{chance.choice('[],019n')}{said[place + 1 :]}"
        return written(State({**outer.about, "readings": other}, outer.arrays))
    if chance.random() < 0.5:
        return written(State(outer.about, changed(outer.arrays, chance)))
    bits = bytearray(state)
    bits[chance.randrange(24, len(bits))] ^= 1 << chance.randrange(8)
    struct.pack_into("<I", bits, 12, zlib.crc32(bits[24:]))
    return bytes(bits)


def main() -> None:
    chance = random.Random(int(sys.argv[1]))
    came: set[str] = set()
    everything: list[Asked] = [*map(estero.query, QUERIES), *map(estero.eql, IN_EQL), estero.rules(RULES)]
    everything.append(estero.eql(IN_EQL[-1], max_samples_per_key=20))
    for asked in everything:
        state = begun(asked)
        for _ in range(EACH):
            made = wrong(state, chance)
            try:
                go_on(asked, made)
            except estero.EsteroError:
                came.add("refused")
            else:
                came.add("answered")
    sys.stdout.write(" ".join(sorted(came)))


if __name__ == "__main__":
    main()
