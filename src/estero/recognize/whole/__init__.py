"""Questions about all complex events of an answer together."""
