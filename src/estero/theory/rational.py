"""Rational operations on patterns, concatenation, union and iteration, with rules that shorten the result.

State elimination uses these operations (to_formula.py). The rules are equivalences: complex events are
sets, so ``p r OR q r`` is ``(p OR q) r``, ``p OR p q`` is ``p q?``, ``p (p+)?`` is ``p+`` and
``p (q p)* q`` is ``(p q)+``.
"""

from __future__ import annotations

from collections.abc import Iterable

from estero.language.tree.pattern import Disjunction, Iteration, Link, Optional, Pattern, Sequence

Chain = tuple[tuple[Pattern, ...], tuple[Link, ...]]
"""The parts and the links of a sequence; a single pattern is a chain of one part."""


def followed(left: Pattern, link: Link, right: Pattern) -> Pattern:
    """`right` after `left`, as one flat sequence if that is equivalent."""
    (first, links), (second, more) = _chain(left), _chain(right)
    if link.absent and isinstance(first[-1], Optional):
        first, links = (left,), ()
    if more and isinstance(second[0], Optional) and link != more[0]:
        second, more = (right,), ()
    return _whole(_shortened(((*first, *second), (*links, link, *more))))


def around(left: Pattern, link: Link, body: Pattern, right: Pattern) -> Pattern:
    """`left`, then zero or more of `body`, then `right`, all linked by `link`."""
    rounds = Optional(Iteration(body, contiguous=link.contiguous))
    return followed(followed(left, link, rounds), link, right)


def either(parts: Iterable[Pattern]) -> Pattern:
    """The union of `parts`, which must not be empty."""
    whole = _fewest(list(dict.fromkeys(parts)))  # before flattening: p OR p+ is p+, and p may be an OR
    flat = [
        alternative
        for part in whole
        for alternative in (part.parts if isinstance(part, Disjunction) else (part,))
    ]
    left = _fewest(list(dict.fromkeys(flat)))
    return left[0] if len(left) == 1 else Disjunction(tuple(left))


def _fewest(parts: list[Pattern]) -> list[Pattern]:
    """The parts, with pairs merged as long as that makes them shorter."""
    while True:
        pairs = ((i, j) for i in range(len(parts)) for j in range(len(parts)) if i != j)
        joins = ((i, j, joined) for i, j in pairs if (joined := _joined(parts[i], parts[j])) is not None)
        join = next(joins, None)
        if join is None:
            return parts
        i, j, joined = join
        left = [part for k, part in enumerate(parts) if k not in (i, j)]
        parts = [*left[: min(i, j)], joined, *left[min(i, j) :]]


def _joined(one: Pattern, other: Pattern) -> Pattern | None:
    """``one OR other`` as one pattern without OR at the top, if their common parts allow it; else None."""
    if one == other or one == Iteration(other, contiguous=True) or one == Iteration(other):
        return one
    (p, p_links), (q, q_links) = _chain(one), _chain(other)
    if len(p) > len(q):
        return None  # the caller tries the opposite order, too
    limit = len(p)
    before = 0
    while before < limit and p[before] == q[before] and p_links[:before] == q_links[:before]:
        before += 1
    after = 0
    while (
        after < limit - before
        and p[-1 - after] == q[-1 - after]
        and p_links[len(p_links) - after :] == q_links[len(q_links) - after :]
    ):
        after += 1
    for shared in range(before, -1, -1):
        for rest in range(min(after, limit - shared), -1, -1):
            if shared or rest:
                factored = _factored((p, p_links), (q, q_links), shared, rest)
                if factored is not None:
                    return factored
    return None


def _factored(p: Chain, q: Chain, before: int, after: int) -> Pattern | None:
    """The common prefix and suffix of p and q, with their middles as alternatives; `q` has the longer one."""
    (front, front_links), (p_middle, p_inner), (back, back_links) = _cut(p, before, after)
    _, (q_middle, q_inner), _ = _cut(q, before, after)
    parts = (*front[-1:], *p_middle[:1], *p_middle[-1:], *q_middle[:1], *q_middle[-1:], *back[:1])
    if not q_middle or any(isinstance(part, Optional) for part in parts):
        return None
    p_in, p_out = _ends(p, before, after)
    q_in, q_out = _ends(q, before, after)
    if p_middle:
        if (p_in, p_out) != (q_in, q_out):
            return None
        middle: Pattern = either([_whole((p_middle, p_inner)), _whole((q_middle, q_inner))])
    else:
        around_it = {link for link in (p_in, q_in, q_out) if link is not None}
        if len(around_it) > 1 or any(link.absent for link in around_it):
            return None
        middle = Optional(_whole((q_middle, q_inner)))
    links = [*front_links, *([q_in] if q_in else []), *([q_out] if q_out else []), *back_links]
    return _whole(_shortened(((*front, middle, *back), tuple(links))))


def _cut(chain: Chain, before: int, after: int) -> tuple[Chain, Chain, Chain]:
    parts, links = chain
    end = len(parts) - after
    return (
        (parts[:before], links[: max(0, before - 1)]),
        (parts[before:end], links[before : max(before, end - 1)]),
        (parts[end:], links[end:]),
    )


def _ends(chain: Chain, before: int, after: int) -> tuple[Link | None, Link | None]:
    """The links before and after the middle; the same one twice if the middle is empty."""
    parts, links = chain
    end = len(parts) - after
    in_front = links[before - 1] if before and before < len(parts) else None
    return in_front, links[end - 1] if after and end else None


def _shortened(chain: Chain) -> Chain:
    """Rewrites ``p (q p)* q`` as ``(p q)+`` everywhere in a chain."""
    parts, _ = chain
    for place, part in enumerate(parts):
        if isinstance(part, Optional) and isinstance(part.pattern, Iteration):
            shorter = _slid(chain, place, part.pattern)
            if shorter is not None:
                return _shortened(shorter)
    return chain


def _slid(chain: Chain, place: int, rounds: Iteration) -> Chain | None:
    """The chain with the optional iteration at `place` merged with the parts around it, or None."""
    parts, links = chain
    body, inner = _chain(rounds.pattern)
    link = Link(rounds.contiguous)
    if (rounds.minimum, rounds.maximum) != (1, None):
        return None
    for size in range(len(body), -1, -1):  # how many parts of the body stand in front
        turn = len(body) - size
        start, end = place - size, place + 1 + turn
        if start < 0 or end > len(parts) or (size and turn and inner[turn - 1].absent):
            continue
        if not size and place and links[place - 1] != link:
            continue
        in_front, behind = parts[start:place], parts[place + 1 : end]
        same = (
            in_front == body[turn:]
            and behind == body[:turn]
            and (not size or (links[place - 1] == link and links[start : place - 1] == inner[turn:]))
            and (not turn or (links[place] == link and links[place + 1 : end - 1] == inner[: turn - 1]))
        )
        borders = (*in_front[:1], *in_front[-1:], *behind[:1], *behind[-1:])
        if not same or any(isinstance(border, Optional) for border in borders):
            continue
        if size and turn:
            again = inner[turn - 1]
            round_ = _whole(((*in_front, *behind), (*inner[turn:], link, *inner[: turn - 1])))
        else:
            again, round_ = link, rounds.pattern
        new = Iteration(round_, contiguous=again.contiguous)
        left, right = links[: max(0, start)], links[end - 1 :] if turn else links[place:]
        return (*parts[:start], new, *parts[end:]), (*left, *right)
    return None


def _chain(pattern: Pattern) -> Chain:
    return (pattern.parts, pattern.links) if isinstance(pattern, Sequence) else ((pattern,), ())


def _whole(chain: Chain) -> Pattern:
    parts, links = chain
    return parts[0] if not links else Sequence(parts, links)
