"""Where the repository is; importing `conftest` for it would set the profile of Hypothesis back."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
