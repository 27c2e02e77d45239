"""Rules with examples beside them: ``name.test.yml`` has what ``name.ceql`` is expected to find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from estero.arguments import checked, shown
from estero.errors import DataError, EsteroError, require
from estero.events.inputs import open_input
from estero.events.tables.written_times import with_written_times
from estero.language.tree.names import listed, suggestion
from estero.queries.rules.read_rules import rules
from estero.queries.rules.rule_files import EXAMPLES, text_of_file
from estero.queries.rules.rule_set import RuleSet
from estero.testing.assertion import assert_matches
from estero.testing.short_events import events as events_of

_ENTRIES: Final = ("rule", "events", "expected", "type", "time", "time_unit")


@checked
def check_rules(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    engines: Sequence[str] | None = ("process",),
) -> int:
    """Runs the examples of rules in files or directories, as `assert_matches` does, and returns their number.

    The examples of ``name.ceql``, ``name.eql`` or ``name.yml`` are beside it in ``name.test.yml``, a list of
    mappings: `events`, a text as `estero.testing.events` reads it or a list of mappings; `expected`, complex
    events by their labels and positions, or their number; optionally `type`, `time` and `time_unit` as in
    `assert_matches`, and `rule`, the name of a rule where the file has several. `engines` are as there.

    Raises AssertionError with all examples that fail, each with its file and number; `DataError` for a file
    that cannot be read and for a directory without examples; and the errors of `estero.rules`.
    """
    require("testing", "an example of a rule")
    asked = rules(paths)
    files = sorted({file for place in _places(paths) for file in place.rglob(f"*{EXAMPLES}")})
    if not files:
        raise DataError(f"there are no examples: their files end in {EXAMPLES}, beside those of the rules")
    wrong: list[str] = []
    number = 0
    for file in files:
        for place, example in enumerate(_examples(file), 1):
            number += 1
            try:
                _check(asked, file, example, engines)
            except (AssertionError, EsteroError, ValueError) as error:
                wrong.append(f"{file}, example {place}: {error}")
    if wrong:
        raise AssertionError("\n\n".join(wrong))
    return number


def _places(paths: str | PathLike[str] | Sequence[str | PathLike[str]]) -> list[Path]:
    given = [paths] if isinstance(paths, str | PathLike) else list(paths)
    return [path if path.is_dir() else path.parent for path in map(Path, given)]


def _examples(file: Path) -> list[Mapping[str, Any]]:
    """The examples in a file; raises `DataError` if it is not a list of mappings."""
    import yaml

    try:
        read = yaml.safe_load(text_of_file(file))
    except yaml.YAMLError as error:
        raise DataError(f"this is not YAML: {error}", file=str(file)) from error
    if not isinstance(read, list) or not all(isinstance(example, Mapping) for example in read):
        raise DataError(
            f"examples are a list of mappings, not {shown(read)}",
            file=str(file),
            hint="- events: A@0s B@1s\n  expected: [{A: 0, B: 1}]",
        )
    for example in read:
        for name in example:
            if name not in _ENTRIES:
                near = suggestion(str(name), _ENTRIES) or f"the entries are {listed(_ENTRIES)}"
                raise DataError(f"an example has no entry {name!r}", file=str(file), hint=near)
        for name in ("events", "expected"):
            if name not in example:
                raise DataError(f"an example needs {name}", file=str(file))
    return read


def _check(asked: RuleSet, file: Path, example: Mapping[str, Any], engines: Sequence[str] | None) -> None:
    """Raises AssertionError, or another error, if a rule does not find what is expected."""
    __tracebackhide__ = True
    stem = file.name.removesuffix(EXAMPLES)
    own = [name for name in asked if _is_beside(asked.file_of(name), file, stem)]
    name = example.get("rule", own[0] if len(own) == 1 else None)
    if name in asked.refused:
        raise AssertionError(f"the rule {name} cannot be run: {asked.refused[name]}")
    if name not in own:
        which = f"the rules of {stem} are {listed(own)}" if own else f"there is no rule {stem} beside it"
        raise DataError(
            which, hint="name one of them: rule: …" if own else "examples have the stem of a rule"
        )
    layout = {key: example[key] for key in ("type", "time", "time_unit") if key in example}
    expected = example["expected"]
    if isinstance(expected, list):
        expected = list(map(_with_texts, expected))
    assert_matches(asked[name], _table(example["events"], layout), expected, engines=engines, **layout)


def _with_texts(expected: Any) -> Any:
    """A complex event with its labels as texts: in YAML ``1`` is a number."""
    if isinstance(expected, Mapping):
        return {str(name): value for name, value in expected.items()}
    return expected


def _is_beside(rule: Path | None, file: Path, stem: str) -> bool:
    return rule is not None and rule.parent.resolve() == file.parent.resolve() and rule.stem == stem


def _table(events: object, layout: Mapping[str, str]) -> pa.Table:
    """The events of an example: a text, or a list of mappings, whose times may be texts."""
    kind, time = layout.get("type", "type"), layout.get("time", "time")
    if isinstance(events, str):
        return events_of(events, type=kind, time=time)
    if not isinstance(events, list) or not all(isinstance(event, Mapping) for event in events):
        raise DataError(f"events are a text or a list of mappings, not {shown(events)}")
    if not events:
        return pa.table({})
    rows = [{str(name): value for name, value in event.items()} for event in events]
    return with_written_times(open_input(rows), time).table
