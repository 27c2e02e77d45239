"""The server's life: from printing its address to the end of its processes."""

from __future__ import annotations

import asyncio
import secrets
import threading
import webbrowser
from collections.abc import Callable
from socket import socket

import uvicorn

from estero.studio.folder import Folder
from estero.studio.opening import Opening
from estero.studio.server import application
from estero.studio.worker import Worker


def serve_page(
    opening: Opening,
    listening: socket,
    folder: Folder,
    *,
    memory: int,
    browser: bool,
    say: Callable[[str], None],
) -> None:
    """Serves the page at a bound socket until a signal ends it; `say` gets the address with its token.

    The events are read first, so that an error in them ends the command instead of the page.
    """
    token = secrets.token_urlsafe(24)
    worker = Worker(opening, memory=memory)
    app = application(worker, token, folder)
    try:
        reply, _ = worker.ask({"kind": "hello"})
        if "error" in reply:
            opening.session().stream.scan  # noqa: B018 (raises what is wrong, in full)
            raise RuntimeError(str(reply["error"]))
        host, port = listening.getsockname()
        address = f"http://{host}:{port}/?token={token}"
        server = uvicorn.Server(
            uvicorn.Config(
                app, log_level="critical", access_log=False, lifespan="off", timeout_graceful_shutdown=1
            )
        )
        say(address)
        text = str(reply["text"])
        threading.Thread(target=_warmed, args=[worker, text], daemon=True).start()
        if browser:
            threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()
        asyncio.run(server.serve(sockets=[listening]))
    finally:
        worker.close()
        listening.close()


def _warmed(worker: Worker, text: str) -> None:
    """Sends the page's first questions while the browser opens, because the first one loads the engine."""
    for kind in ("typed", "automaton"):
        worker.ask({"kind": kind, "text": text, "params": {}})
