"""A status as it is kept in memory: JSON takes a tenth of the memory of the objects, and packed a third of that.

Statuses have their names, reasons and most of their texts in common. So each is packed against one of them, which takes
a quarter of what it takes by itself, and half the time.
"""

import zlib
from collections.abc import Mapping
from typing import Any, Final

from pydantic_core import from_json, to_json

LONGER: Final = 1.25
"""A status that is so much longer than the common one is the common one from then on: that of a job that is measured
follows that of one that is not, and says more of what others will say."""
MOST: Final = 8192
"""Bytes of it that are used: looking through them takes its time in each packing. Then comes the history of its job."""

_LEVEL: Final = 1
_BARE: Final = -15  # without header and checksum, which say what is known, and take a tenth of the time
# The common statuses of this process, each longer than the one before. None is dropped: what was packed against it
# can't be read without it.
_COMMON: Final[list[bytes]] = [b""]


def packed(status: Mapping[str, Any]) -> bytes:
    """A status as it is kept. Only this process can read it."""
    text = to_json(status)
    if min(len(text), MOST) > LONGER * len(_COMMON[-1]):
        _COMMON.append(text[:MOST])
    number = len(_COMMON) - 1
    packer = zlib.compressobj(_LEVEL, wbits=_BARE, zdict=_COMMON[number])
    return bytes((number,)) + packer.compress(text) + packer.flush()


def unpacked(kept: bytes) -> dict[str, Any]:
    """The status in wire form."""
    reader = zlib.decompressobj(_BARE, zdict=_COMMON[kept[0]])
    body: dict[str, Any] = from_json(reader.decompress(kept[1:]))
    return body
