"""Completion in a shell: its script, and for column names the columns of the events named before."""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click
from click.shell_completion import CompletionItem, get_completion_class

PROGRAM = "estero"

Decorated = TypeVar("Decorated", bound="Callable[..., Any] | click.Command")


class Decorator(Protocol):
    """A decorator that gives a command an option or an argument."""

    def __call__(self, command: Decorated, /) -> Decorated:
        """The command with it."""
        ...


_FILES = {
    "bash": Path(".bash_completions", "estero.sh"),
    "zsh": Path(".zfunc", "_estero"),
    "fish": Path(".config", "fish", "completions", "estero.fish"),
}
"""The path of the completion script of each shell, in the user's home directory."""

_LINES = {
    "bash": (".bashrc", "source ~/.bash_completions/estero.sh"),
    "zsh": (".zshrc", "fpath+=~/.zfunc; autoload -Uz compinit; compinit"),
}
"""The line that makes a shell read it at its start; fish does so by itself."""


def _show(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        print(_script(_shell(), context))
        context.exit()


def _install(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        print(f"completion is in {install(_shell(), context)}, and works in a shell that is started now")
        context.exit()


show_option: Decorator = click.option(
    "--show-completion",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show,
    help="Show the script that completes commands in your shell ($SHELL: bash, zsh or fish).",
)
install_option: Decorator = click.option(
    "--install-completion",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_install,
    help="Have your shell ($SHELL: bash, zsh or fish) complete commands, options, files and columns.",
)


def install(shell: str, context: click.Context) -> Path:
    """Writes the script of a shell to a file that the shell reads, and returns the file."""
    home = Path.home()
    file = home / _FILES[shell]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{_script(shell, context)}\n", encoding="utf-8")
    if shell in _LINES:
        name, line = _LINES[shell]
        settings = home / name
        before = settings.read_text(encoding="utf-8", errors="replace") if settings.exists() else ""
        if line not in before.splitlines():
            with settings.open("a", encoding="utf-8") as rest:
                rest.write(f"{'' if before.endswith(chr(10)) or not before else chr(10)}{line}\n")
    return file


def _shell() -> str:
    """The shell of the user; a usage error if it has no completion."""
    shell = Path(os.environ.get("SHELL", "")).name
    if shell not in _FILES:
        is_set = f"$SHELL is {shell}" if shell else "$SHELL is not set"
        raise click.UsageError(f"{is_set}, and completion is for bash, zsh and fish: name one in SHELL=…")
    return shell


def _script(shell: str, context: click.Context) -> str:
    completion = get_completion_class(shell)
    if completion is None:
        raise click.UsageError(f"this version of Click has no completion for {shell}")
    return completion(context.command, {}, PROGRAM, f"_{PROGRAM}_COMPLETE".upper()).source().strip()


def file_names(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Makes the shell suggest files."""
    return [CompletionItem(incomplete, type="file")]


def column_names(context: click.Context, _option: click.Parameter, incomplete: str) -> list[str]:
    """The columns of the files of ``--events`` with this prefix; none if finding them takes reading rows.

    Parquet and Arrow files have them in a few bytes, CSV files in their first line. A shell waits for the
    answer, and errors in a file are reported by the command.
    """
    names: dict[str, None] = {}
    for file in context.params.get("events") or ():
        with contextlib.suppress(OSError, ValueError):  # what Arrow raises is a ValueError, too
            names |= dict.fromkeys(_columns_of(Path(file)))
    return [name for name in names if name.startswith(incomplete)]


def _columns_of(file: Path) -> list[str]:
    if not file.is_file():
        return []
    match file.suffix.lower():
        case ".parquet":
            import pyarrow.parquet as pq

            return list(pq.read_schema(file).names)
        case ".arrow" | ".feather":
            import pyarrow as pa

            with pa.memory_map(str(file)) as mapped:
                return list(pa.ipc.open_file(mapped).schema.names)
        case ".csv":
            with file.open(encoding="utf-8", newline="") as lines:
                first = lines.readline(_LONGEST_HEADER)
            mark = max(",;\t|", key=first.count)
            return next(csv.reader([first], delimiter=mark), [])
        case _:
            return []


_LONGEST_HEADER = 65_536
