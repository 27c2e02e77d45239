"""Where the repository is; apart from `conftest`, which sets Hypothesis's profile each time it is imported."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
