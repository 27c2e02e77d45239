"""What PyYAML reads of a text: values, and the nodes that know their places."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import yaml

_Loader: Final[type[Any]] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _StrictLoader(_Loader):  # type: ignore[misc]  # known when it runs
    """A loader that takes no key twice: YAML does not allow it, and PyYAML takes the last one."""

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
    """The values of the documents of a text; raises what PyYAML raises."""
    return list(yaml.load_all(text, _StrictLoader))


@lru_cache(maxsize=2)
def nodes_of(text: str) -> list[Any]:
    """The nodes of the documents of a text; the loader in Python knows their places in characters."""
    return list(yaml.compose_all(text, yaml.SafeLoader))


def inside(node: Any, step: str | int) -> tuple[Any, Any]:
    """The node that names a step, and the node behind it."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if getattr(key, "value", None) == step:
                return key, value
    elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    return None, None
