"""Events that look like those of Sysmon, as Windows exports them, with realistic numbers of distinct values.

    python -m benchmarks.sysmon_events DIRECTORY [--events 10000000] [--hosts 10000]

Flat columns, named as in Sysmon's documentation; a kind of event has those of its fields, and NULL elsewhere.
Programs and hosts are few, and some of them do most; a third of all command lines is new. One process of a
thousand does what detection rules look for: an encoded command, a dump of credentials, a task at the start.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

BATCH: Final = 1 << 20
"""Events of one file."""
CHANNEL: Final = "Microsoft-Windows-Sysmon/Operational"
KINDS: Final = {1: 0.30, 3: 0.15, 7: 0.20, 10: 0.05, 11: 0.10, 12: 0.04, 13: 0.11, 22: 0.05}
"""The shares of the kinds: processes, connections, loaded images, access, files, registry, names."""
PROGRAMS: Final = 2000
ODD: Final = 0.001

_FOLDERS = [
    "C:\\Windows\\System32",
    "C:\\Windows\\SysWOW64",
    "C:\\Program Files",
    "C:\\Users\\%s\\AppData\\Local",
]
_COMMON = [
    *(
        "svchost.exe",
        "cmd.exe",
        "powershell.exe",
        "conhost.exe",
        "rundll32.exe",
        "msiexec.exe",
        "wscript.exe",
    ),
    *("schtasks.exe", "reg.exe", "net.exe", "explorer.exe", "services.exe", "lsass.exe", "winlogon.exe"),
]
_WORDS = [
    "update",
    "agent",
    "helper",
    "service",
    "sync",
    "monitor",
    "render",
    "backup",
    "host",
    "client",
    "setup",
]
_FLAGS = [
    "-k netsvcs -p",
    "/c echo",
    "--type=renderer --lang=en-US",
    "-Embedding",
    "/automation",
    "-s Schedule",
]
_ODD_COMMANDS = [
    "powershell.exe -nop -w hidden -enc SQBFAFgAIAAoAE4AZQB3AC0ATwBiAGoAZQBjAHQA",
    "rundll32.exe C:\\Windows\\System32\\comsvcs.dll, MiniDump 624 C:\\Temp\\out.dmp full",
    "schtasks.exe /create /tn Updater /tr C:\\Users\\Public\\u.exe /sc onstart /ru SYSTEM",
    "cmd.exe /c vssadmin delete shadows /all /quiet",
    "reg.exe save HKLM\\SAM C:\\Temp\\sam.hiv",
    "net.exe user /add support P4ssw0rd",
]
_KEYS = [
    "HKLM\\SOFTWARE\\Microsoft\\Windows\\CurrentVersion",
    "HKLM\\SYSTEM\\CurrentControlSet\\Services",
    "HKU\\S-1-5-21",
]


class Machines:
    """Programs, hosts and people that events name, the same for all batches of a seed."""

    def __init__(self, hosts: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.hosts = pa.array([f"WS{number:05d}.corp.example" for number in range(hosts)])
        self.users = pa.array([f"CORP\\user{number}" for number in range(hosts)])
        named = [
            f"{one}{two}{number}.exe"
            for number, (one, two) in enumerate(random.choice(_WORDS, (PROGRAMS, 2)))
        ]
        files = [*_COMMON, *named][:PROGRAMS]
        folders = random.integers(0, len(_FOLDERS), PROGRAMS)
        folders[: len(_COMMON)] = 0
        self.images = [
            f"{_FOLDERS[folder].replace('%s', f'user{number}')}\\{file}"
            for number, (folder, file) in enumerate(zip(folders.tolist(), files, strict=True))
        ]
        self.libraries = [
            f"C:\\Windows\\System32\\{word}{number}.dll" for number in range(300) for word in _WORDS
        ]
        self.names = [f"{word}{number}.example.net" for number in range(500) for word in _WORDS]


def batches(events: int, hosts: int = 10_000, seed: int = 5, size: int = BATCH) -> Iterator[pa.Table]:
    """Tables of at most `size` events, in order of time."""
    machines = Machines(hosts, seed)
    for first in range(0, events, size):
        yield _batch(machines, first, min(size, events - first), np.random.default_rng((seed, first)))


def _batch(machines: Machines, first: int, size: int, random: np.random.Generator) -> pa.Table:
    kinds = random.choice(np.array(list(KINDS)), size, p=list(KINDS.values()))
    images = _often(random, size, PROGRAMS)
    parents = _often(random, size, PROGRAMS)
    hosts = random.integers(0, len(machines.hosts), size)
    commands = _commands(machines, images, random)
    targets = random.integers(0, 1 << 30, size)
    process, file, key = kinds == 1, kinds == 11, (kinds == 12) | (kinds == 13)
    columns: dict[str, Any] = {
        "UtcTime": pa.array((first + np.arange(size)) * 1000, pa.timestamp("us")),
        "EventID": pa.array(kinds.astype(np.int32)),
        "Channel": _encoded([CHANNEL], np.zeros(size, np.int32)),
        "Provider_Name": _encoded(["Microsoft-Windows-Sysmon"], np.zeros(size, np.int32)),
        "Computer": pa.DictionaryArray.from_arrays(hosts.astype(np.int32), machines.hosts),
        "User": pa.DictionaryArray.from_arrays(hosts.astype(np.int32), machines.users),
        "Image": _encoded(machines.images, images),
        "CommandLine": commands.filter(pa.array(process)).take(_places(process)),
        "ParentImage": _encoded(machines.images, parents, process),
        "ParentCommandLine": _encoded([f'"{image}" -start' for image in machines.images], parents, process),
        "OriginalFileName": _encoded(
            [image.rpartition("\\")[2] for image in machines.images], images, process
        ),
        "IntegrityLevel": _encoded(["Medium", "High", "System", "Low"], _often(random, size, 4), process),
        "TargetFilename": _made(
            file, targets, lambda number: f"C:\\Users\\user{number % 997}\\Documents\\{number}.tmp"
        ),
        "TargetObject": _made(
            key, targets, lambda number: f"{_KEYS[number % 3]}\\{_WORDS[number % 11]}\\{number % 5000}"
        ),
        "Details": _encoded(
            ["DWORD (0x00000001)", "Binary Data", "C:\\Windows\\x.exe"], _often(random, size, 3), kinds == 13
        ),
        "ImageLoaded": _encoded(
            machines.libraries, _often(random, size, len(machines.libraries)), kinds == 7
        ),
        "TargetImage": _encoded(machines.images, parents, kinds == 10),
        "GrantedAccess": _encoded(["0x1000", "0x1410", "0x1fffff"], _often(random, size, 3), kinds == 10),
        "DestinationIp": _made(
            kinds == 3, targets, lambda number: f"10.{number % 60}.{number % 250}.{number % 199}"
        ),
        "DestinationPort": pa.array(
            random.choice([443, 80, 53, 445, 8080], size).astype(np.int32), mask=kinds != 3
        ),
        "QueryName": _encoded(machines.names, _often(random, size, len(machines.names)), kinds == 22),
    }
    return pa.table(columns)


def _often(random: np.random.Generator, size: int, values: int) -> NDArray[np.int32]:
    """Numbers of values of which the first ones are the most frequent."""
    return (values * random.random(size) ** 3).astype(np.int32)


def _commands(machines: Machines, images: NDArray[np.int32], random: np.random.Generator) -> pa.Array:
    """A command line for each image: one of a few, a new one, or an odd one."""
    size = images.size
    ways, flags = random.random(size), random.integers(0, len(_FLAGS), size)
    numbers = random.integers(0, 1 << 40, size)
    lines = []
    for image, way, flag, number in zip(
        images.tolist(), ways.tolist(), flags.tolist(), numbers.tolist(), strict=True
    ):
        if way < ODD:
            lines.append(_ODD_COMMANDS[number % len(_ODD_COMMANDS)])
        elif way < 1 / 3:
            lines.append(f'"{machines.images[image]}" {_FLAGS[flag]} --session {number:x}')
        else:
            lines.append(f'"{machines.images[image]}" {_FLAGS[flag]}')
    return pa.array(lines, pa.string())


def _encoded(
    values: Sequence[str], codes: NDArray[np.int32], there: NDArray[np.bool_] | None = None
) -> pa.Array:
    mask = None if there is None else ~there
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=mask), pa.array(values))


def _made(there: NDArray[np.bool_], numbers: NDArray[np.int64], text: Any) -> pa.Array:
    values = pa.array([text(number) for number in numbers[there].tolist()], pa.string())
    return values.take(_places(there))


def _places(there: NDArray[np.bool_]) -> pa.Array:
    """For each row the place of its value among those of the rows that have one, else NULL."""
    return pa.array(there.cumsum() - 1, mask=~there)


def write(directory: Path, events: int, hosts: int = 10_000) -> None:
    """Writes the events as Parquet files of `BATCH` events."""
    directory.mkdir(parents=True, exist_ok=True)
    for number, table in enumerate(batches(events, hosts)):
        pq.write_table(table, directory / f"{number:04d}.parquet", compression="zstd")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--hosts", type=int, default=10_000)
    asked = parser.parse_args()
    write(asked.directory, asked.events, asked.hosts)
