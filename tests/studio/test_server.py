"""The server is for one user of this machine: every other way in is refused, as is every other file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra studio is not installed (starlette)")
pytest.importorskip("httpx2", reason="starlette's test client needs httpx2")

from starlette.testclient import TestClient

from estero.studio import static
from estero.studio.folder import Folder
from estero.studio.opening import Opening
from estero.studio.server import LONGEST_MESSAGE, application
from estero.studio.worker import Worker

TOKEN = "a-token"
HERE = "http://127.0.0.1:4242"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "queries").mkdir()
    (tmp_path / "secret.ceql").write_text("secret")
    (tmp_path / "queries" / "one.ceql").write_text("SELECT * WHERE Wind")
    (tmp_path / "queries" / "notes.txt").write_text("no query")
    (tmp_path / "queries" / "link.ceql").symlink_to(tmp_path / "secret.ceql")
    return tmp_path / "queries"


@pytest.fixture
def client(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    built = tmp_path / "static"
    built.mkdir()
    for name in (static.SCRIPT, static.STYLE):
        (built / name).write_text(f"/* {name} */")
    monkeypatch.setattr(static, "_FOLDER", built)
    worker = Worker(Opening())
    with TestClient(application(worker, TOKEN, Folder(folder)), base_url=HERE) as client:
        yield client
    worker.close()


def told(client: TestClient, message: object, **more: Any) -> dict[str, Any]:
    answer = client.post(f"/message?token={TOKEN}", content=json.dumps(message), **more)
    assert answer.status_code == 200, answer.text
    size = int.from_bytes(answer.content[:4], "little")
    reply: dict[str, Any] = json.loads(answer.content[4 : 4 + size])
    return reply


def test_the_page_and_its_files_are_there_with_the_token(client: TestClient) -> None:
    page = client.get(f"/?token={TOKEN}")
    assert page.status_code == 200
    assert f"studio.js?token={TOKEN}" in page.text
    assert client.get(f"/studio.js?token={TOKEN}").text == "/* studio.js */"
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("path", ["/", "/studio.js", "/studio.css", "/message", "/cancel", "/nothing"])
@pytest.mark.parametrize("query", ["", "?token=", "?token=another"])
def test_nothing_is_there_without_the_token(client: TestClient, path: str, query: str) -> None:
    send = client.post if path in ("/message", "/cancel") else client.get
    answer = send(f"{path}{query}")
    assert answer.status_code == 401
    assert TOKEN not in answer.text


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:4242", "127.0.0.1.evil.example", "0.0.0.0", ""]
)
def test_another_host_is_refused(client: TestClient, host: str) -> None:
    assert client.get(f"/?token={TOKEN}", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["localhost:9", "127.0.0.1:9", "[::1]:9", "localhost"])
def test_this_machine_has_several_names_and_a_tunnel_another_port(client: TestClient, host: str) -> None:
    headers = {"host": host, "origin": f"http://{host}"}
    assert client.get(f"/?token={TOKEN}", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://127.0.0.1:1", "https://127.0.0.1:4242", "null"]
)
def test_another_origin_is_refused(client: TestClient, origin: str) -> None:
    answer = client.post(f"/message?token={TOKEN}", content="{}", headers={"origin": origin})
    assert answer.status_code == 403


def test_messages_are_answered(client: TestClient) -> None:
    hello = told(client, {"kind": "hello"})
    assert hello["events"] == 2010
    assert hello["files"] is True
    assert told(client, {"kind": "run", "text": hello["text"]})["count"] == "45"
    timeline = told(client, {"kind": "timeline", "by": None})
    assert timeline["lengths"] == [2010 * 8, 2010 * 2]


@pytest.mark.parametrize("body", [b"", b"[]", b"\xff", b"{"])
def test_what_is_no_message_is_refused(client: TestClient, body: bytes) -> None:
    assert client.post(f"/message?token={TOKEN}", content=body).status_code == 400


@pytest.mark.parametrize(("body", "status"), [(b'["1"]', 204), (b"[]", 204), (b"{}", 400), (b"\xff", 400)])
def test_messages_are_cancelled_by_their_ids(client: TestClient, body: bytes, status: int) -> None:
    assert client.post(f"/cancel?token={TOKEN}", content=body).status_code == status


def test_a_message_has_a_longest_length(client: TestClient) -> None:
    body = json.dumps({"kind": "check", "text": " " * LONGEST_MESSAGE})
    assert client.post(f"/message?token={TOKEN}", content=body).status_code == 413


def test_queries_of_the_directory_are_opened_and_saved(client: TestClient, folder: Path) -> None:
    assert told(client, {"kind": "files"})["names"] == ["one.ceql"]
    assert told(client, {"kind": "open", "name": "one.ceql"})["text"] == "SELECT * WHERE Wind"
    assert told(client, {"kind": "save", "name": "two.ceql", "text": "SELECT * WHERE Rain"})["names"] == [
        "one.ceql",
        "two.ceql",
    ]
    assert (folder / "two.ceql").read_text() == "SELECT * WHERE Rain"


@pytest.mark.parametrize("kind", ["open", "save"])
@pytest.mark.parametrize(
    "name",
    [
        "../secret.ceql",
        "/etc/passwd",
        "notes.txt",
        "link.ceql",
        "..\\secret.ceql",
        ".ceql",
        "",
        "sub/x.ceql",
        "one.ceql/",
    ],
)
def test_no_other_file_is(client: TestClient, folder: Path, kind: str, name: str) -> None:
    reply = told(client, {"kind": kind, "name": name, "text": "changed"})
    assert "error" in reply
    assert "text" not in reply
    assert (folder.parent / "secret.ceql").read_text() == "secret"
    assert (folder / "notes.txt").read_text() == "no query"


def test_a_file_that_cannot_be_read_is_named(client: TestClient) -> None:
    assert (
        told(client, {"kind": "open", "name": "none.ceql"})["error"] == "none.ceql: No such file or directory"
    )
