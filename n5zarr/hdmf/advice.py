"""Say what to do after an error of hdmf, which names neither the file nor a way out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from n5zarr.storage.secrets import named

_ADVICE = {
    "'NoneType' object has no attribute 'attrs'": "it is closed: read within `with`, or open again",
    "No group found": "nothing is there that N5 could read; check the path",
    "There are no values": "it is empty: write a session first, in mode 'w'",
    "No data_type found": "no NWB file, but other N5, or a part of a session: open its root, or "
    "read arrays with n5zarr.open",
    "Found bad link": "if this is a part of a session, open its root",
    "not a namespace": "it needs an extension whose specification the session does not hold: "
    "install its package, import it, such as `import ndx_name`, and open again",
    "'specifications' not found": "the stored specifications are gone: those of pynwb serve after "
    "`n5zarr attrs SESSION .specloc --remove`",
    "missing argument": "`n5zarr validate` finds damaged documents, which hdmf does not see",
    " length": "if columns differ in length, see in n5zarr's cookbook 'An NWB session with an "
    "incomplete row'",
    "read-only but mode": "web servers, archives and stores opened to read take no changes: read "
    "with mode='r', and write to a folder or an object store, such as s3://",
    "listing: the server": "hdmf reads all of a session: see in n5zarr's cookbook "
    "'An NWB session on a server'",
}


@contextmanager
def advising(where: object) -> Iterator[None]:
    """Add notes to errors of which something is known to do.

    Parameters
    ----------
    where : str, Path or zarr store
        The container, which the notes name.
    """
    try:
        yield
    except Exception as err:
        said = str(err.args[-1]) if err.args else ""
        for advice in (text for part, text in _ADVICE.items() if part in said):
            err.add_note(f"{named(str(where))}: {advice}")
        raise
