"""The arguments with which a session is opened in another process: the events and the first query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from estero.events.scan import Scan
from estero.studio.examples import DEMO, EXAMPLES
from estero.studio.session import SECONDS, Session


@dataclass(frozen=True, slots=True)
class Opening:
    """The arguments of a session; they can be pickled. Without a `scan` it is on the demo's stream."""

    scan: Scan | None = None
    text: str | None = None
    title: str = ""
    seconds: float = SECONDS

    def session(self, cancelled: Callable[[], bool] | None = None) -> Session:
        """The session; reads no events yet."""
        if self.scan is None:
            from estero import demo

            events = Scan.of(demo.events(), **DEMO)
            return Session(
                events,
                text=self.text or EXAMPLES[0].text,
                examples=EXAMPLES,
                seconds=self.seconds,
                title=self.title or "A cold night on five farms",
                cancelled=cancelled,
            )
        return Session(self.scan, text=self.text, seconds=self.seconds, title=self.title, cancelled=cancelled)
