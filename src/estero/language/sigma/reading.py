"""The options for reading rules in Sigma."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sigma.processing.pipeline import ProcessingPipeline

Placeholders = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Reading:
    """Values for placeholders, and a pipeline of pySigma that is applied to rules first."""

    placeholders: Placeholders = field(default_factory=dict)
    pipeline: ProcessingPipeline | None = None
