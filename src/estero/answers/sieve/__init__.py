"""What is checked on enumerated complex events (docs/architecture.md, "the sieve")."""
