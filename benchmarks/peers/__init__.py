"""Estero beside other engines: each in its own environment, on the same events, answers compared first."""
