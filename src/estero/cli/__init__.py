"""The command line (`estero --help`)."""

from estero.cli.commands import app, main

__all__ = ["app", "main"]
