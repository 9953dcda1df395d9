"""``n5zarr.view``: show a container in Neuroglancer, in the browser or in a notebook."""

from __future__ import annotations

import html
import threading
import time
from typing import TYPE_CHECKING, Self
from urllib.parse import urlencode

import uvicorn
import zarr
from zarr.storage import StorePath

from n5zarr.viewing.serve.app import make_app
from n5zarr.viewing.serve.client import client_routes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from zarr.types import AnyArray
    from n5zarr.storage.place import Location

__all__ = ["View", "view"]


class View:
    """A container in Neuroglancer, served until it is closed or the process ends.

    Notebooks show it inline.
    """

    def __init__(self, server: uvicorn.Server, url: str, height: int) -> None:
        self._server = server
        self.url = url
        self._height = height

    def __repr__(self) -> str:
        return f"<View {self.url}>"

    def _repr_html_(self) -> str:
        return (
            f'<iframe src="{html.escape(self.url)}" width="100%" height="{self._height}" '
            'style="border:0" allowfullscreen></iframe>'
        )

    def close(self) -> None:
        self._server.should_exit = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def view(
    location,
    *,
    dataset: str | Sequence[str] = (),
    labels: str | Sequence[str] = (),
    host: str = "127.0.0.1",
    port: int = 0,
    height: int = 600,
    storage_options: Mapping[str, object] | None = None,
) -> View:
    if isinstance(location, zarr.Array | zarr.Group):
        location = location.store_path
    datasets = [dataset] if isinstance(dataset, str) else dataset
    patterns = [labels] if isinstance(labels, str) else labels
    app = make_app(location, labels=patterns, storage_options=storage_options)
    server = uvicorn.Server(uvicorn.Config(app, host=host, port=port, log_level="warning"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    query = urlencode([("dataset", each) for each in datasets])
    return View(server, f"http://{host}:{port}/view{'?' if query else ''}{query}", height)
