"""Runs that end at a step that changes something, as if they were killed there."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from zarr.storage import LocalStore, MemoryStore

from n5zarr.storage import removing
from n5zarr.storage.local import LocalFiles
from n5zarr.storage.requests import Ends, Exists, Get, List, Stamp, Warn


class KilledError(BaseException):
    """No handler of errors sees it, as none sees a signal that kills."""


def is_change(*given: object) -> bool:
    return not any(isinstance(each, Get | List | Stamp | Ends | Exists | Warn) for each in given)


def is_change_of_a_document(*given: object) -> bool:
    keys = (str(getattr(each, "key", each)) for each in given)
    return is_change(*given) and any(key.endswith("json") for key in keys)


def dying_at(
    step: int, patch: pytest.MonkeyPatch, is_step: Callable[..., bool] = is_change
) -> None:
    """Raise at a step, and at all later ones: a request, a link, or the removal of a directory."""
    steps = count()
    for owner, name in (
        (LocalFiles, "answer"), (LocalStore, "set"), (LocalStore, "delete"), (Path, "hardlink_to"),
        (MemoryStore, "set"), (MemoryStore, "set_sync"), (MemoryStore, "delete"),
        (MemoryStore, "delete_sync"), (MemoryStore, "delete_dir"), (removing, "_remove_hidden"),
    ):  # fmt: skip
        original = getattr(owner, name)

        def do(*given: Any, method: Any = original, **named: Any) -> Any:
            if is_step(*given) and next(steps) >= step:
                raise KilledError
            return method(*given, **named)

        patch.setattr(owner, name, do)
