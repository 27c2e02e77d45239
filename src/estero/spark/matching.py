"""Regular expressions that Java's matcher is not to be asked: RE2 matches them, in Python workers.

It costs what it takes to bring the texts there, about a microsecond an event.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from estero.classify.expression_sql import MATCHER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def give_matcher(spark: SparkSession) -> None:
    """Gives a session the function that matches by RE2, for SQL that Estero writes."""
    from pyspark.sql.pandas.functions import arrow_udf

    if not spark.catalog.functionExists(MATCHER):
        spark.udf.register(MATCHER, arrow_udf(_matched, "boolean"))  # type: ignore[call-overload]


def give_matcher_for(spark: SparkSession, texts: Iterable[str]) -> None:
    """The same where one of these texts of SQL asks for it."""
    if any(MATCHER in text.lower() for text in texts):
        give_matcher(spark)


def _matched(texts: pa.Array, regexes: pa.Array) -> pa.Array:
    """Whether each text matches; all rows have the same expression."""
    if len(texts) == 0:
        return pa.array([], pa.bool_())
    return pc.match_substring_regex(texts, regexes[0].as_py())
