"""Runs whose age counts: queues of them, from which they move on by themselves."""
