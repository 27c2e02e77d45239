"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
from importlib import import_module
from pkgutil import walk_packages

import pytest

import estero

MODULES = sorted(module.name for module in walk_packages(estero.__path__, "estero."))


@pytest.mark.parametrize("name", ["estero", *MODULES])
def test_the_examples_of_a_module_are_true(name: str) -> None:
    assert doctest.testmod(import_module(name)).failed == 0
