"""Lines of JSON from standard input or a TCP socket, which can be read only once."""

from __future__ import annotations

import os
import select
import socket
import sys
from abc import abstractmethod
from base64 import b64decode, b64encode
from typing import Final

from estero.errors import DataError
from estero.local.raw import Offsets, Raw
from estero.local.sources.source import Source

_CHUNK: Final = 1 << 16
LONGEST: Final = 1 << 24
"""The size of the longest line in bytes; a longer one is split, and its parts are dead letters."""


class LineSource(Source):
    """Lines as they arrive, without empty ones.

    All complete lines that were read are one batch, and a place contains the beginning of the next line, so
    the journal has everything that was read. If the process is killed, lines that were read but not yet
    journaled are lost.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lines = 0
        self._rest = b""

    def seek(self, offsets: Offsets | None) -> None:
        """Sets the number of the next line."""
        if offsets is not None:
            self.passed(offsets)

    def place(self) -> Offsets:
        """The number of lines, and the beginning of the next one."""
        return {"line": self._lines, "rest": b64encode(self._rest).decode()}

    def poll(self, most: int, seconds: float) -> Raw | None:
        """The lines that have arrived, and slightly more than `most` of them if they arrive quickly."""
        texts: list[bytes] = []
        self._receive(texts, seconds)
        while len(texts) < most and self._receive(texts, 0.0):
            pass
        self.caught_up = self.ended
        if not texts:
            return None
        first = self._lines + 1
        self._lines += len(texts)
        return Raw(self.place(), texts, place=lambda row: f"line {first + row}")

    def replay(self, _after: Offsets) -> Raw:
        """Always raises `DataError`, because lines cannot be read again."""
        raise DataError(f"{self._name} cannot be read again")

    def keeps(self, _after: Offsets) -> bool:
        """Always True, because lines cannot be read again."""
        return True

    def is_silent(self) -> bool:
        """Always True, because the sender is connected."""
        return True

    def passed(self, after: Offsets) -> None:
        """Counts the lines that came from the journal, and restores the beginning of the next one."""
        self._lines, self._rest = int(after["line"]), b64decode(after["rest"])

    def _receive(self, texts: list[bytes], seconds: float) -> bool:
        """Reads a chunk that arrives within that time; returns whether there was one."""
        if self.ended or not self._is_ready(seconds):
            return False
        chunk = self._chunk()
        *lines, rest = (self._rest + chunk).split(b"\n")
        self.ended = not chunk
        if self.ended or len(rest) > LONGEST:
            lines, rest = [*lines, rest], b""
        self._rest = rest
        texts += filter(None, map(bytes.strip, lines))
        return not self.ended

    @abstractmethod
    def _is_ready(self, seconds: float) -> bool:
        """Whether data arrives within that time."""

    @abstractmethod
    def _chunk(self) -> bytes:
        """The data that has arrived; empty at the end."""


class StandardInput(LineSource):
    """Lines of standard input, or of another open file."""

    def __init__(self, descriptor: int | None = None) -> None:
        super().__init__("standard input")
        self._descriptor = sys.stdin.fileno() if descriptor is None else descriptor

    def _is_ready(self, seconds: float) -> bool:
        if os.name != "posix":  # select() only works with sockets
            return True
        return bool(select.select([self._descriptor], [], [], seconds)[0])

    def _chunk(self) -> bytes:
        return os.read(self._descriptor, _CHUNK)


class TcpSocket(LineSource):
    """Lines that a server sends to its clients; the stream ends when it closes the connection."""

    def __init__(self, server: str) -> None:
        super().__init__(f"tcp://{server}")
        host, _, port = server.rpartition(":")
        self._address = (host.strip("[]"), int(port))
        self._connection: socket.socket | None = None

    def seek(self, offsets: Offsets | None) -> None:
        """Connects; raises `DataError` if there is no server."""
        super().seek(offsets)
        try:
            self._connection = socket.create_connection(self._address, timeout=10)
        except OSError as error:
            raise DataError(f"nobody answers: {error.strerror or error}", file=self._name) from error

    def close(self) -> None:
        """Closes the connection."""
        if self._connection is not None:
            self._connection.close()

    def _is_ready(self, seconds: float) -> bool:
        return self._connection is not None and bool(select.select([self._connection], [], [], seconds)[0])

    def _chunk(self) -> bytes:
        if self._connection is None:
            return b""
        try:
            return self._connection.recv(_CHUNK)
        except OSError as error:
            raise DataError(f"the connection broke: {error.strerror or error}", file=self._name) from error
