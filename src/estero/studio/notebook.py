"""The widget itself; importing this loads anywidget."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, Protocol

import anywidget
import traitlets

from estero.studio.questions import Questions


class Explorer(Protocol):
    """A widget of the studio, as `estero.explore` returns it: anywidget's, with two further members."""

    text: str
    """The query in the editor, which can also be set."""

    def close(self) -> None:
        """Stops all questions, and removes the widget."""
        ...


def explorer(questions: Questions, *, text: str, script: Path, style: Path) -> Explorer:
    """A widget with a text in its editor; `script` and `style` are the files of its front end."""
    return _Widget(questions, text=text, script=script, style=style)


class _Widget(anywidget.AnyWidget):
    """The studio as a widget. ``text`` is the query in the editor, which can also be set from Python.

    Questions are answered outside the notebook's process, which stays free; ``close()`` ends that.
    """

    text: Any = traitlets.Unicode("").tag(sync=True)
    _esm = traitlets.Unicode("").tag(sync=True)
    _css = traitlets.Unicode("").tag(sync=True)

    def __init__(self, questions: Questions, *, text: str, script: Path, style: Path) -> None:
        code, looks = (file.read_text(encoding="utf-8") for file in (script, style))
        super().__init__(_esm=code, _css=looks, text=text)
        self._questions = questions
        self.on_msg(self._take)

    def close(self) -> None:
        """Stops all questions, and removes the widget."""
        self._questions.close()
        super().close()

    def _take(self, _widget: object, content: dict[str, Any], _buffers: list[bytes]) -> None:
        """Cancels questions, or answers one in a thread: messages must come through while one is answered."""
        if content.get("kind") == "cancel":
            self._questions.cancel([one for one in content.get("ids", []) if isinstance(one, str)])
            return
        threading.Thread(target=self._answer, args=[content], name="estero-studio", daemon=True).start()

    def _answer(self, content: dict[str, Any]) -> None:
        reply, columns = self._questions.ask(content)
        self.send({**reply, "id": content.get("id")}, columns)
