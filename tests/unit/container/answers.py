"""Answers to the requests of flows from a dictionary, and a small dataset."""

from __future__ import annotations

import json
from typing import Any

from n5zarr.container.container import Container
from n5zarr.container.options import ViewOptions
from n5zarr.storage.requests import (
    Ends,
    Entry,
    Exists,
    FileThatNames,
    Get,
    KeysBelow,
    List,
    Put,
    Remove,
    RemoveTree,
    Request,
    Stamp,
    Steps,
    Update,
    Warn,
    Work,
    drive,
)

# block (1, 0) of dimensions (5, 3) in blocks of (3, 2), by the specification: mode 0, two
# dimensions, 2 x 2 elements, big-endian
EDGE_BLOCK = bytes.fromhex("0000 0002 00000002 00000002 000a 000b 000c 000d")
FULL_BLOCK = bytes.fromhex("0000 0002 00000003 00000002 0001 0002 0003 0004 0005 0006")
type Doc = dict[str, Any]  # an object of JSON

DATASET: Doc = {
    "dataType": "uint16", "compression": {"type": "raw"}, "blockSize": [3, 2], "dimensions": [5, 3],
}  # fmt: skip


class Answers:
    """Answers from a dictionary, with a record of the requests; documents may be objects."""

    def __init__(self, **values: Any) -> None:
        self.values = {
            key: value if isinstance(value, bytes) else json.dumps(value).encode()
            for key, value in values.items()
        }
        self.asked: list[Request] = []
        self.warnings: list[str] = []

    def __call__[T](self, steps: Steps[T]) -> T:
        return drive(steps, self.answer)

    def answer(self, request: Request) -> object:  # noqa: C901, PLR0911, PLR0912 - one dispatch
        self.asked.append(request)
        match request:
            case Get(key):
                return self.values.get(key)
            case Stamp(key):  # as of local files, the third is the size
                value = self.values.get(key)
                return None if value is None else (hash(value), 0, len(value))
            case Exists(key):
                return key in self.values
            case Put(key, data):
                self.values[key] = bytes(data)
            case Update(key, change):
                new = change(self.values.get(key))
                if new is None:
                    self.values.pop(key, None)
                else:
                    self.values[key] = new
                return new
            case Remove(key):
                self.values.pop(key, None)
            case RemoveTree(path):
                for key in [k for k in self.values if not path or k.startswith(f"{path}/")]:
                    del self.values[key]
            case List(path):
                prefix = f"{path}/" if path else ""
                below = [key.removeprefix(prefix) for key in self.values if key.startswith(prefix)]
                names = {key.split("/")[0]: "/" in key for key in below}
                return [Entry(*entry) for entry in names.items()] or None
            case Work(function):
                return function()
            case Warn(message):
                self.warnings.append(message)
            case Ends(key, first, last):
                value = self.values.get(key)
                end = b"" if value is None or not last else value[-last:]
                return None if value is None else (len(value), value[:first], end)
            case FileThatNames() | KeysBelow():
                pass
        return None

    def count(self, kind: type) -> int:
        return sum(isinstance(request, kind) for request in self.asked)

    def document(self, path: str = "") -> Doc:
        found: Doc = json.loads(self.values[f"{path}/attributes.json".lstrip("/")])
        return found


def presented(*, has_stamps: bool = True, read_only: bool = False, **options: Any) -> Container:
    return Container("c.n5", ViewOptions(**options), has_stamps=has_stamps, read_only=read_only)
