"""The query as code to copy: Python, the command line, Spark."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from estero.events.scan import Scan
from estero.language.tree.schema import UNITS_OF_TIME


def as_code(text: str, scan: Scan, values: dict[str, object]) -> dict[str, str]:
    """The query over these events as ``python``, ``shell`` and ``spark``, with `values` of its parameters.

    Events that are not files are named ``events``, or the file ``events.parquet``.
    """
    layout = _layout(scan)
    file = scan.events if isinstance(scan.events, str | Path) else None
    said = "".join(f", {name}={value!r}" for name, value in layout.items())
    events = "events" if file is None else repr(str(file))
    bound = f".bind({_arguments(values)})" if values else ""
    query = f'query = estero.query("""\n{_in_python(text.rstrip())}\n"""){bound}'
    python = f"import estero\n\n{query}\nanswer = query.run({events}{said})\nprint(answer.count())\n"
    path = "events.parquet" if file is None else str(file)
    spark = (
        f"import estero\nfrom estero.spark import read_events, recognize\n\n{query}\n"
        f"events = read_events({path!r})\nmatches = recognize(events, query{said})\nmatches.show()\n"
    )
    options = [f"--param {shlex.quote(f'{name}={value}')}" for name, value in values.items()]
    for name, value in layout.items():
        several = value if isinstance(value, list) else [value]
        options += [f"--{name.replace('_', '-')} {shlex.quote(str(one))}" for one in several]
    command = " \\\n    ".join([f"estero run - --events {shlex.quote(path)}", *options])
    shell = f"{command} << 'CEQL'\n{text.rstrip()}\nCEQL\n"
    return {"python": python, "shell": shell, "spark": spark}


def _layout(scan: Scan) -> dict[str, Any]:
    layout = scan.layout
    unit = next((name for name, unit in UNITS_OF_TIME.items() if unit is layout.time_unit), None)
    given = {"type": layout.type, "time": layout.time, "order": list(layout.order), "time_unit": unit}
    return {name: value for name, value in given.items() if value}


def _arguments(values: dict[str, object]) -> str:
    if all(name.isidentifier() for name in values):
        return ", ".join(f"{name}={value!r}" for name, value in values.items())
    return repr(values)


def _in_python(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"""', r"\"\"\"")
