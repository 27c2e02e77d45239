"""What is checked on enumerated complex events (algorithms.md, "residual filter")."""
