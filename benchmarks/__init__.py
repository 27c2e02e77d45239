"""Programs that measure; what they measure is compiled, but for first queries (`cold`)."""

import os

os.environ.setdefault("ESTERO_COMPILE", "first")
