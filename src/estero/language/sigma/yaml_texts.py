"""The values of a YAML text, and the nodes with their places, as PyYAML reads them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import yaml

_Loader: Final[type[Any]] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _StrictLoader(_Loader):  # type: ignore[misc]  # known when it runs
    """A loader that refuses repeated keys, which YAML forbids and PyYAML accepts."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        known: set[tuple[str, str]] = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in known:
                    raise yaml.constructor.ConstructorError(
                        problem=f"the key {key.value} stands here twice", problem_mark=key.start_mark
                    )
                known.add((key.tag, key.value))
        made: dict[Any, Any] = super().construct_mapping(node, deep)
        return made


def contents_of(text: str) -> list[Any]:
    """The values of the documents of a text; raises the errors of PyYAML."""
    return list(yaml.load_all(text, _StrictLoader))


@lru_cache(maxsize=2)
def nodes_of(text: str) -> list[Any]:
    """The nodes of the documents of a text, from the loader in Python, which has places in characters."""
    return list(yaml.compose_all(text, yaml.SafeLoader))


def inside(node: Any, step: str | int) -> tuple[Any, Any]:
    """The node of a key or an index, and the node of its value."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if getattr(key, "value", None) == step:
                return key, value
    elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    return None, None
