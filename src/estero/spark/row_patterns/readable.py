"""DataFrames whose actions raise Estero's errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, Final

from estero.spark.failures import jobs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ACTIONS: Final = (
    "collect",
    "count",
    "first",
    "foreach",
    "foreachPartition",
    "head",
    "isEmpty",
    "show",
    "tail",
    "take",
    "toArrow",
    "toPandas",
)


def readable_frame(df: DataFrame) -> DataFrame:
    """The same frame, whose actions raise Estero's errors for rows; frames made of it are Spark's."""
    kind: Any = type(df)  # classes are hashable, whatever their instances are
    df.__class__ = _readable(kind)
    return df


@cache
def _readable(kind: Any) -> Any:
    actions = {name: _in_words(getattr(kind, name)) for name in _ACTIONS if hasattr(kind, name)}
    return type(kind.__name__, (kind,), actions | {"__doc__": kind.__doc__, "__module__": kind.__module__})


def _in_words(action: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(action)
    def readable_action(*arguments: Any, **options: Any) -> Any:
        with jobs():
            return action(*arguments, **options)

    return readable_action
