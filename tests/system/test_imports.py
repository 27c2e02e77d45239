"""No file of Estero is needed by what it needs, wherever in a file the import stands."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import estero

Imports = dict[str, set[str]]
ROOT = Path(estero.__file__).parent


def modules_of(root: Path) -> dict[str, ast.Module]:
    """The syntax of each module below a package, by its name."""
    modules = {}
    for path in root.rglob("*.py"):
        parts = path.relative_to(root.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules[name] = ast.parse(path.read_text(encoding="utf-8"))
    return modules


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All that runs, inside functions, too: what stands under TYPE_CHECKING does not."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from statements(child)


def imports_of(modules: dict[str, ast.Module]) -> Imports:
    """Which modules each module imports."""
    imports: Imports = {name: set() for name in modules}
    for name, tree in modules.items():
        for statement in statements(tree):
            wanted: list[str] = []
            if isinstance(statement, ast.Import):
                wanted = [alias.name for alias in statement.names]
            elif isinstance(statement, ast.ImportFrom) and statement.module:
                inside = [f"{statement.module}.{alias.name}" for alias in statement.names]
                wanted = [module if module in modules else statement.module for module in inside]
            imports[name] |= modules.keys() & wanted
        imports[name].discard(name)
    return imports


def circle_in(imports: Imports) -> list[str]:
    """Modules of which each is imported by the next, the first by the last; empty where there are none."""
    try:
        list(TopologicalSorter(imports).static_order())
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return []


@pytest.fixture(scope="module")
def imports() -> Imports:
    return imports_of(modules_of(ROOT))


def test_no_file_is_needed_by_what_it_needs(imports: Imports) -> None:
    assert circle_in(imports) == []


def test_imports_inside_functions_are_seen(imports: Imports) -> None:
    run = "estero.recognize.in_process"
    assert {
        "estero.recognize.partial_matches.funnels",
        "estero.recognize.why_not",
        "estero.plan.levels",
    } <= imports[run]


def test_a_circle_through_a_function_is_found() -> None:
    texts = {"estero.a": "import estero.b", "estero.b": "def f():\n    from estero import a"}
    modules = {name: ast.parse(text) for name, text in texts.items()}
    assert set(circle_in(imports_of(modules))) == {"estero.a", "estero.b"}


def test_what_only_annotations_need_is_no_import() -> None:
    text = "if TYPE_CHECKING:\n    import estero.b"
    modules = {"estero.a": ast.parse(text), "estero.b": ast.parse("")}
    assert imports_of(modules)["estero.a"] == set()
