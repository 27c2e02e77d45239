"""The studio as a local page: a small server for only one user of this machine."""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, QueryParams
from starlette.middleware import Middleware
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from estero.errors import legible
from estero.studio.folder import Folder
from estero.studio.session import Reply
from estero.studio.static import SCRIPT, STYLE, static_file
from estero.studio.worker import Worker

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LONGEST_MESSAGE: Final = 1 << 20
"""The largest message in bytes."""
_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "::1"})
"""The names by which a browser may address this machine, with any port: that of a tunnel differs."""
_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
}
_PAGE: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="Queries over a stream of events, seen and understood.">
<title>Estero studio</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{style}?token={token}">
</head>
<body class="estero-page">
<main id="estero-studio" data-token="{token}"></main>
<script type="module" src="{script}?token={token}"></script>
</body>
</html>
"""


def application(worker: Worker, token: str, folder: Folder | None = None) -> Starlette:
    """The server as an ASGI application: a page, its two files, messages and cancelling.

    Every request needs the `token` in its address, a host that is this machine and, where a page of another
    origin may have sent it, the same origin; else it is refused with 401 or 403. With a `folder` the page may
    open and save queries there. Raises `EnvironmentProblem` if the front end is not built.
    """
    files = {name: static_file(name) for name in (SCRIPT, STYLE)}
    desk = _Desk(worker, folder)

    async def page(_request: Request) -> Response:
        return HTMLResponse(_PAGE.format(token=token, script=SCRIPT, style=STYLE))

    async def static(request: Request) -> Response:
        path: Path = files[request.url.path.removeprefix("/")]
        return FileResponse(path)

    async def message(request: Request) -> Response:
        asked = await _sent(request)
        if isinstance(asked, Response):
            return asked
        if not isinstance(asked, dict):
            return PlainTextResponse("a message is an object in JSON", 400)
        reply, columns = await run_in_threadpool(desk.answer, asked)
        return Response(packed(reply, columns), media_type="application/octet-stream")

    async def cancel(request: Request) -> Response:
        ids = await _sent(request)
        if isinstance(ids, Response):
            return ids
        if not isinstance(ids, list):
            return PlainTextResponse("messages are cancelled by a list of their ids", 400)
        worker.cancel([one for one in ids if isinstance(one, str)])
        return Response(status_code=204)

    return Starlette(
        routes=[
            Route("/", page),
            *(Route(f"/{name}", static) for name in files),
            Route("/message", message, methods=["POST"]),
            Route("/cancel", cancel, methods=["POST"]),
        ],
        middleware=[Middleware(Guard, token=token)],
    )


async def _sent(request: Request) -> object:
    """The JSON of a request; None if it has none, and a response that refuses one that is too long."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > LONGEST_MESSAGE:
            return PlainTextResponse(f"a message has {LONGEST_MESSAGE:,} bytes at most", 413)
    try:
        sent: object = json.loads(body)
    except ValueError:
        return None
    return sent


def packed(reply: Mapping[str, Any], columns: list[bytes]) -> bytes:
    """A reply as bytes: the length of its JSON (uint32, little-endian), the JSON, then the columns.

    Columns begin at multiples of 8; ``lengths`` in the JSON are theirs.
    """
    text = json.dumps({**reply, "lengths": [len(column) for column in columns]}, allow_nan=False).encode()
    parts = [len(text).to_bytes(4, "little"), text]
    size = 4 + len(text)
    for column in columns:
        filling = -size % 8
        parts += [bytes(filling), column]
        size += filling + len(column)
    return b"".join(parts)


@dataclass(frozen=True, slots=True)
class _Desk:
    """Answers messages: those about files itself, and all others by the process of the session."""

    worker: Worker
    folder: Folder | None

    def answer(self, message: dict[str, Any]) -> Reply:
        """The reply."""
        kind = message.get("kind")
        if kind in ("files", "open", "save"):
            return self._of_files(str(kind), message), []
        reply, columns = self.worker.ask(message)
        if kind == "hello":
            reply = {**reply, "files": self.folder is not None}
        return reply, columns

    def _of_files(self, kind: str, message: dict[str, Any]) -> dict[str, Any]:
        reply: dict[str, Any] = {"kind": kind, "notes": [], "ms": 0}
        name, text = str(message.get("name", "")), str(message.get("text", ""))
        try:
            if self.folder is None:
                raise ValueError("there is no directory with queries here")
            if kind == "open":
                reply["text"] = self.folder.read(name)
            elif kind == "save":
                self.folder.write(name, text)
            return {**reply, "names": self.folder.names()}
        except OSError as error:
            return {**reply, "error": legible(f"{name}: {error.strerror or error}")}
        except ValueError as error:
            return {**reply, "error": legible(str(error))}


class Guard:
    """Refuses requests that are not from the page: another host or origin (403), no token (401)."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request itself, or passes it to the application."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = self.refusal(Headers(scope=scope), QueryParams(scope["query_string"]))
        if refused is not None:
            await refused(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] += [(name.encode(), text.encode()) for name, text in _HEADERS.items()]
            await send(message)

        await self._app(scope, receive, guarded)

    def refusal(self, headers: Headers, query: QueryParams) -> Response | None:
        """The answer to a refused request; None for one from the page."""
        host = headers.get("host", "")
        if urlsplit(f"//{host}").hostname not in _HOSTS:
            return PlainTextResponse("the studio is a page of this machine: 127.0.0.1 or localhost", 403)
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            return PlainTextResponse("a page of another origin asks, which the studio does not answer", 403)
        given = query.get("token", "")
        if not hmac.compare_digest(given.encode(), self._token.encode()):
            return PlainTextResponse("the address lacks its token: estero studio prints it in full", 401)
        return None
