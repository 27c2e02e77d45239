"""`estero studio`: queries over events in the browser, as a page of this machine."""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import click

from estero.cli import options
from estero.cli.completion import file_names
from estero.cli.inputs import Stream, as_called, text_in
from estero.cli.options import events_argument, existing_or_not, option, with_event_options

HOST: Final = "127.0.0.1"
_GIGABYTE: Final = 1 << 30

_OPTIONS = (
    option(
        "--query",
        metavar="FILE",
        type=existing_or_not,
        help="The query to begin with. The page opens and saves queries in its directory (else in this one).",
        shell_complete=file_names,
    ),
    option(
        "--port",
        metavar="N",
        type=click.IntRange(1, 65535),
        help="The port of the page. Default: one that is free.",
    ),
    option("--no-browser", is_flag=True, help="Only print the address, do not open it."),
    option(
        "--seconds",
        metavar="S",
        type=click.FloatRange(min=0.1),
        default=60.0,
        show_default=True,
        help="The longest time that a question may take.",
    ),
    option(
        "--memory",
        metavar="GB",
        type=click.FloatRange(min=0.1),
        default=4.0,
        show_default=True,
        help="The most memory that a question may take, in addition to the events (on Linux).",
    ),
)


def studio(
    stream: Stream | None,
    query: Path | None,
    port: int | None,
    no_browser: bool,
    seconds: float,
    memory: float,
    debug: bool,
) -> None:
    """Write queries over events in the browser and see their answers; by default over the demo's events."""
    from estero.errors import require

    require("studio", "estero studio")
    from estero.studio.folder import Folder
    from estero.studio.opening import Opening
    from estero.studio.serving import serve_page
    from estero.studio.static import SCRIPT, static_file

    static_file(SCRIPT)
    if stream is not None and stream.is_of_spark:
        raise click.BadParameter(
            "the studio holds events in memory: give files of this machine", param_hint="EVENTS"
        )
    text = None if query is None else text_in(query, "--query")
    path = None if query is None or str(query) == "-" else query
    opening = Opening(
        None if stream is None else stream.scan,
        text,
        "" if stream is None else _called(stream),
        seconds,
    )
    listening = _listening(port)
    folder = Folder((path.parent if path is not None else Path()).resolve())
    most = int(memory * _GIGABYTE)
    say = partial(print, flush=True)
    serve_page(opening, listening, folder, memory=most, browser=not no_browser, say=say)


def with_studio_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with its arguments and options."""
    return with_event_options(options.decorated(command, (*_OPTIONS, options.debug)), events_argument)


def _called(stream: Stream) -> str:
    paths = [stream.path] if isinstance(stream.path, str) else stream.path
    first = as_called(paths[0])
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1} more"


def _listening(port: int | None) -> socket.socket:
    """A socket on this machine alone; a usage error if the port is taken."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port or 0))
        listening.listen()  # so that readers of the address can connect at once
    except OSError as error:
        listening.close()
        raise click.BadParameter(
            f"port {port} cannot be used ({error.strerror}): give another one, or none for one that is free",
            param_hint="--port",
        ) from None
    return listening
