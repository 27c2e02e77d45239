"""Runs of sequences with one candidate for each key and stage, and of samples (EQL)."""
