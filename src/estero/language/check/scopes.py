"""Checks of the scopes of variables: bound in the filtered pattern, or in one around it (FO-CEL).

A label that is dropped or renamed before it gets to the filter is not bound there. The pattern after UNLESS
may refer to events outside of it only if it is one event.
"""

from __future__ import annotations

from dataclasses import dataclass

from estero.language.check.problems import Problems
from estero.language.tree import expressions as e
from estero.language.tree import pattern as p
from estero.language.tree.conditions import residuals
from estero.language.tree.names import listed, some
from estero.language.tree.selection import bound_names, label_types, marking
from estero.language.tree.words import quoted


def check_scopes(pattern: p.Pattern, problems: Problems) -> None:
    """Notes variables not bound around their filter, and keys that do not cover their pattern."""
    _ScopeCheck(problems, set(bound_names(pattern))).visit(pattern, ())


@dataclass(frozen=True, slots=True)
class _ScopeCheck:
    problems: Problems
    bound_somewhere: set[str]

    def visit(self, node: p.Pattern, around: tuple[set[str], ...]) -> None:
        """`around` are the labels of the patterns around `node`."""
        here = (*around, set(label_types(node)))
        match node:
            case p.Filter(condition=condition):
                self._filter(condition, here)
            case p.PartitionBy():
                self._keys(node)
            case p.Unless(forbidden=forbidden):
                self._forbidden(forbidden)
            case _:
                pass
        for child in node.children():
            self.visit(child, here)

    def _filter(self, condition: e.Node, here: tuple[set[str], ...]) -> None:
        visible = set().union(*here)
        for node in condition.walk():
            variable = getattr(node, "variable", None)
            if variable in self.bound_somewhere and variable not in visible:
                self.problems.add(
                    f"{variable} is marked neither in this pattern nor in one around it",
                    node.span,
                    expected=some(sorted(visible)) or "no label at all",
                    hint=f"put the FILTER after the part that marks {variable}, or keep its label",
                )
        for part in e.joined_by_logic(condition):
            for inner in part.walk() if not isinstance(part, e.EventFilter) else ():
                if isinstance(inner, e.EventFilter):
                    self.problems.add(
                        "X[…] cannot be part of a comparison",
                        inner.span,
                        expected="X.a",
                        hint=f"X[…] is a condition on its own: {quoted(inner.variable)}[…] AND …",
                    )

    def _keys(self, node: p.PartitionBy) -> None:
        names = {key.variable for key in node.keys}
        if None in names:
            return
        left = uncovered(node.pattern, {name for name in names if name is not None})
        if left:
            self.problems.add(
                f"no key covers the events of {listed(left)}",
                self.problems.inner_span(node.span, "PARTITION"),
                expected="keys X.a whose variables mark every event of the pattern",
                hint="PARTITION BY [a] is short for the attribute a of all of them",
            )

    def _forbidden(self, forbidden: p.Pattern) -> None:
        atom = forbidden
        while isinstance(atom, p.As | p.Filter):
            atom = atom.pattern
        if isinstance(atom, p.EventType):
            return
        for distance in (distance for node in forbidden.walk() for distance in p.distances_of(node)):
            self.problems.add(
                "a distance relates two events after UNLESS",
                distance.span,
                expected="a step without distances, or one event after UNLESS",
                hint="NOT R in the brackets is allowed there",
            )
        for residual in residuals(forbidden):
            what = "PARTITION BY" if isinstance(residual, p.PartitionBy) else "filter"
            self.problems.add(
                f"this {what} relates several events after UNLESS",
                residual.span,
                expected="filters on one event at a time, or one event (R AS x FILTER …) after UNLESS",
                hint="NOT(R AS x FILTER …) between two parts may refer to events outside it, too",
            )


def uncovered(pattern: p.Pattern, variables: set[str]) -> list[str]:
    """The types of marked events of `pattern` that may carry none of the labels `variables`."""
    match pattern:
        case p.EventType(name):
            return [] if name in variables else [name]
        case p.As(inner, variable):
            return [] if variable in variables else uncovered(inner, variables)
        case p.Rename(inner, old, new):
            outside = variables - {old}
            return uncovered(inner, outside | {old} if new in variables else outside)
        case p.Keep(inner, labels):
            return uncovered(inner, variables & set(labels)) if variables & set(labels) else list(labels)
        case p.Unless(inner):
            return uncovered(inner, variables)
        case _:
            parts = marking(pattern)
            return list(dict.fromkeys(name for part in parts for name in uncovered(part, variables)))
