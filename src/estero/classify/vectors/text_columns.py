"""The letters of columns of strings, read in place."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def ends_and_letters(texts: pa.Array) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """The ends of texts, each of which is the start of the next, and the letters of all of them."""
    if pa.types.is_string_view(texts.type):
        texts = texts.cast(pa.large_string())
    _, offsets, data = texts.buffers()
    letters = np.zeros(1, np.uint8) if data is None or not data.size else np.frombuffer(data, np.uint8)
    if offsets is None or not len(texts):
        return np.zeros(len(texts) + 1, np.int32), letters
    rows = texts.offset + len(texts) + 1
    if not pa.types.is_large_string(texts.type):
        return np.frombuffer(offsets, np.int32, rows)[texts.offset :], letters
    ends = np.frombuffer(offsets, np.int64, rows)[texts.offset :]
    if ends[-1] - ends[0] > np.iinfo(np.int32).max:
        raise pa.ArrowInvalid("a batch has more than 2 GiB of text in one column")
    return (ends - ends[0]).astype(np.int32), letters[ends[0] :]
