"""Names of fields in other schemas: ready ones, and those that users give, as mappings or in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final

import yaml

from estero.errors import DataError
from estero.language.sigma.fields import Mapped
from estero.language.sigma.tree import (
    Condition,
    Every,
    LogSource,
    Missing,
    Negated,
    Number,
    Some,
    Text,
    Truth,
)
from estero.language.sigma.values import escaped
from estero.language.tree.names import listed

Given = str | PathLike[str] | Mapping[str, object]
"""A ready mapping by name, a file, or a mapping of fields."""

_ECS: Final = {
    "EventID": ("event.code", "winlog.event_id"),
    "Channel": ("winlog.channel",),
    "Computer": ("winlog.computer_name", "host.name"),
    "Provider_Name": ("winlog.provider_name", "event.provider"),
    "Image": ("process.executable",),
    "CommandLine": ("process.command_line",),
    "CurrentDirectory": ("process.working_directory",),
    "OriginalFileName": ("process.pe.original_file_name",),
    "Company": ("process.pe.company",),
    "Description": ("process.pe.description",),
    "FileVersion": ("process.pe.file_version",),
    "Product": ("process.pe.product",),
    "ProcessId": ("process.pid",),
    "ProcessGuid": ("process.entity_id",),
    "ParentImage": ("process.parent.executable",),
    "ParentCommandLine": ("process.parent.command_line",),
    "ParentProcessId": ("process.parent.pid",),
    "ParentProcessGuid": ("process.parent.entity_id",),
    "User": ("user.name",),
    "TargetFilename": ("file.path",),
    "ImageLoaded": ("dll.path", "file.path"),
    "Signature": ("dll.code_signature.subject_name", "file.code_signature.subject_name"),
    "TargetObject": ("registry.path",),
    "Details": ("registry.data.strings",),
    "QueryName": ("dns.question.name",),
    "DestinationIp": ("destination.ip",),
    "DestinationPort": ("destination.port",),
    "DestinationHostname": ("destination.domain",),
    "SourceIp": ("source.ip",),
    "SourcePort": ("source.port",),
    "SourceHostname": ("source.domain",),
    "Protocol": ("network.transport",),
    "PipeName": ("file.name",),
    "ScriptBlockText": ("powershell.file.script_block_text",),
    "c-uri": ("url.original",),
    "cs-uri": ("url.original",),
    "cs-uri-stem": ("url.path",),
    "cs-uri-query": ("url.query", "url.original"),
    "c-uri-query": ("url.query",),
    "c-uri-extension": ("url.extension",),
    "cs-host": ("url.domain",),
    "cs-method": ("http.request.method",),
    "cs-referer": ("http.request.referrer",),
    "cs-user-agent": ("user_agent.original",),
    "c-useragent": ("user_agent.original",),
    "sc-status": ("http.response.status_code",),
    "src_ip": ("source.ip",),
    "src_port": ("source.port",),
    "dst_ip": ("destination.ip",),
    "dst_port": ("destination.port",),
    "query": ("dns.question.name",),
    "record_type": ("dns.question.type",),
}
_WINLOGBEAT: Final = {
    "EventID": ("winlog.event_id", "event.code"),
    "Channel": ("winlog.channel",),
    "Computer": ("winlog.computer_name", "host.name"),
    "Provider_Name": ("winlog.provider_name",),
    "Level": ("winlog.level", "log.level"),
    "Task": ("winlog.task",),
    "Keywords": ("winlog.keywords",),
}
_OKTA: Final = {
    "eventtype": ("eventType",),
    "legacyeventtype": ("legacyEventType",),
    "displaymessage": ("displayMessage",),
    "eventType": ("eventtype",),
    "displayMessage": ("displaymessage",),
    "actor.alternateid": ("actor.alternateId",),
    "actor.displayname": ("actor.displayName",),
    "securitycontext.isproxy": ("securityContext.isProxy",),
    "securitycontext.isp": ("securityContext.isp",),
    "debugcontext.debugdata.behaviors": ("debugContext.debugData.behaviors",),
    "debugcontext.debugdata.logonlysecuritydata": ("debugContext.debugData.logOnlySecurityData",),
    "client.useragent.rawuseragent": ("client.userAgent.rawUserAgent",),
    "client.ipaddress": ("client.ipAddress",),
}


def _kinds(category: str, name: str) -> tuple[tuple[LogSource, Condition], ...]:
    """What ECS says of the events of a category of Sigma, on systems that have no channels."""
    return tuple(
        (
            LogSource(category, system),
            Every((Text("event.category", name), Text("host.os.type", system), *more)),
        )
        for system in ("linux", "macos")
        for more in [(Text("event.type", "start"),) if category == "process_creation" else ()]
    )


READY: Final[Mapping[str, Mapped]] = {
    "ecs": Mapped(
        _ECS,
        (
            *_kinds("process_creation", "process"),
            *_kinds("network_connection", "network"),
            *_kinds("file_event", "file"),
            (LogSource("dns"), Text("event.category", "network")),
            (LogSource("webserver"), Text("event.category", "web")),
            (LogSource("proxy"), Text("event.category", "web")),
        ),
    ),
    "winlogbeat": Mapped(_WINLOGBEAT),
    "sysmon": Mapped({"Provider_Name": ("Provider_Name", "SourceName", "ProviderName")}),
    "cloudtrail": Mapped({}, ((LogSource(None, "aws", "cloudtrail"), Negated(Missing("eventSource"))),)),
    "okta": Mapped(_OKTA, ((LogSource(None, "okta", "okta"), Negated(Missing("eventType"))),)),
}
"""Mappings by name. Fields that they do not name are looked for under the names of the rules."""


def mapped_of(given: Given | Sequence[object] | None) -> Mapped:
    """What is given of fields, as one; the first that names a field counts.

    Raises `DataError` for a name or a file that there is not, and for what is no mapping of fields.
    """
    if given is None:
        return Mapped()
    names: dict[str, tuple[str, ...]] = {}
    sources: list[tuple[LogSource, Condition]] = []
    for one in [given] if isinstance(given, str | PathLike | Mapping) else given:
        if not isinstance(one, str | PathLike | Mapping):
            raise DataError(f"fields are a name, a file or a mapping, not {one!r}")
        mapped = _mapped(one)
        names = {**mapped.names, **names}
        sources += mapped.sources
    return Mapped(names, tuple(sources))


def _mapped(given: Given) -> Mapped:
    if isinstance(given, Mapping):
        return _read(given, "fields")
    name = fspath(given)
    if isinstance(given, str) and name in READY:
        return READY[name]
    file = Path(name)
    if not file.is_file():
        raise DataError(f"there is no mapping and no file {name}", hint=f"ready are {listed(READY, 'and')}")
    try:
        content = yaml.safe_load(file.read_text("utf-8-sig"))  # JSON is YAML
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise DataError(f"this is no YAML of fields: {str(error).splitlines()[0]}", file=name) from error
    if not isinstance(content, Mapping):
        raise DataError("this is no mapping of fields", file=name, hint="Image: process.executable")
    return _read(content, name)


def _read(given: Mapping[str, Any], place: str) -> Mapped:
    whole = isinstance(given.get("fields"), Mapping) or isinstance(given.get("sources"), list)
    fields, sources = (given.get("fields") or {}, given.get("sources") or []) if whole else (given, [])
    names = {}
    for field, other in fields.items():
        others = [other] if isinstance(other, str) else other
        if not (
            isinstance(field, str)
            and isinstance(others, list | tuple)
            and others
            and all(isinstance(one, str) for one in others)
        ):
            raise DataError(
                f"{place}: a field has a name or a list of names, not {other!r}",
                hint="Image: process.executable",
            )
        names[field] = tuple(others)
    return Mapped(names, tuple(_source(one, place) for one in sources))


def _source(given: object, place: str) -> tuple[LogSource, Condition]:
    known = {"category", "product", "service", "where"}
    if not isinstance(given, Mapping) or set(given) - known or not isinstance(given.get("where"), Mapping):
        raise DataError(
            f"{place}: a source has category, product or service, and where, not {given!r}",
            hint="where says what its events have in common, {field: value}, and may be empty: {}",
        )
    told = LogSource(*(given.get(name) for name in ("category", "product", "service")))
    return told, Every(tuple(_common(field, value) for field, value in given["where"].items()))


def _common(field: str, value: object) -> Condition:
    match value:
        case list():
            return Some(tuple(_common(field, one) for one in value))
        case bool():
            return Truth(field, value)
        case int() | float():
            return Number(field, value)
        case None:
            return Missing(field)
        case _:
            return Text(field, escaped(str(value)))
