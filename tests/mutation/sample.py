"""Mutation testing by a sample: changes one place of the code at a time, and says which changes no test sees.

    .venv/bin/python -m pip install cosmic-ray
    nice .venv/bin/python tests/mutation/sample.py                      # the whole sample
    nice .venv/bin/python tests/mutation/sample.py plan --mutants 5     # another size, of one room
    nice .venv/bin/python tests/mutation/sample.py --again FILE         # what survived according to FILE

A mutant lives in a copy of the package: the clone is left as it is. Mutants of one seed are the same as long
as the modules are. Results are printed and appended to a file as they come, each with its change.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = "src/estero"
SEED = 29
FAR_OFF = 900
"""Seconds after which a mutant is said to loop."""

COMPARISONS = (
    *("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is", "Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt"),
    *("Lt_GtE", "GtE_Lt", "Gt_LtE", "LtE_Gt"),
)
BINARY = (
    *("Add_Sub", "Sub_Add", "Mul_FloorDiv", "FloorDiv_Mul", "RShift_LShift", "LShift_RShift"),
    *("BitOr_BitAnd", "BitAnd_BitOr"),
)
OPERATORS = (
    *(f"ReplaceComparisonOperator_{kind}" for kind in COMPARISONS),
    *(f"ReplaceBinaryOperator_{kind}" for kind in BINARY),
    *(
        "ReplaceUnaryOperator_USub_UAdd",
        "ReplaceUnaryOperator_Delete_Invert",
        "ReplaceUnaryOperator_Delete_Not",
    ),
    *("AddNot", "ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ZeroIterationForLoop", "NumberReplacer"),
)
"""Those of cosmic-ray whose mutants run and mean something else: not `is` for `==`, nor `**` for `|`."""


class Room(NamedTuple):
    """What is mutated, how many mutants there are in the sample, and what is run against them."""

    modules: tuple[str, ...]
    mutants: int
    tests: tuple[str, ...]
    interpreted: bool = False


_OF_PLANS = tuple(f"tests/{name}" for name in ("plan", "automata", "queries", "theory", "papers", "laws"))
ROOMS = {
    "plan": Room(("plan",), 40, _OF_PLANS),
    "automata": Room(("automata",), 60, _OF_PLANS),
    "kernels": Room(
        ("engine/runs/run_cea.py", "engine/tally", "engine/store/lists.py"),
        30,
        ("tests/engine/test_schema.py", "tests/engine/test_recognizer.py", "tests/engine/test_tally.py"),
        interpreted=True,
    ),
}


class Mutant(NamedTuple):
    """One change: the operator's occurrence in a module, and the line that it is on."""

    module: str
    operator: str
    occurrence: int
    line: int


def modules_of(room: Room) -> Iterator[Path]:
    """The modules of a room, by name."""
    for name in room.modules:
        path = REPOSITORY / SOURCES / name
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


def types_of(tree: ast.Module) -> Iterator[ast.expr]:
    """What a module says of types: annotations, which are not evaluated, and names for types."""
    for statement in tree.body:
        match statement:
            case ast.Assign(value=ast.BinOp() | ast.Subscript() as value):
                yield value
    for node in ast.walk(tree):
        match node:
            case ast.AnnAssign(annotation=annotation):
                yield annotation
            case ast.arg(annotation=ast.expr() as annotation):
                yield annotation
            case ast.FunctionDef(returns=ast.expr() as annotation):
                yield annotation


def mutants_of(path: Path) -> Iterator[Mutant]:
    """All mutants of a module."""
    text = path.read_text(encoding="utf-8")
    spans = [
        ((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0))
        for node in types_of(ast.parse(text))
    ]
    tree = get_ast(text)
    for name in OPERATORS:
        operator = get_operator(f"core/{name}")()
        places = (place for node in ast_nodes(tree) for place in operator.mutation_positions(node))
        for occurrence, (start, _) in enumerate(places):
            if not any(first <= start < last for first, last in spans):
                yield Mutant(str(path.relative_to(REPOSITORY)), name, occurrence, start[0])


def sample(name: str, size: int) -> Iterator[Mutant]:
    """So many mutants of a room; each of its places that can be changed is as likely as every other."""
    every = [mutant for path in modules_of(ROOMS[name]) for mutant in mutants_of(path)]
    random.Random(SEED).shuffle(every)
    return islice((mutant for mutant in every if _compiles(mutant)), size)


def _compiles(mutant: Mutant) -> bool:
    """Whether a mutant is Python; the star of an argument is taken for a product."""
    try:
        compile(changed(mutant)[0], mutant.module, "exec")
    except SyntaxError:
        return False
    return True


def changed(mutant: Mutant) -> tuple[str, str]:
    """The mutated module, and the change as a text."""
    before = (REPOSITORY / mutant.module).read_text(encoding="utf-8")
    after = mutate_code(before, get_operator(f"core/{mutant.operator}")(), mutant.occurrence)
    if after is None:
        raise SystemExit(f"{mutant.module} has changed since: there is no {mutant}")
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return after, "\n".join(line for line in lines if not line.startswith(("---", "+++")))


def verdict(room: Room, mutant: Mutant) -> dict[str, object]:
    """Runs the tests of a room against a mutant, until one fails."""
    after, change = changed(mutant)
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory)
        shutil.copytree(REPOSITORY / SOURCES, copy / SOURCES)
        shutil.copytree(REPOSITORY / "kernels", copy / "kernels")
        (copy / mutant.module).write_text(after, encoding="utf-8")
        began = time.monotonic()
        said, killed_by = _run(room, copy)
    outcome = {"killed_by": killed_by, "seconds": round(time.monotonic() - began, 1)}
    return {**mutant._asdict(), "survived": said == 0, **outcome, "change": change}


def _run(room: Room, copy: Path) -> tuple[int | None, str]:
    """The exit code of the tests, None where they loop, and what they say of the first that fails."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not spark", "-p", "no:cacheprovider"]
    paths = os.pathsep.join(map(str, [copy / "src", copy]))
    environment = os.environ | {"PYTHONPATH": paths}
    if room.interpreted:
        environment["ESTERO_KERNELS"] = "python"
    try:
        ended = subprocess.run(
            [*command, "--hypothesis-profile=quick", *room.tests],
            cwd=REPOSITORY,
            env=environment,
            capture_output=True,
            text=True,
            timeout=FAR_OFF,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, "time"
    named = [line for line in ended.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return ended.returncode, named[0].split(" - ")[0] if named else ""


def wanted(asked: argparse.Namespace) -> Iterable[tuple[str, Mutant]]:
    """The mutants to run, each with its room."""
    if asked.again:
        for line in asked.again.read_text(encoding="utf-8").splitlines():
            known = json.loads(line)
            if known["survived"]:
                yield known["room"], Mutant(*(known[field] for field in Mutant._fields))
        return
    for name in asked.rooms or ROOMS:
        for mutant in sample(name, asked.mutants or ROOMS[name].mutants):
            yield name, mutant


def main() -> None:
    """Runs what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("rooms", nargs="*", help=f"of {', '.join(ROOMS)}; all of them if none is named")
    parser.add_argument("--mutants", type=int, help="how many of each room")
    parser.add_argument("--again", type=Path, help="results of which only what survived is run")
    parser.add_argument("--results", type=Path, default=REPOSITORY / "build" / "mutants.jsonl")
    asked = parser.parse_args()
    asked.results.parent.mkdir(exist_ok=True)
    outcomes: Counter[tuple[str, bool]] = Counter()
    for name, mutant in wanted(asked):
        result = verdict(ROOMS[name], mutant)
        outcomes[name, bool(result["survived"])] += 1
        with asked.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"room": name, **result}) + "\n")
        said = "SURVIVED" if result["survived"] else f"killed by {result['killed_by']}"
        print(f"{mutant.module}:{mutant.line} {said} ({result['seconds']} s)\n{result['change']}", flush=True)
    for name in dict.fromkeys(name for name, _ in outcomes):
        killed, survived = outcomes[name, False], outcomes[name, True]
        print(f"{name}: {killed} of {killed + survived} killed")


if __name__ == "__main__":
    main()
