"""Checks of enumerated complex events (docs/architecture.md, "the sieve")."""
