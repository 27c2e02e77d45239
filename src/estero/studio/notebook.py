"""The widget itself; importing this loads anywidget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import traitlets

from estero.studio.session import Session


class Explorer(anywidget.AnyWidget):
    """The studio as a widget. ``text`` is the query in the editor, also to be set from Python.

    A question is answered in the process of the notebook; the notebook's own way to interrupt ends it.
    """

    text = traitlets.Unicode("").tag(sync=True)
    _esm = traitlets.Unicode("").tag(sync=True)
    _css = traitlets.Unicode("").tag(sync=True)

    def __init__(self, session: Session, *, script: Path, style: Path) -> None:
        code, looks = (file.read_text(encoding="utf-8") for file in (script, style))
        super().__init__(_esm=code, _css=looks, text=session.text or "")
        self._session = session
        self.on_msg(self._answer)

    def _answer(self, _widget: object, content: dict[str, Any], _buffers: list[bytes]) -> None:
        reply, columns = self._session.answer(content)
        self.send({**reply, "id": content.get("id")}, columns)
