"""What the tests of the studio share: the demo's stream, and messages to a session about it."""

from __future__ import annotations

from typing import Any

import estero
from estero import demo
from estero.studio.examples import DEMO
from estero.studio.session import Session

BILLIONS = "SELECT a[value] WHERE Wind AS a ; Humidity AS b ; Temperature AS c ; Wind AS d"
"""More complex events than any list holds."""


def demo_session(**options: Any) -> Session:
    return Session(estero.scan(demo.events(), **DEMO), **options)


def told(session: Session, kind: str, text: str = demo.QUERY, **more: object) -> dict[str, Any]:
    """The reply to a message, which is none of an error."""
    reply, _ = session.answer({"kind": kind, "text": text, **more})
    assert "error" not in reply, reply["error"]
    return reply
