"""The events of a log source: their channels and event numbers, or the shapes by which they are known.

Event numbers are from the documentation of Sysmon and the logs of PowerShell; channels are from pySigma, with
a few additions. The files of `sources` list published shapes of other events by their fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Final

from estero.language.sigma.fields import Mapped
from estero.language.sigma.mappings import families, mapped_of
from estero.language.sigma.texts import escaped
from estero.language.sigma.tree import Condition, Every, LogSource, Number, Some, Text
from estero.system.cached_property import cached_property

_SYSMON: Final[Mapping[str, tuple[int, ...]]] = {
    "process_creation": (1,),
    "file_change": (2,),
    "network_connection": (3,),
    "sysmon_status": (4, 16),
    "process_termination": (5,),
    "driver_load": (6,),
    "image_load": (7,),
    "create_remote_thread": (8,),
    "raw_access_thread": (9,),
    "process_access": (10,),
    "file_event": (11,),
    "registry_add": (12,),
    "registry_delete": (12,),
    "registry_set": (13,),
    "registry_rename": (14,),
    "registry_event": (12, 13, 14),
    "create_stream_hash": (15,),
    "pipe_created": (17, 18),
    "wmi_event": (19, 20, 21),
    "dns_query": (22,),
    "file_delete": (23,),
    "clipboard_capture": (24,),
    "process_tampering": (25,),
    "file_delete_detected": (26,),
    "file_block_executable": (27,),
    "file_block_shredding": (28,),
    "file_executable_detected": (29,),
    "sysmon_error": (255,),
}
_POWERSHELL: Final[Mapping[str, tuple[str, int]]] = {
    "ps_module": ("powershell", 4103),
    "ps_script": ("powershell", 4104),
    "ps_classic_start": ("powershell-classic", 400),
    "ps_classic_provider_start": ("powershell-classic", 600),
    "ps_classic_script": ("powershell-classic", 800),
}
_SYSMON_LINUX: Final = (
    "process_creation",
    "network_connection",
    "file_event",
    "process_termination",
    "raw_access_thread",
)
_CHANNELS: Final[Mapping[str, tuple[str, ...]]] = {
    "smbclient-connectivity": ("Microsoft-Windows-SmbClient/Connectivity",),
    "smbserver-connectivity": ("Microsoft-Windows-SMBServer/Connectivity",),
    "iis-configuration": ("Microsoft-IIS-Configuration/Operational",),
}


@dataclass(frozen=True)
class KnownSources:
    """The known log sources: channels of Windows by service, families, and names that are tried last."""

    channels: Mapping[str, tuple[str, ...]]
    families: tuple[Mapped, ...]
    common: Mapped

    @classmethod
    def of_tree(cls, tree: Any) -> KnownSources:
        """The inverse of `tree`; raises TypeError or ValueError for anything else."""
        channels, families, common = tree
        read = tuple(Mapped(dict(names), tuple(sources)) for names, sources in families)
        return cls(dict(channels), read, Mapped(dict(common)))

    @property
    def tree(self) -> tuple[object, ...]:
        """All fields, as nested tuples."""
        families = tuple((tuple(family.names.items()), family.sources) for family in self.families)
        return tuple(self.channels.items()), families, tuple(self.common.names.items())

    @cached_property
    def by_source(self) -> dict[LogSource, tuple[Condition, Mapped]]:
        """The shapes of the events of each log source of a family, and the family."""
        return {source: (shapes, family) for family in self.families for source, shapes in family.sources}


@cache
def known_sources() -> KnownSources:
    """The log sources that pySigma and the files of the package define."""
    from sigma.pipelines.common import windows_logsource_mapping

    channels = {
        service: (channels,) if isinstance(channels, str) else tuple(channels)
        for service, channels in windows_logsource_mapping.items()
    }
    return KnownSources({**channels, **_CHANNELS}, families(), mapped_of("ecs"))


def condition_of(
    source: LogSource, mapped: Mapped, known: KnownSources | None = None
) -> tuple[Condition | None, Mapped]:
    """The condition that events of a log source satisfy, None if unknown, and the mapping of their fields.

    A user's mapping takes precedence. If the source belongs to a family of the package, the mapping also has
    the names of the family, and those of the Elastic Common Schema.
    """
    for general, condition in mapped.sources:
        if _includes(general, source):
            return condition, mapped
    known = known or known_sources()
    ways = [way for way in (_of_channels(source, known.channels),) if way is not None]
    family = known.by_source.get(source)
    if family is None:
        return (ways[0] if ways else None), mapped
    shapes, names = family
    return Some((*ways, shapes)) if ways else shapes, _with_further(mapped, names, known.common)


@lru_cache(maxsize=256)
def _with_further(mapped: Mapped, family: Mapped, common: Mapped) -> Mapped:
    """The mapping with the names of a family, the same object for all rules of the family."""
    return replace(mapped, further=(family.names, common.names))


def _of_channels(source: LogSource, known: Mapping[str, tuple[str, ...]]) -> Condition | None:
    """The condition on events of a log source that has channels of Windows, or of Sysmon."""
    category, product, service = source.category or "", source.product, source.service
    if product == "windows":
        numbers: tuple[int, ...] = ()
        if category in _SYSMON:
            numbers, service = _SYSMON[category], "sysmon"
        elif category in _POWERSHELL:
            service, number = _POWERSHELL[category]
            numbers = (number,)
        return _events(known[service], numbers) if service is not None and service in known else None
    if product == "linux" and category in _SYSMON_LINUX and service in (None, "sysmon"):
        return _events(("Linux-Sysmon/Operational",), _SYSMON[category])
    return None


def _includes(general: LogSource, source: LogSource) -> bool:
    """Whether a log source includes another: all parts that it names are equal."""
    pairs = (
        (general.category, source.category),
        (general.product, source.product),
        (general.service, source.service),
    )
    return all(one is None or one == other for one, other in pairs)


def _events(channels: tuple[str, ...], numbers: tuple[int, ...]) -> Condition:
    named = tuple(Text("Channel", escaped(channel)) for channel in channels)
    numbered = tuple(Number("EventID", number) for number in numbers)
    parts = [parts[0] if len(parts) == 1 else Some(parts) for parts in (numbered, named) if parts]
    return parts[0] if len(parts) == 1 else Every(tuple(parts))
