"""Builds a PCEA from the parts of a pattern: the event that completes unordered runs gathers them.

A part with something before it is a chain: its next event gathers only its own run. If an ALL comes first,
its parts run independently, and either the last event of one of them gathers the others, or the first event
after the ALL gathers them all. The compact q-tree of the classes of equal values that the parts share
determines which parts are joined first. If all parts are single events, this is the construction of Theorem
4.1 of "Complex event recognition meets hierarchical conjunctive queries" (docs/papers.md). It is unambiguous.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Final, NamedTuple

from estero.automata.exploration import merged
from estero.automata.joins.entering import SOURCE_CAP, End, Link, States
from estero.automata.joins.parts import NotJoinedError, Parts
from estero.automata.joins.q_tree import (
    FRESH,
    Inner,
    Leaf,
    Node,
    QTreeOfAtoms,
    compact,
    leaves,
    q_tree,
    renumbered,
)
from estero.automata.joins.scopes import Scopes
from estero.automata.joins.shapes import (
    Move,
    Progress,
    Served,
    Shape,
    Together,
    all_shapes,
)
from estero.automata.pcea import PCEA
from estero.errors import LimitExceeded
from estero.language.check.conjunctive import witness
from estero.language.tree.literals import Value

TRANSITION_CAP: Final = 20_000
"""The most transitions of an automaton; only queries with many self-joins come near it."""

STATE_CAP: Final = 1_000
"""The most states of one part for the progress of its runs."""


class Gathered(NamedTuple):
    """An automaton, and the first q-tree by which it joins parts, if there is one."""

    pcea: PCEA
    tree: QTreeOfAtoms | None


def gathering(parts: Parts, *, cap: int = TRANSITION_CAP) -> Gathered:
    """The unambiguous automaton with the complex events of a pattern in parts.

    Raises `NotJoinedError` if there is none, and `LimitExceeded` for more than `cap` transitions.
    """
    scopes = Scopes(parts)
    construction = _Construction(parts, scopes, States(parts, scopes, cap))
    final = construction.track(parts.shape).finals
    return Gathered(construction.states.pcea(final), construction.first_tree)


@dataclass(slots=True)
class _Track:
    """A part that runs independently: the ways to complete it, and the states of complete runs.

    `further` are the events by which complete runs may go on.
    """

    ends: list[End] = field(default_factory=list)
    finals: list[int] = field(default_factory=list)
    further: set[int] = field(default_factory=set)


class _Serving(NamedTuple):
    """The ends of parts that one event can be at once, its types and constants, and further ends to try."""

    ends: tuple[int, ...]
    types: tuple[str, ...]
    constants: dict[str, Value]
    later: Sequence[int]


@dataclass(slots=True)
class _Construction:
    """The construction that joins the parts of each ALL with nothing before it."""

    parts: Parts
    scopes: Scopes
    states: States
    served: int = 0
    """The number of sets of ends that one event can be at once, over all nodes of q-trees so far."""
    of_node: dict[tuple[int, Node], list[int]] = field(default_factory=dict)
    """The numbers of the states of each ALL and node of one of its q-trees."""
    tracks: dict[int, _Track] = field(default_factory=dict)
    trees: dict[tuple[int, tuple[int, ...]], Node] = field(default_factory=dict)
    first_tree: QTreeOfAtoms | None = None

    def track(self, shape: Shape) -> _Track:
        """The track of a part; its states and transitions are made at its first use."""
        track = self.tracks.get(shape.number)
        if track is None:
            track = self.tracks[shape.number] = _Track()
            _Runs(self, shape, track).follow()
        return track

    # --------------------------------------------------------------------------------- joining parts

    def ends_of(self, together: Together) -> Iterator[End]:
        """The ways to complete all parts of an ALL."""
        return self._entries(together, self._tree(together, range(len(together.parts))))

    def further(self, together: Together) -> set[int]:
        """The events by which a run with complete parts may go on."""
        return {single for part in together.parts for single in self.track(part).further}

    def before(self, together: Together, move: Move) -> Iterator[tuple[Link, ...]]:
        """The runs that the first event after an ALL gathers: one of each part, or of parts joined before."""
        classes = frozenset(
            number
            for single in move.served
            for number in self.parts.events[single].values
            if self.scopes.is_around(number, together) and self.parts.classes[number].scope not in move.begun
        )
        choices = [self._states_of(together, node) for node in self._groups(together, classes)]
        for chosen in product(*choices):
            yield tuple(Link(state, move.begun) for state in chosen)

    def tree_name(self, together: Together) -> str:
        """The name of the state in which all parts of an ALL are joined."""
        root = self._tree(together, range(len(together.parts)))
        return root.variable if isinstance(root, Inner) else self.parts.events[root.atom].name

    def _groups(self, together: Together, behind: frozenset[int]) -> list[Node]:
        """The q-trees of the groups of parts that share a class without a value in the event after them."""
        having = self._having(together)
        sharing: dict[int, list[int]] = {}
        for atom, classes in enumerate(having):
            for number in classes:
                if number not in behind:
                    sharing.setdefault(number, []).append(atom)
        groups = merged([*([atom] for atom in range(len(having))), *sharing.values()])
        nodes = [self._tree(together, group) for group in sorted(map(sorted, groups))]
        if self.first_tree is None:
            names = [[self.parts.classes[number].name for number in classes] for classes in (*having, behind)]
            last = Leaf(len(having))
            tree = compact(q_tree(names)) if witness(names) is None else Inner(FRESH, (*nodes, last))
            texts = [*map(self.parts.text, together.parts), "what comes behind"]
            self.first_tree = QTreeOfAtoms(tree, texts)
        return nodes

    def _having(self, together: Together) -> list[list[int]]:
        """The classes of each part that another part, or something outside, has as well."""
        having: list[list[int]] = []
        for part in together.parts:
            matter = self.scopes.matter_outside(together, part.singles)
            values = (
                number for single in sorted(part.singles) for number in self.parts.events[single].values
            )
            having.append([number for number in dict.fromkeys(values) if number in matter])
        return having

    def _tree(self, together: Together, atoms: Sequence[int]) -> Node:
        """The compact q-tree of some parts; raises `NotJoinedError` if there is none."""
        place = together.number, tuple(atoms)
        if place not in self.trees:
            having = self._having(together)
            names = [[self.parts.classes[number].name for number in having[atom]] for atom in atoms]
            conflict = witness(names)
            if conflict is not None:
                first, second, *numbers = conflict
                both, one, other = (self.parts.name(together.parts[atoms[number]]) for number in numbers)
                raise NotJoinedError(
                    f"it is not hierarchical: {both} has both {first} and {second}, "
                    f"{one} has {first} alone, and {other} {second} alone"
                )
            tree = self.trees[place] = renumbered(compact(q_tree(names)), atoms)
            if self.first_tree is None and len(atoms) == len(having):
                self.first_tree = QTreeOfAtoms(tree, list(map(self.parts.text, together.parts)))
        return self.trees[place]

    def _states_of(self, together: Together, node: Node) -> list[int]:
        """The states of a node of a q-tree, made after those of the nodes below it."""
        if isinstance(node, Leaf):
            return self.track(together.parts[node.atom]).finals
        place = together.number, node
        if place not in self.of_node:
            numbers: list[int] = []
            below = frozenset(single for atom in leaves(node) for single in together.parts[atom].singles)
            kept = self.scopes.matter_outside(together, below)
            for end in self._entries(together, node):
                entry = self.states.entered(end, kept)
                if entry is not None:
                    self.states.enter(entry, numbers, node.variable)
            self.of_node[place] = numbers
        return self.of_node[place]

    def _entries(self, together: Together, node: Node) -> Iterator[End]:
        """The ways to enter a node: an event that ends parts below it and gathers the subtrees beside."""
        for child in node.children if isinstance(node, Inner) else ():
            self._states_of(together, child)
        atoms = leaves(node)
        ends = [(atom, end) for atom in atoms for end in self.track(together.parts[atom]).ends]
        hanging: dict[frozenset[int], list[list[int]]] = {}
        at_once = self._at_once([(atom, end.served) for atom, end in ends])
        sources = self.states.sources
        for chosen in at_once:
            below = frozenset(ends[number][0] for number in chosen)
            if below not in hanging:
                hanging[below] = [self._states_of(together, branch) for branch in _hanging(node, below)]
            sources += len(hanging[below]) * prod(map(len, hanging[below]))
            if sources > SOURCE_CAP:
                raise self.states.too_many_parts(SOURCE_CAP)
        for chosen in at_once:
            below = frozenset(ends[number][0] for number in chosen)
            served = tuple(sorted(single for number in chosen for single in ends[number][1].served))
            links = tuple(link for number in chosen for link in ends[number][1].links)
            for states in product(*hanging[below]):
                yield End(served, (*links, *map(Link, states)))

    def _at_once(self, ends: Sequence[tuple[int, Served]]) -> list[tuple[int, ...]]:
        """The sets of ends of different parts that one event can be at once, smaller ones first.

        There can be one for each subset of the parts that end with one type, so they are counted on the way.
        """
        servings = [
            _Serving(
                (number,),
                self.states.types(served),
                self.states.constants(served),
                range(number + 1, len(ends)),
            )
            for number, (_, served) in enumerate(ends)
        ]
        types = Counter(name for serving in servings for name in serving.types)
        for serving in servings:
            if all(types[name] == 1 for name in serving.types):
                continue  # nothing else ends with such an event
            part = ends[serving.ends[-1]][0]
            later = [
                number
                for number in serving.later
                if ends[number][0] > part and self._fits(serving, ends[number][1])
            ]
            if len(servings) + len(later) + self.served > self.states.cap:
                raise self.states.too_many_served(single for _, served in ends for single in served)
            servings += [self._serving_also(serving, number, ends[number][1], later) for number in later]
        self.served += len(servings)
        return [serving.ends for serving in servings]

    def _fits(self, serving: _Serving, served: Served) -> bool:
        """Whether one event can be a further end: they have a common type, and no different constants."""
        if set(serving.types).isdisjoint(self.states.types(served)):
            return False
        return all(
            serving.constants.get(name, value) == value
            for name, value in self.states.constants(served).items()
        )

    def _serving_also(self, serving: _Serving, number: int, served: Served, later: Sequence[int]) -> _Serving:
        types = tuple(name for name in serving.types if name in self.states.types(served))
        constants = serving.constants | self.states.constants(served)
        return _Serving((*serving.ends, number), types, constants, later)


@dataclass(slots=True)
class _Runs:
    """The exploration of the runs of one part from state to state."""

    made: _Construction
    shape: Shape
    track: _Track
    states: dict[Progress, list[int]] = field(default_factory=dict)
    moves: dict[Progress, list[Move]] = field(default_factory=dict)
    open: list[tuple[Progress, int]] = field(default_factory=list)

    def follow(self) -> None:
        """Makes all states, transitions and ends."""
        for start, progress in self.shape.opened():
            if isinstance(start, Together):
                self._join(start, progress)
            else:
                self._enter(End(start, ()), progress)
        for progress, state in self.open:  # the loop appends to it
            for move in self._moves(progress):
                self._enter(End(move.served, (Link(state, move.begun),)), move.progress)
                if self.shape.is_done(progress):
                    self.track.further.update(move.served)

    def _join(self, together: Together, progress: Progress) -> None:
        """Adds the end of an ALL with nothing before it, and the moves after it."""
        if self.shape.is_done(progress):
            states = self.states.setdefault(progress, [])
            for end in self.made.ends_of(together):
                self.track.ends.append(end)
                entry = self.made.states.entered(end, self._kept(progress, ends=True))
                if entry is not None:
                    self.made.states.enter(entry, states, self.made.tree_name(together))
            self.track.finals += states
            self.track.further |= self.made.further(together)
            self.track.further.update(*(move.served for move in self._moves(progress)))
        for move in self._moves(progress):
            if not self.made.further(together).isdisjoint(move.served):
                raise self._unclear(move.served)
            for links in self.made.before(together, move):
                self._enter(End(move.served, links), move.progress)

    def _enter(self, end: End, progress: Progress) -> None:
        """Adds the event that brings a run to `progress`."""
        states = self.states.setdefault(progress, [])
        is_done = self.shape.is_done(progress)
        if is_done:
            self.track.ends.append(end)
        entry = self.made.states.entered(
            end, self._kept(progress, ends=is_done and not any(self.shape.step(progress)))
        )
        if entry is None:
            return
        before = len(states)
        number = self.made.states.enter(entry, states, self.made.states.name_of(end.served), apart=True)
        if len(states) > before:
            self.open.append((progress, number))
            if is_done:
                self.track.finals.append(number)
            if len(self.open) > STATE_CAP:
                raise self._too_many_states()

    def _kept(self, progress: Progress, *, ends: bool) -> frozenset[int]:
        """The classes that can still matter to a run with this progress, which `ends` if it cannot go on."""
        if ends:
            return self.made.scopes.matter_outside(self.shape, self.shape.singles)
        return self.made.scopes.matter_inside(self.shape, self.shape.live(progress))

    def _moves(self, progress: Progress) -> list[Move]:
        """The moves of a run; raises `NotJoinedError` if one event can move it in two ways."""
        if progress not in self.moves:
            ways: dict[Served, Move] = {}
            for number, move in enumerate(self.shape.step(progress)):
                if number > STATE_CAP:
                    raise self._too_many_states()
                counts = move._replace(begun=move.begun & self.made.scopes.all)
                if ways.setdefault(move.served, counts) != counts:
                    raise self._unclear(move.served)
            self.moves[progress] = list(ways.values())
        return self.moves[progress]

    def _unclear(self, served: Served) -> NotJoinedError:
        event = self.made.states.name_of(served)
        return NotJoinedError(
            f"{event} may begin a round or continue one, so a complex event could be found twice"
        )

    def _too_many_states(self) -> LimitExceeded:
        growing = max(
            all_shapes(self.shape), key=lambda shape: (isinstance(shape, Together), len(shape.parts))
        )
        return LimitExceeded(
            f"the pattern needs a joining automaton of more than {STATE_CAP:,} states; what grows is "
            f"{self.made.parts.text(growing)}: write fewer parts, or several queries"
        )


def _hanging(node: Node, served: frozenset[int]) -> list[Node]:
    """The subtrees that branch off the paths from a node of a q-tree to these leaves."""
    hanging: list[Node] = []
    for child in node.children if isinstance(node, Inner) else ():
        if served.isdisjoint(leaves(child)):
            hanging.append(child)
        else:
            hanging += _hanging(child, served)
    return hanging
