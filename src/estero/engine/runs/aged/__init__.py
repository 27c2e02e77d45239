"""Runs whose age matters: queues of runs that leave a state after some time."""
