"""``n5zarr.view``: show images in Neuroglancer, in a browser or in a notebook."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote, urlencode

from n5zarr.images.image import select_images
from n5zarr.storage.asking_once import asking_once
from n5zarr.viewing.arguments import texts, whole_number
from n5zarr.viewing.neuroglancer import check_shown
from n5zarr.viewing.serve.client import check_client
from n5zarr.viewing.serve.run import start_server

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import zarr

    from n5zarr.storage.place import Backend, Location
    from n5zarr.viewing.serve.run import Server

__all__ = ["NeuroglancerView", "view"]


class NeuroglancerView:
    """Show images in Neuroglancer until the view is closed, or the process ends.

    A notebook displays it. It is also a context manager.

    Parameters
    ----------
    server : Server
        The server of the images; its pages describe the container.
    url : str
        Address to open in a browser.
    height : int
        Height in a notebook, in pixels.
    """

    def __init__(self, server: Server, url: str, height: int) -> None:
        self.server = server
        self._height = height
        self.url = url

    def __repr__(self) -> str:
        return f"<NeuroglancerView {self.url}>"

    def _repr_html_(self) -> str:
        return (
            f'<iframe src="{html.escape(self.url)}" title="Neuroglancer" width="100%" '
            f'height="{self._height}" style="border: 0" allowfullscreen></iframe>'
        )

    def close(self) -> None:
        """Stop the server; browsers keep what they show."""
        self.server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def view(  # noqa: PLR0913 - as the command
    location: Location | zarr.Array[Any] | zarr.Group,
    *,
    dataset: str | Sequence[str] = (),
    labels: str | Sequence[str] = (),
    host: str = "127.0.0.1",
    port: int = 0,
    allow_hosts: str | Collection[str] = (),
    height: int = 600,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> NeuroglancerView:
    """Show the images of a container in Neuroglancer, in a notebook or in a browser.

    This machine serves the viewer, which needs no internet. Axes, units, levels, colours and
    contrast come from the container; if it has no contrast limits, they come from the data.

    Parameters
    ----------
    location : path, URL, zarr store, array or group
        A container, a group or dataset in one, OME-Zarr, the XML of BigDataViewer or BigStitcher,
        or an object that :func:`n5zarr.open` returned.
    dataset : str or sequence of str, optional
        Paths of images to show, of one of their levels, or of a group of images, below the
        location. By default the first images and the first labels are visible, and the others are
        in the list of layers.
    labels : str or sequence of str, optional
        Path patterns of images that are labels, in addition to those that are marked as labels.
    host, port : optional
        Address and port of the server: by default only for this machine, on any free port.
    allow_hosts : str or collection of str, optional
        Further host names that browsers may use for the server, such as that of a proxy.
    height : int, optional
        Height in a notebook, in pixels.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.

    Returns
    -------
    NeuroglancerView
        Displays itself in a notebook; has ``url``, for a browser, and ``close()``.

    Raises
    ------
    FileNotFoundError
        Nothing exists at this location.
    N5UnrepresentableError
        There is no image, or an argument is invalid (``kind="option"``); no image has such a path
        (``"not-found"``); or Neuroglancer supports the data type of no image (``"data-type"``).

    Examples
    --------
    >>> import n5zarr
    >>> with n5zarr.view(n5zarr.sample_path(), dataset="em") as shown:
    ...     print(shown.url)
    http://127.0.0.1:.../view?dataset=em
    """
    check_client()
    datasets, height = texts("dataset", dataset), whole_number("height", height, 1)
    with asking_once():
        server = start_server(
            location,
            host,
            port,
            allow_hosts=allow_hosts,
            labels=texts("labels", labels),
            storage_options=storage_options,
            backend=backend,
        )
        try:
            served = server.app.state.served
            check_shown(select_images(served.images().with_elements(), datasets), str(served))
        except BaseException:
            server.close()
            raise
    query = urlencode({"dataset": datasets}, doseq=True, safe="/", quote_via=quote)
    return NeuroglancerView(server, f"{server.url}view{'?' if query else ''}{query}", height)
