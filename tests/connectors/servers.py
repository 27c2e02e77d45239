"""A Kafka broker and a PostgreSQL server on this machine alone, for as long as a test needs them."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from estero.spark.sessions.java import find_java_home
from waiting import FAR_OFF

JARS = Path(__file__).resolve().parent / "jars"
PASSWORD = "frost at five"

_BROKER = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={directory}/log
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
num.partitions=2
"""
_SMALL = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_SECONDS = 0.1
_TRIES = FAR_OFF * 10


def spark_jars() -> Path:
    """The connectors of Spark."""
    if not (JARS / ".ready").is_file():
        pytest.skip("the connectors are not here: `make connectors` fetches them, with Maven (mvn)")
    return JARS / "spark"


@contextmanager
def kafka(directory: Path) -> Iterator[str]:
    """A broker that makes a topic when it is named; its ``host:port``."""
    port, controller = _free_ports(2)
    settings = directory / "broker.properties"
    settings.write_text(_BROKER.format(port=port, controller=controller, directory=directory))
    java = [str(find_java_home() / "bin" / "java"), *_SMALL, "-cp", f"{JARS}/broker/*"]
    identity = ["-t", "4L6g3nShT-eMCtK--X86sw", "-c", str(settings)]
    subprocess.run([*java, "kafka.tools.StorageTool", "format", *identity], check=True, capture_output=True)
    with (directory / "broker.log").open("wb") as log:
        broker = subprocess.Popen([*java, "kafka.Kafka", str(settings)], stdout=log, stderr=log)
    try:
        _wait_for(port, broker)
        yield f"127.0.0.1:{port}"
    finally:
        broker.kill()
        broker.wait()


@contextmanager
def postgresql() -> Iterator[str]:
    """A server with an empty database ``weather``, owned by the user ``estero``; its ``host:port``."""
    programs = _programs()
    # The server refuses to run as root, and others cannot see root's temporary directories.
    owner = pwd.getpwnam(_somebody()) if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    directory = Path(tempfile.mkdtemp(prefix="estero-postgresql-"))

    def run(program: str, *arguments: str) -> None:
        command = [str(programs / program), *arguments]
        log = directory / "programs.log"
        with log.open("ab") as said:
            subprocess.run(
                command,
                check=True,
                cwd=directory,
                user=owner.pw_uid if os.geteuid() == 0 else None,
                stdout=said,
                stderr=said,
            )

    try:
        os.chown(directory, owner.pw_uid, owner.pw_gid)
        (directory / "password").write_text(PASSWORD)
        data, (port,) = str(directory / "data"), _free_ports(1)
        run("initdb", "-D", data, "-U", "estero", "-A", "scram-sha-256", "--no-sync",
            f"--pwfile={directory}/password")  # fmt: skip
        listening = (
            f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={directory} -c fsync=off"
        )
        run("pg_ctl", "start", "-w", "-D", data, "-o", listening, "-l", str(directory / "server.log"))
        try:
            run_sql(f"127.0.0.1:{port}", "CREATE DATABASE weather", database="postgres")
            yield f"127.0.0.1:{port}"
        finally:
            run("pg_ctl", "stop", "-m", "immediate", "-D", data)
    finally:
        shutil.rmtree(directory)


def run_sql(server: str, text: str, *, database: str = "weather") -> list[str]:
    """The rows that statements have, as lines."""
    host, port = server.split(":")
    command = [
        str(_programs() / "psql"),
        "-h",
        host,
        "-p",
        port,
        "-U",
        "estero",
        "-d",
        database,
        "-qAtc",
        text,
    ]
    answer = subprocess.run(
        command, check=True, capture_output=True, text=True, env=os.environ | {"PGPASSWORD": PASSWORD}
    )
    return answer.stdout.splitlines()


def _programs() -> Path:
    """Where PostgreSQL's programs are; Debian keeps them off the path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    if on_path is not None:
        found.append(Path(on_path).resolve())
    if not found:
        pytest.skip("PostgreSQL is not installed (Debian: apt install postgresql)")
    return found[-1].parent


def _somebody() -> str:
    known = {each.pw_name for each in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def _free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    pause = threading.Event()
    for _ in range(_TRIES):
        assert process.poll() is None, "the broker has ended"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            pause.wait(_SECONDS)
        else:
            return
    raise AssertionError("the broker does not answer")
