"""How long a test waits at most for what it waits for, such as the end of a process."""

from __future__ import annotations

FAR_OFF = 3_600
"""Seconds. A wait ends by what it waits for; this only ends a run that hangs, on however busy a machine."""
