"""What is checked on enumerated complex events (algorithms.md, "residual filter")."""

from estero.answers.sieve.sieve import Sieve, Skipping, sifted_to_limit

__all__ = ["Sieve", "Skipping", "sifted_to_limit"]
