"""A JupyterLab with one notebook, for tests: its kernel is this Python, its directory one for the test."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import chromium
from repository import REPOSITORY

JUPYTERLAB = os.environ.get("ESTERO_JUPYTERLAB") or shutil.which("jupyter-lab")
_SETTINGS = {
    "notification": {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True},
    "themes": {"theme": "JupyterLab Light"},
}


def why_not_here() -> str:
    """The reason why the widget cannot be tried in JupyterLab here, or the empty string."""
    for package in ("anywidget", "ipykernel"):
        if find_spec(package) is None:
            return f"{package} is not installed"
    if JUPYTERLAB is None:
        return "there is no JupyterLab here (tests/README.md says how to install it, or ESTERO_JUPYTERLAB=…)"
    return chromium.why_not_here()


@contextmanager
def jupyterlab(directory: Path, cells: Sequence[str], *, theme: str = "JupyterLab Light") -> Iterator[str]:
    """The address of a notebook with these cells, not run yet, as long as the block."""
    settings = directory / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    for name, values in (_SETTINGS | {"themes": {"theme": theme}}).items():
        (settings / f"{name}.jupyterlab-settings").write_text(json.dumps(values), encoding="utf-8")
    kernel = directory / "data" / "kernels" / "estero"
    kernel.mkdir(parents=True)
    program = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": program, "display_name": "Estero", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    notebooks = directory / "notebooks"
    notebooks.mkdir()
    (notebooks / "studio.ipynb").write_text(json.dumps(_notebook(cells)), encoding="utf-8")
    with _server(directory, notebooks) as (port, token):
        yield f"http://127.0.0.1:{port}/lab/tree/studio.ipynb?token={token}"


def _notebook(cells: Sequence[str]) -> dict[str, object]:
    made: list[dict[str, object]] = [
        {"cell_type": "code", "id": str(number), "metadata": {}, "outputs": [], "execution_count": None}
        | {"source": cell}
        for number, cell in enumerate(cells)
    ]
    kernel = {"kernelspec": {"name": "estero", "display_name": "Estero", "language": "python"}}
    return {"cells": made, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}


@contextmanager
def _server(directory: Path, notebooks: Path) -> Iterator[tuple[int, str]]:
    """The port and the token of a server, once it listens."""
    token = secrets.token_urlsafe(16)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    places = {name: str(directory / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    environment = {
        **os.environ,
        **{f"JUPYTER_{name}_DIR": place for name, place in places.items()},
        "JUPYTERLAB_SETTINGS_DIR": str(directory / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(directory / "workspaces"),
        "PYTHONPATH": str(REPOSITORY / "src"),
    }
    options = [f"--ServerApp.port={port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}"]
    options += [f"--ServerApp.root_dir={notebooks}", "--no-browser", "--allow-root", "--LabApp.news_url="]
    with subprocess.Popen(
        [str(JUPYTERLAB), *options], env=environment, cwd=notebooks, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            said = []
            for line in process.stderr:
                said.append(line)
                if "is running at" in line:
                    break
            else:
                raise AssertionError("".join(said))
            yield port, token
        finally:
            process.terminate()
            process.communicate()
