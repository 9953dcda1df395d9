"""Errors that users of pynwb meet name a way out; nwbinspector and pynwb check sessions in N5."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import nwbinspector
import pynwb
import pytest
import zarr
from hdmf.build import ConstructError
from hdmf_zarr import NWBZarrIO
from typer.testing import CliRunner

import n5zarr
from n5zarr import N5Store
from n5zarr.cli.app import app
from n5zarr.hdmf import NWBN5IO
from tests.hdmf.sessions import new, series
from tests.remote import servers

pytestmark = [
    pytest.mark.filterwarnings("ignore:Consolidated metadata:zarr.errors.ZarrUserWarning"),
    pytest.mark.filterwarnings("ignore:No cached namespaces found:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*omitted from the listing:n5zarr.errors.N5Warning"),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "a.n5"
    file = new(series("raw", np.arange(7)))
    table = pynwb.core.DynamicTable(name="mixed", description="d", id=[4, 2])
    table.add_column("amount", "a number", data=np.array([3, 5], "uint32"))
    file.add_scratch(table)
    with NWBN5IO(path, mode="w") as io:
        io.write(file)
    return path


def read(path: object, mode: str = "r") -> Any:
    with NWBN5IO(path, mode=mode) as io:
        return io.read()


def after(change: Callable[[Path], object]) -> Callable[[Path], object]:
    def act(root: Path) -> None:
        change(root)
        read(root)

    return act


def _of_an_extension(root: Path) -> None:
    document = root / "acquisition/raw/attributes.json"
    document.write_text(json.dumps(json.loads(document.read_text()) | {"namespace": "ndx-lab"}))


def _nowhere(root: Path) -> None:
    (root / "new").mkdir()
    read(root / "new")


def _not_nwb(root: Path) -> None:
    zarr.create_group(N5Store(root / "new.n5")).create_group("inner")
    read(root / "new.n5")


def _closed(root: Path) -> None:
    with NWBN5IO(root, mode="r") as io:
        pass
    io.read()


def _row(root: Path) -> None:
    with NWBN5IO(root, mode="r+") as io:
        io.read().scratch["mixed"].add_row(amount="many")


def _append(root: Path) -> None:
    read(root).acquisition["raw"].data.append([1])


def _write(root: Path) -> None:
    with NWBN5IO(root, mode="r") as io:
        io.write(io.read())


def _on_the_web(root: Path, mode: str) -> None:
    with servers.static(root.parent) as url:
        read(f"{url}/a.n5", mode)


# what is done to a session, what happens, and what the error or its notes say to do
MISTAKES: dict[str, tuple[Callable[[Path], object], type[Exception], str]] = {
    "missing": (lambda root: read(root / "none.n5"), FileNotFoundError, "none.n5 does not exist"),
    "empty folder": (_nowhere, FileNotFoundError, "new: nothing is there that N5 could read"),
    "written, and read": (lambda root: read(root / "new.n5", "w"), ValueError,
        "it is empty: write a session first"),
    "other N5": (_not_nwb, ValueError, "read arrays with n5zarr.open"),
    "a part": (lambda root: read(root / "acquisition"), ValueError, "open its root"),
    "mode": (lambda root: read(root, "rw"), n5zarr.N5Error, "mode: expected one of ('r', "),
    "written in r": (_write, ValueError, "mode='r+' opens it to write"),
    "appended in r": (_append, ValueError, "mode='r+' opens it to write"),
    "on the web": (lambda root: _on_the_web(root, "r+"), ValueError, "read with mode='r', and"),
    "closed": (_closed, AttributeError, "a.n5: it is closed: read within `with`"),
    "no specifications": (after(lambda root: shutil.rmtree(root / "specifications")), KeyError,
        "`n5zarr attrs SESSION .specloc --remove`"),
    "no extension": (after(_of_an_extension), KeyError, "import it, such as"),
    "damaged": (after(lambda root: (root / "identifier/attributes.json").write_text("{")),
        ConstructError, "`n5zarr validate` finds damaged documents"),
    "row": (_row, ValueError, "'mixed': nothing of this row is kept, as column 'amount' refused"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_the_error_names_a_way_out(name: str, whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, root := tmp_path / "a.n5")
    act, error, advice = MISTAKES[name]
    with pytest.raises(error) as raised:
        act(root)
    notes: list[str] = getattr(raised.value, "__notes__", [])
    assert advice in "\n".join([str(raised.value), *notes])
    assert len(notes) <= 1


def test_without_specifications_those_of_pynwb_serve(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, root := tmp_path / "a.n5")
    shutil.rmtree(root / "specifications")
    assert CliRunner().invoke(app, ["attrs", str(root), ".specloc", "--remove"]).exit_code == 0
    assert read(root).identifier == "i"


def test_checks_find_in_n5_what_they_find_in_zarr(tmp_path: Path) -> None:
    found = []
    for io, name in ((NWBN5IO, "a.n5"), (NWBZarrIO, "a.nwb.zarr")):
        file = new(
            series("wide", np.arange(77).reshape(7, 11)),
            pynwb.TimeSeries(
                name="regular", data=np.arange(5), timestamps=np.arange(5.0), unit="V"
            ),
        )
        file.add_trial(start_time=2.0, stop_time=1.0)
        with io(str(tmp_path / name), mode="w") as writer:
            writer.write(file)
        with io(str(tmp_path / name), mode="r") as reader:
            valid = [str(each) for each in pynwb.validate(io=reader)]
            inspected = nwbinspector.inspect_nwbfile_object(nwbfile_object=reader.read())
            said = Counter((m.check_function_name, m.object_name, m.importance) for m in inspected)
        found.append((valid, {k: n for k, n in said.items() if k[0] != "check_file_extension"}))
    assert found[0] == found[1]
    assert len(found[0][1]) > 3
