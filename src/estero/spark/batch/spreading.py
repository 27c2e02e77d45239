"""Joined events shared among tasks: by the values of a variable that every atom has."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from estero.automata.registers import Value
from estero.classify.classify import value_columns
from estero.language.tree.expressions import Attribute
from estero.language.tree.schema import Kind
from estero.plan.plan_joins import KeyedPlan
from estero.spark.frames import columns_in_room, in_room

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def spread(df: DataFrame, plan: KeyedPlan) -> tuple[DataFrame, KeyedPlan]:
    """The events and the plan with a partition key, where all events of an answer share a value.

    If types have it under different names, it becomes a column of its own. Unequal values may have equal
    keys (strings are hashed, numbers compared as floats): they only meet in one task.
    """
    names = list(dict.fromkeys(plan.partition.values()))
    if len(names) > 1:
        df, name = _with_key(df, plan)
    elif names:
        (name,) = names
    else:
        return df, plan
    return df, replace(plan, classification=replace(plan.classification, keys=((name,),)))


def _with_key(df: DataFrame, plan: KeyedPlan) -> tuple[DataFrame, str]:
    """The events with a column for the shared value, and its name."""
    from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)

    columns = columns_in_room(df.schema)
    types: dict[str, list[str]] = {}
    for type_name, attribute in plan.partition.items():
        types.setdefault(attribute, []).append(type_name)
    values = tuple(
        Value(Attribute(name), tuple(of), 0 if columns[name].kind is Kind.STRING else None)
        for name, of in types.items()
    )
    texts = value_columns(replace(plan.classification, values=values), "spark", columns=columns)
    name = "shared"
    while name.lower() in {each.lower() for each in df.columns}:
        name += "_"
    shared = F.coalesce(*map(F.expr, texts.values()))
    return in_room(df).withColumn(name, shared).toDF(*df.columns, name), name
