"""Tests of servers close the connections of fsspec's web client, which nothing else does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from n5zarr._zarr import sync

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _closed_sessions(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    http: Any = pytest.importorskip("fsspec.implementations.http").HTTPFileSystem
    made: list[Any] = []
    set_session = http.set_session

    async def noting(self: Any) -> Any:
        made.append(await set_session(self))
        return made[-1]

    monkeypatch.setattr(http, "set_session", noting)
    yield
    for session in made:
        sync(session.close())
    http.clear_instance_cache()
