"""Networks as regular expressions that match the texts of their addresses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final

_OCTET: Final = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_DOTTED: Final = rf"(?:{_OCTET}\.){{3}}{_OCTET}"
_GROUP: Final = "[0-9a-f]{1,4}"
_GROUPS: Final = 8


@lru_cache(maxsize=1024)
def regex_of_network(network: str) -> str:
    r"""The expression that matches, case-insensitively, the whole texts of the addresses in a network.

    IPv6 addresses may have up to eight groups, ``::`` in place of some, a dotted end, and a zone.

    >>> regex_of_network("10.1.0.0/16") == rf"^10\.1\.{_OCTET}\.{_OCTET}$"
    True
    """
    known = ip_network(network)
    if isinstance(known, IPv4Network):
        octets = (
            _octet(value, known.prefixlen - 8 * place)
            for place, value in enumerate(known.network_address.packed)
        )
        return "^" + r"\.".join(octets) + "$"
    return f"(?i)^(?:{'|'.join(_forms(known))})(?:%[^%]+)?$"


def _octet(value: int, bits: int) -> str:
    """The texts of the bytes whose first `bits` bits are those of `value`."""
    if bits <= 0:
        return _OCTET
    if bits >= 8:
        return str(value)
    return "(?:" + "|".join(map(str, range(value, value + (1 << (8 - bits))))) + ")"


def _forms(network: IPv6Network) -> Iterator[str]:
    """The forms of an address: without ``::``, and with it between any numbers of groups."""
    packed = network.network_address.packed
    values = [int.from_bytes(packed[place : place + 2], "big") for place in range(0, 16, 2)]
    bits = [min(max(network.prefixlen - 16 * place, 0), 16) for place in range(_GROUPS)]
    groups = [_group(value, known) for value, known in zip(values, bits, strict=True)]
    dotted = _dotted(packed[12:], [min(max(network.prefixlen - 8 * place, 0), 8) for place in range(12, 16)])
    yield from _with_dotted_end(groups, dotted)
    free = bits.count(0)
    for before in range(_GROUPS):
        front = ":".join(groups[:before]) + "::"
        sizes = range(_GROUPS - before)
        least = next((after for after in sizes if not any(values[before : _GROUPS - after])), _GROUPS)
        if not least:
            yield front
        any_groups = range(max(least, 1), min(sizes[-1], free) + 1)
        if any_groups:  # one form for any number of groups that may have any value
            yield f"{front}(?:{'|'.join(_any_groups(any_groups[0], any_groups[-1]))})"
        for after in range(max(least, free + 1), _GROUPS - before):
            for back in _with_dotted_end(groups[_GROUPS - after :], dotted):
                yield front + back


def _any_groups(least: int, most: int) -> Iterator[str]:
    """From `least` to `most` groups, also with the last two written as an IPv4 address."""
    yield f"(?:{_GROUP}:){{{least - 1},{most - 1}}}{_GROUP}"
    if most >= 2:
        yield f"(?:{_GROUP}:){{{max(least - 2, 0)},{most - 2}}}{_DOTTED}"


def _with_dotted_end(groups: Sequence[str], dotted: str) -> Iterator[str]:
    """The groups, also with the last two written as an IPv4 address."""
    yield ":".join(groups)
    if len(groups) >= 2:
        yield ":".join([*groups[:-2], dotted])


def _dotted(packed: bytes, bits: Sequence[int]) -> str:
    if not any(bits):
        return _DOTTED
    return r"\.".join(_octet(value, known) for value, known in zip(packed, bits, strict=True))


def _group(value: int, bits: int) -> str:
    """The texts of the groups whose first `bits` bits are those of `value`; leading zeros may be left out."""
    if bits == 0:
        return _GROUP
    low, high = value, value + (1 << (16 - bits)) - 1
    return "(?:" + "|".join(_between(low, high)) + ")"


def _between(low: int, high: int) -> Iterator[str]:
    """Expressions for the numbers from `low` to `high`, in up to four hexadecimal digits."""
    for digits in range(1, 5):
        least, most = max(low, 16 ** (digits - 1) if digits > 1 else 0), min(high, 16**digits - 1)
        if least <= most:
            zeros = "" if digits == 4 else f"0{{0,{4 - digits}}}"
            yield zeros + _digits(least, most, digits)


def _digits(low: int, high: int, digits: int) -> str:
    """An expression for the numbers from `low` to `high`, written with `digits` digits."""
    if digits == 0:
        return ""
    unit = 16 ** (digits - 1)
    first, last = low // unit, high // unit
    if first == last:
        return f"{first:x}" + _digits(low - first * unit, high - first * unit, digits - 1)
    forms = []
    if low % unit:
        forms.append(f"{first:x}" + _digits(low % unit, unit - 1, digits - 1))
        first += 1
    end = last
    if high % unit != unit - 1:
        forms.append(f"{last:x}" + _digits(0, high % unit, digits - 1))
        end -= 1
    if first <= end:
        rest = "" if digits == 1 else f"[0-9a-f]{{{digits - 1}}}"
        forms.append(f"[{''.join(f'{digit:x}' for digit in range(first, end + 1))}]{rest}")
    return forms[0] if len(forms) == 1 else f"(?:{'|'.join(forms)})"
