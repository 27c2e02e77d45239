"""``[<= 5 MINUTES, …]`` of a step: the check of the distance between the next part and the one before it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from estero.answers.measures.evaluator import FALSE, TRUE, Truths
from estero.answers.sieve.instances import Instances
from estero.automata.residual import BEFORE, Apartness
from estero.classify.column_names import POSITION, TIME


def apartness(condition: Apartness) -> Callable[[Instances], Truths]:
    """The check of a condition, whose distances are in ticks and positions: never unknown.

    An instance begins with the part after the step; the part before ended with the last event of `BEFORE`.
    """
    bounds = [distance.bounds(None) for distance in condition.distances]

    def check(at: Instances) -> Truths:
        end, start = at.before(BEFORE)
        result = np.full(len(at), TRUE)
        for low, high, in_positions in bounds:
            name = POSITION if in_positions else TIME
            # The later part is not earlier in time, so that the difference fits into 64 bits without a sign.
            apart = (at.events.numbers(name, start) - at.events.numbers(name, end)).view(np.uint64)
            result[apart < np.uint64(low)] = FALSE
            if high is not None:
                result[apart >= np.uint64(high)] = FALSE
        return result

    return check
