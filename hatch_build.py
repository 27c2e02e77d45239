"""The build hook: a wheel is for one platform, whose libraries of kernels are built for it.

`ESTERO_PLATFORM` names another platform than this one (`linux-aarch64`, …; `python -m kernels --help` lists
them).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TABLE = "kernels.json"

TAGS = {
    "linux-x86_64": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    "linux-aarch64": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    "macos-arm64": "macosx_11_0_arm64",
    "macos-x86_64": "macosx_11_0_x86_64",
    "windows-x86_64": "win_amd64",
}
"""What an installer calls the platforms; libraries for Linux need no C library, so any will do."""


STUDIO = Path("src", "estero", "studio", "static", "studio.js")
"""The front end of the studio, which `make studio` builds; a wheel that is made without npm has none."""


class Kernels(BuildHookInterface):  # type: ignore[type-arg]
    """Builds libraries beside the sources for an editable installation, else into the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a wheel is made; no wheel is made without libraries."""
        root = Path(self.root)
        if version == "editable":
            _build(root)
            return
        name = os.environ.get("ESTERO_PLATFORM") or _build(root, "--name")
        folder = root / "build" / "wheels" / name
        _build(root, "--platform", name, "--into", str(folder))
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{TAGS[name]}"
        for file in (TABLE, *json.loads((folder / TABLE).read_bytes())["libraries"]):
            build_data["force_include"][str(folder / file)] = f"estero/engine/libraries/{file}"
        _build_studio(root)


def _build(root: Path, *arguments: str) -> str:
    """What `python -m kernels` prints; its messages go to where those of the build go."""
    paths = [str(root / "src"), str(root), os.environ.get("PYTHONPATH", "")]  # pip's, if it isolates a build
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-m", "kernels", *arguments]
    ran = subprocess.run(command, cwd=root, env=environment, check=False, stdout=subprocess.PIPE, text=True)
    if ran.returncode:
        raise SystemExit("estero: its kernels are not built, for the reason above, so neither is a wheel")
    return ran.stdout.strip()


def _build_studio(root: Path) -> None:
    """Builds the studio's front end where it is not there, with npm; without npm the wheel lacks it."""
    if (root / STUDIO).is_file():
        return
    npm = shutil.which("npm")
    if npm is None:
        sys.stderr.write("No npm here: the studio is not built, and the wheel does not have it.\n")
        return
    for command in (["ci", "--no-audit", "--no-fund"], ["run", "build"]):
        if subprocess.run([npm, *command], cwd=root / "studio", check=False, stdout=sys.stderr).returncode:
            raise SystemExit("estero: its studio is not built, for the reason above, so neither is a wheel")
