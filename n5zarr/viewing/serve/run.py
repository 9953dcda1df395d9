"""``n5zarr.serve`` and ``n5zarr.view``: run the web application, and show its images."""

from __future__ import annotations

import asyncio
import errno
import html
import socket
import threading
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from ipaddress import ip_address
from typing import Any, cast, override
from urllib.parse import quote, urlencode

import uvicorn
import zarr
from starlette.applications import Starlette

from n5zarr.errors import option_error
from n5zarr.images.image import select_images
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.place import Backend, Location
from n5zarr.viewing.arguments import texts, whole_number
from n5zarr.viewing.neuroglancer import check_shown
from n5zarr.viewing.serve.app import make_app
from n5zarr.viewing.serve.guard import LOOPBACK, PatientProtocol, most_connections
from n5zarr.viewing.serve.pages import check_client

_BACKLOG = 1024
_THREADS = 32  # that compute, or wait for slow files and servers
_CLOSING = 2  # seconds for which a closing server still answers


def serve(
    location: Location | zarr.Array[Any] | zarr.Group,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    allow_hosts: Collection[str] = (),
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> Server:
    """Serve a container over HTTP as Zarr, OME-Zarr and N5, read-only.

    ``/zarr3/`` and ``/zarr2/`` have the keys of Zarr v3 and v2, ``/zarr/`` both, ``/ome/`` those of
    its images as OME-Zarr 0.5, ``/ome04/`` as 0.4, and ``/n5/`` the files themselves. While the
    server runs, any web page in a browser on this machine may read them.

    Parameters
    ----------
    location : path, URL, zarr store, array or group
        A container, a group or dataset in one, OME-Zarr, the XML of BigDataViewer or BigStitcher,
        or an object that :func:`n5zarr.open` returned. The server serves no local file outside the
        container, wherever links lead.
    host : str, optional
        Address to listen on; by default only programs on this machine can reach the server.
    port : int, optional
        Port to listen on; 0 means any free port.
    allow_hosts : collection of str, optional
        Further host names that requests may use, such as that of a proxy. By default the names of
        this machine, and any name if ``host`` is another address.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.

    Returns
    -------
    Server
        The running server; :meth:`Server.close` or the end of a ``with`` block stops it.

    Raises
    ------
    FileNotFoundError
        Nothing exists at this location.
    N5UnrepresentableError
        The host is not text, or the port is not valid (``kind="option"``).
    OSError
        The port is in use, or the host is not an address of this machine.

    Examples
    --------
    >>> import n5zarr, zarr
    >>> with n5zarr.serve(n5zarr.sample_path()) as server:
    ...     zarr.open_array(server.url + "zarr3/em/s2", mode="r").shape
    (10, 24, 32)
    """
    return _start(
        location, host, port, allow_hosts, storage_options=storage_options, backend=backend
    )


def _start(  # noqa: PLR0913 - the options of `serve` and `view`
    location: Location | zarr.Array[Any] | zarr.Group,
    host: str,
    port: int,
    allow_hosts: str | Collection[str],
    *,
    labels: Sequence[str] = (),
    storage_options: Mapping[str, object] | None,
    backend: Backend | None,
) -> Server:
    """Serve a location; see :func:`serve`, and :func:`view` for ``labels``."""
    if isinstance(location, zarr.Array | zarr.Group):
        location = location.store_path
    if not isinstance(host, str):
        raise option_error(f"host: expected an address such as '127.0.0.1', got {host!r}")
    whole_number("port", port, 0, 65535)
    names = texts("allow_hosts", allow_hosts)
    hosts = {*LOOPBACK, host or "localhost", *names} if _is_loopback(host) or names else None
    app = make_app(
        location, labels=labels, storage_options=storage_options, backend=backend, hosts=hosts
    )
    return Server(app, host, port)


class Server(AbstractContextManager["Server"]):
    """A running server, and a context manager that stops it.

    Parameters
    ----------
    app : Starlette
        The application.
    host, port : optional
        Address and port to listen on.

    Attributes
    ----------
    app : Starlette
        The application.
    port : int
        The port it listens on.
    url : str
        Its address, with a slash at the end.
    """

    def __init__(self, app: Starlette, host: str = "127.0.0.1", port: int = 0) -> None:
        self.app = app
        listening = _listen(host, port)
        self.port: int = listening.getsockname()[1]
        self.url = f"http://{_name_in_url(host)}:{self.port}/"
        self._uvicorn = _Uvicorn(
            uvicorn.Config(
                app,
                http=PatientProtocol,
                loop="asyncio",  # uvloop takes one connection after each round of answers
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=_BACKLOG,
                limit_concurrency=most_connections() + 1,  # refuses from this number on
                headers=[("X-Content-Type-Options", "nosniff")],  # data are no pages or scripts
                timeout_graceful_shutdown=_CLOSING + 1,
            )
        )
        self._thread = threading.Thread(
            target=self._uvicorn.run, args=([listening],), name=f"n5zarr {self.url}", daemon=True
        )
        self._thread.start()
        self._uvicorn.ready.wait()

    def __repr__(self) -> str:
        state = "" if self.is_running else ", closed"
        return f"<Server {self.url}{state}>"

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_running(self) -> bool:
        """Whether it has not been closed."""
        return self._thread.is_alive()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the server stops, or for some seconds."""
        self._thread.join(seconds)

    def close(self) -> None:
        """Stop the server; requests in progress get two seconds."""
        self._uvicorn.should_exit = True
        self._thread.join(_CLOSING + 2)  # computing threads may end later


class _Uvicorn(uvicorn.Server):
    """Run uvicorn's server, and set an event when it has started."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    @override
    def run(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            super().run(sockets)
        finally:
            self.ready.set()

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="n5zarr-serve")
        asyncio.get_running_loop().set_default_executor(executor)
        await super().startup(sockets)
        self.ready.set()

    @override
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().call_later(_CLOSING, self._give_up)
        await super().shutdown(sockets)

    def _give_up(self) -> None:
        """Close the connections of clients that do not receive their answers."""
        for connection in list(self.server_state.connections):
            cast("Any", connection).transport.abort()


def _name_in_url(host: str) -> str:
    """Return the host name of an address in a URL; use loopback for the wildcard address."""
    name = host.strip("[]")
    name = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(name, name)  # noqa: S104
    return f"[{name}]" if ":" in name else name


def _is_loopback(host: str) -> bool:
    """Whether an address, in any spelling, is reached from this machine only."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _listen(host: str, port: int) -> socket.socket:
    """Open a port; an error says why that is not possible."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), port), family=family, backlog=_BACKLOG)
    except OSError as err:
        reasons = {
            errno.EADDRINUSE: "a free port, got one in use; port 0 takes any",
            errno.EACCES: "a port that you may open, such as one above 1023; port 0 takes any",
            errno.EADDRNOTAVAIL: "an address of this machine, such as 127.0.0.1",
        }
        reason = reasons.get(err.errno or 0, f"an address to listen on, got {err.strerror or err}")
        raise OSError(err.errno, f"{host}:{port}: expected {reason}") from err


class NeuroglancerView(AbstractContextManager["NeuroglancerView"]):
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

    def __exit__(self, *_: object) -> None:
        self.close()


def view(  # noqa: PLR0913 - what is shown, and how it is served
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
        server = _start(
            location,
            host,
            port,
            allow_hosts,
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
