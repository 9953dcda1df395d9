"""URL pipelines as zarr-python's pull request 4192 describes them, to test the adapter of ``n5:``.

The modules of the proposal that an adapter imports or gets are here with their names and
parameters; of the schemes that zarr itself is to have, ``file:``, ``memory:``, ``zip:``, ``zarr2:``
and ``zarr3:``, what the description says. All other URLs are fsspec's. An adapter is found by its
entry point, as an installed package has it.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any
from urllib.parse import unquote

import pytest
import zarr
from zarr.abc.store import Store
from zarr.storage import FsspecStore, LocalStore, ManagedMemoryStore, StorePath, ZipStore

from n5zarr._zarr import sync

GROUP = "zarr.url_adapters"


@dataclass(frozen=True)
class PipelineSegment:
    scheme: str
    body: str
    query: str | None
    raw: str

    @classmethod
    def of(cls, text: str) -> PipelineSegment:
        before, mark, query = text.partition("?")
        scheme, _, body = before.partition(":")
        return cls(scheme.lower(), body, query if mark else None, text)


@dataclass(frozen=True)
class AdapterResolution:
    store: Store
    path: str = ""
    zarr_format: Any = None


@dataclass(frozen=True)
class PipelineContext:
    preceding: tuple[PipelineSegment, ...]
    mode: Any
    storage_options: dict[str, Any] | None

    @property
    def read_only(self) -> bool:
        return bool(self.mode == "r")

    @property
    def preceding_url(self) -> str:
        return "|".join(segment.raw for segment in self.preceding)

    async def resolve_preceding(self, **changed: Any) -> AdapterResolution:
        if not self.preceding:
            raise ValueError("this adapter segment is at the pipeline root")
        return await resolve(
            self.preceding,
            mode=changed.get("mode", self.mode),
            storage_options=changed.get("storage_options", self.storage_options),
        )


class URLPipelineAdapter(ABC):
    @classmethod
    @abstractmethod
    async def open_pipeline_segment(
        cls, segment: PipelineSegment, context: PipelineContext
    ) -> AdapterResolution: ...


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the adapter be loaded anew, with the classes of the proposal where it looks for them."""
    module = ModuleType("zarr.abc.url_pipeline")
    for each in (PipelineSegment, AdapterResolution, PipelineContext, URLPipelineAdapter):
        setattr(module, each.__name__, each)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.delitem(sys.modules, "n5zarr.store.url_adapter", raising=False)


def open_url(url: str, *, mode: Any = "a", storage_options: Any = None, **more: Any) -> Any:
    """Open a node as ``zarr.open(url, ...)`` is to do: adapters run on zarr's event loop."""
    segments = tuple(map(PipelineSegment.of, url.split("|")))
    found = sync(resolve(segments, mode=mode, storage_options=storage_options))
    path = "/".join(filter(None, (found.path, more.pop("path", ""))))
    where = StorePath(found.store, path)
    return zarr.open(where, mode=mode, zarr_format=found.zarr_format, **more)


async def resolve(
    segments: tuple[PipelineSegment, ...], *, mode: Any, storage_options: Any
) -> AdapterResolution:
    *preceding, last = segments
    if not preceding:
        return AdapterResolution(await _root(last, mode, storage_options))
    context = PipelineContext(tuple(preceding), mode, storage_options)
    match last.scheme:
        case "zarr2" | "zarr3":
            left = await context.resolve_preceding()
            path = "/".join(filter(None, (left.path, last.body)))
            found = replace(left, path=path, zarr_format=int(last.scheme[-1]))
        case "zip":
            assert [each.scheme for each in preceding] == ["file"], "only local zip files here"
            store = await ZipStore.open(_file(preceding[0]), mode="r", read_only=True)
            found = AdapterResolution(store, last.body.strip("/"))
        case scheme:
            (adapter,) = entry_points(group=GROUP, name=scheme)
            found = await adapter.load().open_pipeline_segment(last, context)
    return _as_read_only(found) if mode == "r" and not found.store.read_only else found


def _as_read_only(found: AdapterResolution) -> AdapterResolution:
    return replace(found, store=found.store.with_read_only(read_only=True))


async def _root(segment: PipelineSegment, mode: Any, storage_options: Any) -> Store:
    is_read_only = mode == "r"
    if segment.scheme not in ("file", "memory"):
        return FsspecStore.from_url(
            segment.raw, storage_options=storage_options, read_only=is_read_only
        )
    if storage_options:
        raise TypeError("'storage_options' was provided but unused")
    if segment.scheme == "memory":
        name, _, path = segment.body.strip("/").partition("/")
        return ManagedMemoryStore(name=name, path=path, read_only=is_read_only)
    return await LocalStore.open(_file(segment), mode=mode, read_only=is_read_only)


def _file(segment: PipelineSegment) -> str:
    path = unquote(segment.body.removeprefix("//"))
    assert path.startswith("/"), "'file:' pipeline roots must carry an absolute path"
    return path
