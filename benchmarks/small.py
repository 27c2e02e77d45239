"""``python -m benchmarks.small``: how long a query over few events takes that was asked before.

From a table of Arrow or a frame of pandas to a table of Arrow with the answer, by the same query object and
by the same text anew. Prints the median and the least CPU time in milliseconds, of all threads, as JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import estero
from benchmarks.latency import table_of

SIZES = (1_000, 50_000)
WARMING = 5
TEXTS = {
    "sequence": """
        SELECT * WHERE A AS a ; B AS b ; C AS c
        FILTER a[price > 95 AND volume >= 200] AND b[price BETWEEN 25 AND 30]
            AND c[price < 10 AND volume < 800]
        WITHIN 100 EVENTS
    """,
    "keys": """
        SELECT * WHERE A AS a ; B AS b ; C AS c
        FILTER a[price > 50 AND volume >= 200] AND b[price BETWEEN 25 AND 75]
            AND c[price < 60 AND volume < 800]
        PARTITION BY [k] WITHIN 10 SECONDS
    """,
}


def measured(text: str, events: object, repeats: int, *, anew: bool) -> tuple[list[float], int]:
    """Milliseconds of CPU time of each run, and how many complex events there are."""
    query, times, rows = estero.query(text), [], 0
    for _ in range(WARMING + repeats):
        begun = time.process_time()
        asked = estero.query(text) if anew else query
        rows = asked.run(events, type="type", time="t").to_arrow().num_rows
        times.append(1000 * (time.process_time() - begun))
    return times[WARMING:], rows


def main() -> None:
    """Times each query on each size in each form."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.small", description=__doc__)
    parser.add_argument("--repeats", type=int, default=30)
    asked = parser.parse_args()
    for size in SIZES:
        table = table_of(size, keys=size // 10)
        for form, events in (("arrow", table), ("pandas", table.to_pandas())):
            for name, text in TEXTS.items():
                for anew in (False, True):
                    times, rows = measured(text, events, asked.repeats, anew=anew)
                    figures = {"median": round(statistics.median(times), 2), "least": round(min(times), 2)}
                    row = {"events": size, "form": form, "query": name, "text anew": anew}
                    print(json.dumps(row | {"complex events": rows} | figures), flush=True)


if __name__ == "__main__":
    main()
