"""What workers note while kernels are compiled; where nothing can be noted, nobody waits."""

from __future__ import annotations

import getpass
import os
import pickle
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from estero.engine.compiled.kernel_pack import unpack
from estero.language.syntax.parser import parse_query
from estero.language.tree.schema import EventLayout, Kind, Schema
from estero.plan.plan import Layout
from estero.plan.rules import plan_of
from estero.queries.texts import query
from estero.spark.warming import _alone, _state_of
from estero.spark.work import Work, layout_of_schema

LAYOUT = Layout(Schema({name: {"k": Kind.INT, "s": Kind.STRING} for name in ("A", "B")}))
SEQUENCE = "SELECT * WHERE A AS a ; B AS b"


def test_a_user_without_a_name_is_noted_by_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 1234")

    monkeypatch.setattr(getpass, "getuser", nameless)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with _alone("plain"):
        pass
    (note,) = tmp_path.rglob("*.compiled")
    assert note.parent.parent.name == f"estero-{os.getuid()}"


def test_a_note_that_is_a_link_overwrites_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with _alone("plain"):
        pass
    (done,) = tmp_path.rglob("*.compiled")
    target = tmp_path / "target"
    target.write_bytes(b"before")
    done.unlink()
    done.with_suffix("").unlink()
    done.with_suffix("").symlink_to(target)
    with _alone("plain"):
        pass
    assert target.read_bytes() == b"before"
    done.with_suffix("").unlink()
    done.parent.chmod(0o777)
    with _alone("plain"):
        pass
    assert list(done.parent.iterdir()) == []


def test_without_a_temporary_directory_nothing_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    done = []
    with _alone("plain"):
        done.append("compiled")
    assert done == ["compiled"]
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("text", "only", "family"),
    [
        (SEQUENCE, None, "cea"),
        ("SELECT NEXT * WHERE A AS a ; B AS b", None, "cea-spans"),
        ("SELECT * WHERE A AS a ;[<= 5 EVENTS] B AS b", None, "cea-aged"),
        (f"{SEQUENCE} FILTER a.k < b.k", "CEA", "cea-split"),
        (f"{SEQUENCE} FILTER a.k = b.k AND a.s != b.s", "chain", "chain-ed-index"),
        (f"{SEQUENCE} FILTER a.k < b.k WITHIN 9 EVENTS", "chain", "pcea-ordered-index"),
        (f"{SEQUENCE} FILTER a.k = b.k WITHIN 9 EVENTS", "chain", "pcea-heap"),
        ("SELECT * WHERE A AS a ALL B AS b FILTER a.k = b.k WITHIN 9 EVENTS", None, "pcea-heap"),
    ],
)
def test_plans_that_run_other_kernels_are_compiled_for_apart(text: str, only: Any, family: str) -> None:
    """Else each worker of a machine would compile those of the second kind for itself."""
    assert plan_of(parse_query(text), LAYOUT, only=only).kernels == family


def test_kernels_that_are_written_anew_are_compiled_anew(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    kernel = tmp_path / "runs" / "kernel.py"
    kernel.touch()
    before = _state_of(tmp_path)
    os.utime(kernel, (1, 1))
    assert _state_of(tmp_path) != before


def _session(master: str | None) -> Any:
    """As Spark Connect has it: settings, and no broadcasts."""
    return SimpleNamespace(conf=SimpleNamespace(get=lambda _, default: master or default))


def test_the_driver_sends_kernels_unless_workers_read_its_disk() -> None:
    schema = StructType([StructField("type", StringType()), StructField("k", LongType())])
    asked = query(SEQUENCE)
    plan = asked.plan(layout_of_schema(schema, EventLayout.of("type", None, (), None)))
    work = Work.of(schema, plan, positions=False)
    work.recognition()  # they are on disk now
    for here in ("local", "local[2]"):
        assert work.with_kernels(_session(here)) is work
    for elsewhere in ("local-cluster[2,1,1024]", "spark://host:7077", None):
        sent = pickle.loads(pickle.dumps(work.with_kernels(_session(elsewhere))))
        assert unpack(sent.kernels)
        assert sent.recognition().idle
