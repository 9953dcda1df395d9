"""Store inputs that once failed, and inputs that reach more code.

A file of ``tests/data/fuzz`` has a line of JSON, which says what the input is, and then its bytes.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tests.fuzz.judge import Case

__all__ = ["CORPUS", "Kept", "keep", "kept"]

CORPUS = Path(__file__).parents[1] / "data" / "fuzz"
LARGEST = 2**14  # bytes of an input that is kept


class Kept(NamedTuple):
    """An input of the corpus."""

    name: str  # what it takes the place of
    way: int  # number that chooses the way in which it is tried
    why: str  # why it was kept
    data: bytes  # the input


def kept(kind: str) -> dict[str, Kept]:
    """Read the kept inputs of a kind, by the names of their files."""
    found = {}
    for file in sorted((CORPUS / kind).glob("*.bin")):
        head, _, data = file.read_bytes().partition(b"\n")
        found[file.stem] = Kept(**json.loads(head), data=data)
    return found


def keep(kind: str, case: Case, way: int, why: str) -> Path | None:
    """Write an input, if it is not too large."""
    if len(case.data) > LARGEST:
        return None
    stem = hashlib.sha256(case.name.encode() + case.data).hexdigest()[:12]
    file = CORPUS / kind / f"{stem}.bin"
    file.parent.mkdir(parents=True, exist_ok=True)
    head = json.dumps({"name": case.name, "way": way, "why": why})
    file.write_bytes(head.encode() + b"\n" + case.data)
    return file
