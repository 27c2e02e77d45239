"""Commands whose help shows options that take no value without one."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup, TyperOption


class Command(TyperCommand):
    """A command of the program."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters; typer shows ``<bool>`` behind flags that say nothing else."""
        return _without_values(super().get_params(ctx))


class Group(TyperGroup):
    """The program itself."""

    def get_params(self, ctx: Any) -> list[Any]:
        """As those of `Command`."""
        return _without_values(super().get_params(ctx))


def _without_values(params: list[Any]) -> list[Any]:
    for each in params:
        if isinstance(each, TyperOption) and each.is_flag and each.metavar is None:
            each.metavar = ""
    return params
