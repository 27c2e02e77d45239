"""Log sources are told by the shapes of their events, which the files of the package list."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

import pytest
import yaml

import estero
from estero.reference.sigma import detects

FAMILIES = {
    path.name.removesuffix(".yml"): path.read_text("utf-8")
    for path in files("estero.language.sigma").joinpath("sources").iterdir()
}
SOURCES = [
    (
        family,
        {key: source[key] for key in ("category", "product", "service") if key in source},
        source["where"],
    )
    for family, text in sorted(FAMILIES.items())
    for source in yaml.safe_load(text)["sources"]
]
MESSAGES = {"cisco": "%SYS-5-CONFIG_I: x", "huawei": "%%01BGP/3/BGP_AUTH_FAILED: x"}


def value_of(key: str, asked: Any, product: str) -> Any:
    """A value that a test of a shape holds of."""
    if key.endswith("|re"):
        return MESSAGES[product]
    value = asked[0] if isinstance(asked, list) else asked
    if key.endswith("|exists"):
        return "there"
    return value if isinstance(value, int) else value.replace("*", "x")


def example(shape: dict[str, Any], product: str) -> dict[str, Any]:
    """An event of a shape, flat."""
    told = {key: asked for key, asked in shape.items() if asked is not None}
    return {key.partition("|")[0]: value_of(key, asked, product) for key, asked in told.items()}


EXAMPLES = [
    (family, example(shape, source.get("product", "")))
    for family, source, shapes in SOURCES
    for shape in shapes
]
# The kinds of events that log sources of two families have in common.
SHARED = {
    frozenset(pair)
    for pair in [
        ("network", "web"),  # Zeek's log of HTTP
        ("devices", "network"),  # what FortiGate, a firewall, says
        ("antivirus", "windows"),  # the channel of Microsoft Defender
        ("applications", "windows"),  # the channel of the RPC Firewall
        ("linux", "devices"),  # what syslog says of Junos
        ("linux", "web"),  # what syslog says of servers
    ]
}


def rule(source: dict[str, str], detection: dict[str, Any] | None = None) -> str:
    asked = {"s": detection or {"at|gte": 0}, "condition": "s"}
    return yaml.safe_dump({"title": "t", "logsource": source, "detection": asked})


def together(events: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The events in lists in which no two names differ in case only."""
    lists: list[tuple[dict[str, str], list[dict[str, Any]]]] = []
    for event in events:
        for names, fitting in lists:  # noqa: B007 (both are used behind the loop)
            if all(names.get(name.lower(), name) == name for name in event):
                break
        else:
            names, fitting = {}, []
            lists.append((names, fitting))
        names.update({name.lower(): name for name in event})
        fitting.append({**event, "at": len(fitting)})
    return [fitting for _, fitting in lists]


@pytest.mark.filterwarnings("ignore:.*cannot hold in full:estero.EsteroWarning")
def test_shapes_tell_events_as_the_reference_reads_them() -> None:
    sets = {
        str(place): estero.sigma(rule(source), logsource=True) for place, (_, source, _) in enumerate(SOURCES)
    }
    rules = estero.rules(sets)
    whole = [event for _, event in EXAMPLES]
    whole += [{**event, name: None} for event in whole for name in event]
    for events in together(whole):
        due = {
            (str(number), event["at"])
            for number, (_, _, shapes) in enumerate(SOURCES)
            for event in events
            if detects({"where": shapes, "condition": "where"}, event)
        }
        assert {(found.rule, found.start) for found in rules.run(events, time="at")} == due


def test_an_event_is_of_no_log_source_of_another_family() -> None:
    told = set()
    for family, source, shapes in SOURCES:
        of_it = [
            other for other, event in EXAMPLES if detects({"where": shapes, "condition": "where"}, event)
        ]
        told |= {frozenset((family, other)) for other in of_it if other != family}
        assert family in of_it, source
    assert told == SHARED


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_says_where_it_is_from(family: str) -> None:
    comments = [line for line in FAMILIES[family].splitlines() if line.startswith("# ")]
    assert re.search(r"\.(co|com|org|io|net|csv|yml|py)\b|packages/|man 7", " ".join(comments))


ECS = {
    "event.dataset": "aws.cloudtrail",
    "event.action": "StopLogging",
    "event.provider": "cloudtrail.amazonaws.com",
}
CASES = [
    (
        {"product": "aws", "service": "cloudtrail"},
        {"eventSource": "cloudtrail.amazonaws.com", "eventName": ["StopLogging", "DeleteTrail"]},
        [{"eventSource": "cloudtrail.amazonaws.com", "eventName": "StopLogging"}, ECS],
        [{"eventSource": "Exchange", "eventName": "StopLogging"}, {**ECS, "event.dataset": "gcp.audit"}],
    ),
    (
        {"product": "azure", "service": "riskdetection"},
        {"riskEventType": "anonymizedIPAddress"},
        [
            {"category": "UserRiskEvents", "properties": {"riskEventType": "anonymizedIPAddress"}},
            {"riskEventType": "anonymizedIPAddress", "detectedDateTime": "2026-01-01T00:00:00Z"},
        ],
        [{"category": "AuditLogs", "properties": {"riskEventType": "anonymizedIPAddress"}}],
    ),
    (
        {"product": "okta", "service": "okta"},
        {"eventtype": "user.session.start", "target.type": "AppInstance"},
        [
            {
                "eventType": "user.session.start",
                "published": "2026-01-01T00:00:00Z",
                "uuid": "1",
                "target": [{"type": "User"}, {"type": "AppInstance"}],
            }
        ],
        [{"eventType": "AwsApiCall", "eventSource": "iam.amazonaws.com"}],
    ),
    (
        {"product": "kubernetes", "service": "audit"},
        {"verb": "create", "capabilities": "*"},
        [
            {
                "kind": "Event",
                "apiVersion": "audit.k8s.io/v1",
                "verb": "create",
                "requestObject": {
                    "spec": {"containers": [{"securityContext": {"capabilities": {"add": ["X"]}}}]}
                },
            }
        ],
        [{"kind": "Event", "apiVersion": "v1", "verb": "create"}],
    ),
    (
        {"product": "linux", "category": "process_creation"},
        {"Image|endswith": "/nc", "CommandLine|contains": " -e "},
        [
            {
                "event": {"category": ["process"], "type": ["start"]},
                "host": {"os": {"type": "linux"}},
                "process": {"executable": "/usr/bin/nc", "command_line": "nc -e sh"},
            }
        ],
        [
            {
                "event": {"category": ["process"], "type": ["end"]},
                "host": {"os": {"type": "linux"}},
                "process": {"executable": "/usr/bin/nc", "command_line": "nc -e sh"},
            }
        ],
    ),
    (
        {"category": "proxy"},
        {"c-uri|contains": "/x.exe", "cs-method": "GET"},
        [{"_path": "http", "uri": "/x.exe", "method": "GET"}],
        [{"_path": "dns", "uri": "/x.exe", "method": "GET"}],
    ),
]


@pytest.mark.filterwarnings("ignore:no event:estero.EsteroWarning")
@pytest.mark.parametrize(("source", "detection", "events", "others"), CASES)
def test_fields_have_the_names_of_the_family(
    source: dict[str, str],
    detection: dict[str, Any],
    events: list[dict[str, Any]],
    others: list[dict[str, Any]],
) -> None:
    query = estero.sigma(rule(source, detection), logsource=True)
    for event in events:
        assert [found.start for found in query.run([event])] == [0]
    for event in others:
        assert query.run([event]).count() == 0


def test_events_that_do_not_tell_their_log_source_are_said() -> None:
    text = rule({"product": "aws", "service": "cloudtrail"}, {"eventName": "StopLogging"})
    events = [{"eventName": "StopLogging"}]
    said = (
        "no event tells that it is of the log source product: aws, service: cloudtrail: "
        "there is no eventSource nor event.dataset"
    )
    with pytest.warns(estero.EsteroWarning, match=said):
        assert estero.sigma(text).run(events).count() == 0
    everything = {"sources": [{"product": "aws", "where": {}}]}
    assert estero.sigma(text, fields=everything).run(events).count() == 1
