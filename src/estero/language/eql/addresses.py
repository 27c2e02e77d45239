"""Blocks of internet addresses (CIDR) as regular expressions over their texts.

Addresses can thus be tested wherever strings can. An IPv6 address may be shortened (``::``) and have leading
zeros in its groups; one that ends in an IPv4 address never matches.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from functools import lru_cache
from itertools import product

from estero.errors import QueryError, Span

_OCTET = "[0-9]{1,3}"
_GROUP = "[0-9a-f]{1,4}"


@lru_cache(maxsize=4096)
def _regex(block: str) -> str:
    """The expression for the addresses of a block; raises ValueError if it is not a block."""
    network = ipaddress.ip_network(block, strict=False)
    if isinstance(network, ipaddress.IPv4Network):
        return rf"\A(?:{_ipv4_form(network)})\z"
    return rf"(?i)\A(?:{'|'.join(dict.fromkeys(_ipv6_forms(network)))})\z"


def block_regex(block: str, span: Span) -> str:
    r"""The regular expression for the texts of the addresses of a block.

    >>> print(block_regex("172.16.0.0/12", Span(0, 0)))
    \A(?:172\.(?:1[6-9]|2[0-9]|3[0-1])\.[0-9]{1,3}\.[0-9]{1,3})\z
    """
    try:
        return _regex(block)
    except ValueError as error:
        raise QueryError(
            f"{block!r} is not a block of addresses",
            span=span,
            found=block,
            expected="an address and the number of its leading bits: 10.0.0.0/8",
        ) from error


def _ipv4_form(network: ipaddress.IPv4Network) -> str:
    octets = []
    for place, octet in enumerate(network.network_address.packed):
        bits = min(8, max(0, network.prefixlen - 8 * place))
        octets.append(_OCTET if bits == 0 else _in_range(octet, octet + 2 ** (8 - bits) - 1))
    return r"\.".join(octets)


def _in_range(low: int, high: int) -> str:
    """The decimal numbers from `low` to `high`."""
    if low == high:
        return str(low)
    tens = []
    for ten in range(low // 10, high // 10 + 1):
        first, last = max(low, 10 * ten) % 10, min(high, 10 * ten + 9) % 10
        tens.append(f"{ten or ''}{first if first == last else f'[{first}-{last}]'}")
    return f"(?:{'|'.join(tens)})"


def _ipv6_forms(network: ipaddress.IPv6Network) -> Iterator[str]:
    """An expression for each spelling: all groups, or each number of groups before and after ``::``."""
    packed = network.network_address.packed
    groups = [int.from_bytes(packed[place : place + 2]) for place in range(0, 16, 2)]
    bits = [min(16, max(0, network.prefixlen - 16 * place)) for place in range(8)]
    texts = [_group(group, fixed) for group, fixed in zip(groups, bits, strict=True)]
    yield ":".join(texts)
    for before, behind in product(range(8), repeat=2):
        hidden = groups[before : 8 - behind]
        # Groups that :: replaces are zero, and must be inside the block.
        if before + behind <= 7 and not any(hidden):
            yield f"{':'.join(texts[:before])}::{':'.join(texts[8 - behind :] if behind else [])}"


def _group(group: int, fixed: int) -> str:
    """The texts of a group whose first `fixed` bits are those of `group`."""
    if fixed == 0:
        return _GROUP
    low, high = group, group + 2 ** (16 - fixed) - 1
    return f"(?:{'|'.join(dict.fromkeys(_hexadecimal(low, high)))})"


def _hexadecimal(low: int, high: int) -> Iterator[str]:
    """Expressions for the numbers from `low` to `high` in up to four digits, also with leading zeros."""
    free, size = 0, high - low + 1
    while size >= 16:
        size //= 16
        free += 1
    first, last = low >> (4 * free), high >> (4 * free)
    for number in range(first, last + 1):
        if number == 0:
            yield f"[0-9a-f]{{1,{max(1, free)}}}" if free else "0{1,4}"
            if free and free < 4:
                yield f"0{{1,{4 - free}}}[0-9a-f]{{{free}}}"
        else:
            head = f"{number:x}"
            zeros = 4 - free - len(head)
            lead = f"0{{0,{zeros}}}" if zeros else ""
            yield f"{lead}{head}" + (f"[0-9a-f]{{{free}}}" if free else "")
