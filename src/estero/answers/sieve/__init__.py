"""What is checked on enumerated complex events (algorithms.md, "residual filter")."""

from estero.answers.sieve.limited import sifted_to_limit
from estero.answers.sieve.sieve import Sieve, Skipping

__all__ = ["Sieve", "Skipping", "sifted_to_limit"]
