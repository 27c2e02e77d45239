"""Kernels as machine code and as functions of Python: the same answers, and bit for bit the same states."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from automata.test_chain import CHAINS
from engine.narrow_numbers import narrow_numbers_watched
from estero.engine.kernels import Kernel
from estero.engine.library import VARIABLE, library
from estero.language.tree.query import QueryTree
from estero.queries.texts import query
from estero.reference.queries import Event
from laws.evaluators import planned
from laws.test_growing_laws import queries as growing_queries
from laws.test_restart_laws import SIZES, begun, picked
from laws.test_stream_laws import cut
from strategies.full import full_queries
from strategies.joined import joined_queries
from strategies.patterns import queries, streams, to_table

MOST = settings.default.max_examples if settings.default else 10
TREES = st.one_of(
    queries(),
    full_queries(),
    joined_queries(),
    growing_queries(),
    st.sampled_from(CHAINS).map(lambda pattern: query(f"SELECT * WHERE {pattern} WITHIN 5 EVENTS").tree),
)


@contextmanager
def interpreted() -> Iterator[None]:
    """Kernels that Python calls in the block are functions of Python."""
    with patch.object(Kernel, "__call__", Kernel.interpret):
        yield


def states(tree: QueryTree, events: list[Event], sizes: list[int], *, picks: bool) -> list[object]:
    """What is found in each batch, and the state behind it; then how many complex events there are."""
    run = picked(tree, events) if picks else planned(tree, to_table(events))
    recognition = begun(run, None)
    found: list[object] = []
    for batch in cut(run, sizes):
        found.append(repr([part.to_pylist() for part in recognition.push(batch)]))  # NaN equals itself so
        found.append(recognition.snapshot())
    return [*found, run.count()]


@settings(max_examples=3 * MOST)
@given(TREES, streams(max_size=14), SIZES, st.booleans())
def test_machine_code_and_python_have_equal_states(
    tree: QueryTree, events: list[Event], sizes: list[int], picks: bool
) -> None:
    asked_for_python = os.environ.get(VARIABLE) == "python"
    assert library().is_native or asked_for_python, "this compares machine code, unless Python is tested"
    with interpreted():
        expected = states(tree, events, sizes, picks=picks)
    assert states(tree, events, sizes, picks=picks) == expected


@settings(max_examples=MOST)
@given(TREES, streams(max_size=14), SIZES, st.booleans())
def test_no_kernel_reads_or_writes_beside_its_columns(
    tree: QueryTree, events: list[Event], sizes: list[int], picks: bool
) -> None:
    """NumPy refuses places behind the end; those before the beginning, and narrow sums, are watched for."""
    expected = states(tree, events, sizes, picks=picks)
    with narrow_numbers_watched():
        assert states(tree, events, sizes, picks=picks) == expected
