"""The other side of `session` for CORE, in the interpreter that has `pycer`; `benchmarks.core_driver` inside.

What counts is the time from the first event handed over, events being objects of CORE already, until its
text has all answers, less the time that its shutdown takes with nothing to do.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.core_driver import Peer

TYPES = ("A", "B", "C", "D", "E")
KINDS = {"type": "u1", "key": "<i4", "price": "<i4"}


def main() -> None:
    """Serves requests until the input ends. CORE logs to standard output, so that is moved away first."""
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    folder, _query, text = sys.argv[1:]
    path = Path(folder) / "core.npz"
    np.savez(
        path,
        allow_pickle=False,
        **{name: np.fromfile(Path(folder) / name, kind) for name, kind in KINDS.items()},
    )
    peer = Peer()
    names = [["key", "int"], ["price", "int"]]
    peer.load({"path": str(path), "stream": "S", "types": TYPES, "columns": names})
    path.unlink()
    print(json.dumps({"version": f"pycer {importlib.metadata.version('pycer')}"}), file=replies)
    for line in sys.stdin:
        events, target = line.split()
        request = {"query": text, "events": int(events)}
        if target == "-":
            begun = time.process_time()
            said = peer.run(request)
            cpu = time.process_time() - begun
            reply = {"wall": said["engine"], "cpu": cpu, "answers": said["outputs"], "sum": None}
        else:
            sets = peer.run({**request, "answers": "sets"})["sets"]
            lines = (" ".join(map(str, members)) + "\n" for members in sets)
            Path(target).write_text("".join(lines), encoding="utf-8")
            reply = {"answers": len(sets), "sum": sum(map(sum, sets))}
        print(json.dumps(reply), file=replies)


if __name__ == "__main__":
    main()
