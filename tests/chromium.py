"""A Chromium of the system, driven by Playwright, and a studio's server: for tests and measurements."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from estero.studio import static
from repository import REPOSITORY

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = os.environ.get("ESTERO_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
AXE = REPOSITORY / "studio" / "node_modules" / "axe-core" / "axe.min.js"
PICTURES = REPOSITORY / "build" / "studio"
"""Where screenshots are kept, to be looked at."""

_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def why_not_here() -> str:
    """The reason why no studio can be tried in a browser here, or the empty string."""
    for package in ("playwright", "starlette", "uvicorn"):
        if find_spec(package) is None:
            return f"{package} is not installed"
    if CHROMIUM is None:
        return "there is no Chromium here (apt-get install chromium, or ESTERO_CHROMIUM=…)"
    if not static._FOLDER.joinpath(static.SCRIPT).is_file():
        return "the studio is not built (make studio)"
    return ""


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_ARGUMENTS))
        yield browser
        browser.close()


@contextmanager
def studio(*arguments: str, directory: str | os.PathLike[str] | None = None) -> Iterator[str]:
    """The address of `estero studio` with these arguments, as long as the block."""
    paths = [str(REPOSITORY / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    program: Sequence[str] = (
        "-c",
        "from estero.cli import main; main()",
        "studio",
        "--no-browser",
        *arguments,
    )
    with subprocess.Popen(
        [sys.executable, *program], stdout=subprocess.PIPE, text=True, env=environment, cwd=directory
    ) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address.startswith("http://127.0.0.1:"), address
            yield address
        finally:
            process.terminate()
