"""Write `snappy.n5`: blosc buffers compressed with snappy, by c-blosc itself.

Needs Debian's libblosc1, which is built with snappy; numcodecs' blosc is not. Values are
``(i // 13) % 251`` for element i, first axis of N5 order fastest, so a test needs no list of them.
Run from the checkout: ``uv run python tests/data/make_snappy.py``.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import struct
from pathlib import Path

import numpy as np

DIMENSIONS, BLOCK = (40, 30), (32, 16)
TARGET = Path(__file__).parent / "snappy.n5"


def blosc(data: bytes, type_size: int, shuffle: int, block_size: int) -> bytes:
    library = ctypes.CDLL("libblosc.so.1")
    # snappy wants more room than the data take, or blosc stores them uncompressed
    packed = ctypes.create_string_buffer(2 * len(data) + 1024)
    n = library.blosc_compress_ctx(
        *(5, shuffle, ctypes.c_size_t(type_size), ctypes.c_size_t(len(data)), data, packed),
        *(ctypes.c_size_t(len(packed)), b"snappy", ctypes.c_size_t(block_size), 1),
    )
    assert n > 0
    # blosc stores less than 128 bytes as they are
    assert len(data) < 128 or packed[2][0] & 0x2 == 0, "stored uncompressed: no use as a test"
    assert packed[2][0] >> 5 == 2, "not snappy"
    return packed.raw[:n]


def main() -> None:
    index = np.arange(np.prod(DIMENSIONS)).reshape(DIMENSIONS[::-1])
    for dtype, type_size, shuffle, block_size in [
        *(("uint16", 1, 0, 0), ("uint16", 1, 1, 0), ("uint16", 1, 2, 0)),  # as Java
        *(("uint16", 2, 1, 0), ("uint16", 2, 2, 0), ("uint64", 8, 1, 512), ("uint8", 1, 2, 128)),
    ]:
        dataset = TARGET / f"{dtype}-typesize{type_size}-shuffle{shuffle}"
        dataset.mkdir(parents=True, exist_ok=True)
        parameters = {"cname": "snappy", "clevel": 5, "shuffle": shuffle, "blocksize": block_size}
        document = {
            "dataType": dtype,
            "compression": {"type": "blosc", **parameters},
            "blockSize": BLOCK,
            "dimensions": DIMENSIONS,
        }
        (dataset / "attributes.json").write_text(json.dumps(document))
        values = (index // 13 % 251).astype(np.dtype(dtype).newbyteorder(">"))
        grid = (range(-(-d // b)) for d, b in zip(DIMENSIONS, BLOCK, strict=True))
        for x, y in itertools.product(*grid):
            part = values[y * BLOCK[1] : (y + 1) * BLOCK[1], x * BLOCK[0] : (x + 1) * BLOCK[0]]
            payload = blosc(part.tobytes(), type_size, shuffle, block_size)
            (dataset / str(x)).mkdir(exist_ok=True)
            header = struct.pack(">HHII", 0, 2, *part.shape[::-1])
            (dataset / str(x) / str(y)).write_bytes(header + payload)


if __name__ == "__main__":
    main()
