"""Makes `.venv-core`: CORE's engine (`pycer`, wheels for Python 3.13 only) in an environment of its own.

``python benchmarks/install_core.py PYTHON3.13 [WHEEL]``. The peer is never a dependency of Estero.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ENVIRONMENT = Path(__file__).parents[1] / ".venv-core"


def main() -> None:
    """Creates the environment with the given interpreter; installs NumPy and pycer (or the given wheel)."""
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    subprocess.run([sys.argv[1], "-m", "venv", str(ENVIRONMENT)], check=True)
    python = ENVIRONMENT / "bin" / "python"
    peer = sys.argv[2] if len(sys.argv) == 3 else "pycer"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", "numpy", peer], check=True)
    subprocess.run([str(python), "-c", "import pycer"], check=True)
    print("ready: benchmarks.run finds .venv-core by itself")


if __name__ == "__main__":
    main()
