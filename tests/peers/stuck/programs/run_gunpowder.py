"""Copy an N5 dataset block by block with gunpowder's ZarrSource, Scan and ZarrWrite."""

from __future__ import annotations

import pickle
import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def read(folder: Path) -> dict[str, Any]:
    gp: Any = import_module("gunpowder")
    key = gp.ArrayKey("RAW")
    source = str(folder / "data.n5")
    pipeline = gp.ZarrSource(source, {key: "em/s0"})
    pipeline += gp.ZarrWrite({key: "out/raw"}, store=str(folder / "out.n5"))
    request = gp.BatchRequest()
    request.add(key, (120, 32, 20))
    pipeline += gp.Scan(request)
    with gp.build(pipeline):
        spec = pipeline.spec[key]
        whole = gp.BatchRequest({key: spec})
        pipeline.request_batch(whole)
    again = gp.ZarrSource(str(folder / "out.n5"), {key: "out/raw"})
    with gp.build(again):
        found, spec = again.request_batch(whole)[key].data, again.spec[key]
    return {"scale": tuple(spec.voxel_size), "offset": tuple(spec.roi.offset), "read": found}


if __name__ == "__main__":
    Path(sys.argv[3]).write_bytes(pickle.dumps({"read": read}[sys.argv[1]](Path(sys.argv[2]))))
