"""The recipes: each has a picture that says what it found, and Spark finds the same."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from datetime import datetime
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from repository import REPOSITORY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _drawing() -> ModuleType:
    path = REPOSITORY / "docs" / "pictures" / "recipes.py"
    spec = importlib.util.spec_from_file_location("recipe_pictures", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def recipes() -> list[Any]:
    return list(_drawing().recipes())


def in_groups(rows: Iterable[dict[str, Any]]) -> list[list[str]]:
    """The rows of each complex event, whatever its number, in an order of their own."""
    groups: dict[int, list[str]] = {}
    for row in rows:
        values = [_without_zone(value) for name, value in row.items() if name != "match"]
        groups.setdefault(row["match"], []).append(str(values))
    return sorted(sorted(group) for group in groups.values())


def _without_zone(value: object) -> object:
    """A value without its zone: Spark makes times in UTC of those without one."""
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def test_there_are_fifteen_recipes_each_with_a_picture_of_its_own(recipes: list[Any]) -> None:
    assert len({recipe.file for recipe in recipes}) == len(recipes) == 15
    assert all(recipe.file.is_file() for recipe in recipes)


def test_the_pictures_say_how_many_complex_events_there_are(recipes: list[Any]) -> None:
    for recipe in recipes:
        count = recipe.names["answer"].count()
        noun = "complex event" if count == 1 else "complex events"
        assert recipe.caption == f"{recipe.title}: {count} {noun}"
        title = recipe.names["picture"].figure.axes[0].get_title(loc="left")
        assert title == f"{count} {noun}"


@pytest.mark.spark
def test_spark_finds_the_same(recipes: list[Any], spark: SparkSession) -> None:
    from estero.spark import recognize

    for recipe in recipes:
        stream, query, answer = (recipe.names[name] for name in ("stream", "query", "answer"))
        found = recognize(
            spark.createDataFrame(stream), query, type="type", time="time", positions=True, rows="events"
        )
        rows = found.toArrow().to_pylist()
        assert in_groups(rows) == in_groups(answer.rows()), recipe.title
