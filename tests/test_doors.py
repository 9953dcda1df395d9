"""What rooms add is what the core asks for: mypy compares the types on both sides of each door."""

from __future__ import annotations

import n5zarr
from n5zarr.arrays import creating, described, many_boxes, pipeline
from n5zarr.bigdataviewer.finding import find_view
from n5zarr.bigdataviewer.images import find_in_bdv
from n5zarr.bigdataviewer.opening import open_described
from n5zarr.bigdataviewer.project import locate as bigdataviewer_locate
from n5zarr.bigdataviewer.resave import new_project
from n5zarr.bigdataviewer.validate import find_check as bigdataviewer_find_check
from n5zarr.container import axes
from n5zarr.fast.array import N5Array
from n5zarr.fast.cells import Cells
from n5zarr.fast.default import make_default
from n5zarr.fast.many_boxes import read_cells, read_many
from n5zarr.fast.many_files import read_ends, stamps
from n5zarr.fast.pipeline import N5CodecPipeline
from n5zarr.fast.whole_blocks import read_whole
from n5zarr.images import find, source
from n5zarr.ome_zarr.from_ome import from_ome
from n5zarr.ome_zarr.location import locate as ome_zarr_locate
from n5zarr.ome_zarr.pyramid import find_image
from n5zarr.ome_zarr.validate import find_check as ome_zarr_find_check
from n5zarr.ome_zarr.versions import in_version
from n5zarr.other_sources.hdf5 import hdf5_tree
from n5zarr.other_sources.tiff import tiff_tree
from n5zarr.paintera.convert import as_paintera
from n5zarr.paintera.copying import MultisetCopy
from n5zarr.paintera.label_multisets import labels_to_write, make_multisets
from n5zarr.paintera.pyramid import MultisetPass, describe_labels
from n5zarr.rooms import ADDED, Door
from n5zarr.servers.opening import open_url
from n5zarr.servers.served import of_objects, served
from n5zarr.storage import opening, services
from n5zarr.store.locating import Locate
from n5zarr.tools import rewriting
from n5zarr.tools.convert import checks, convert, copying, from_zarr
from n5zarr.tools.convert.places import FileTree
from n5zarr.tools.evidence.report import Report
from n5zarr.tools.jobs import incomplete, reports
from n5zarr.tools.pyramid import build, methods, n5_image, plan, work
from n5zarr.tools.validate import of_rooms
from n5zarr.tools.validate.files import check_group_files
from n5zarr.viewing.picture_html import make_html
from n5zarr.xarray import documents


def test_rooms_add_what_the_core_asks_for() -> None:
    bdv: Door[Locate] = Door("location", "bdv")
    ome_zarr: Door[Locate] = Door("location", "ome-zarr")
    hdf5: Door[FileTree] = Door("source file", "hdf5")
    tiff: Door[FileTree] = Door("source file", "tiff")
    found = [
        bdv.leads_to(bigdataviewer_locate),
        ome_zarr.leads_to(ome_zarr_locate),
        hdf5.leads_to(hdf5_tree),
        tiff.leads_to(tiff_tree),
        axes._FIND_VIEW.leads_to(find_view),
        described._MAKE_HTML.leads_to(make_html),
        find._FIND_VIEWS.leads_to(find_in_bdv),
        documents._OPEN_DESCRIBED.leads_to(open_described),
        from_zarr._FROM_OME.leads_to(from_ome),
        convert._IN_VERSION.leads_to(in_version),
        convert._NEW_PROJECT.leads_to(new_project),
        convert._AS_PAINTERA.leads_to(as_paintera),
        build._FIND_OME.leads_to(find_image),
        checks._CHECK_FILES.leads_to(check_group_files),
        reports._REPORT.leads_to(Report),
        of_rooms._CHECK_PROJECT.leads_to(bigdataviewer_find_check),
        of_rooms._CHECK_OME.leads_to(ome_zarr_find_check),
        creating._LABELS_TO_WRITE.leads_to(labels_to_write),
        creating._MAKE_MULTISETS.leads_to(make_multisets),
        copying._MULTISET_COPY.leads_to(MultisetCopy),
        plan._MULTISET_PASS.leads_to(MultisetPass),
        n5_image._DESCRIBE_LABELS.leads_to(describe_labels),
        opening.OPEN_URL.leads_to(open_url),
        opening._SERVED.leads_to(served),
        services._OF_OBJECTS.leads_to(of_objects),
        described.FAST_ARRAY.leads_to(N5Array),
        pipeline._PIPELINE.leads_to(N5CodecPipeline),
        n5zarr._MAKE_DEFAULT.leads_to(make_default),
        many_boxes._READ_MANY.leads_to(read_many),
        methods._CELLS.leads_to(Cells),
        work._READ_CELLS.leads_to(read_cells),
        rewriting._READ_WHOLE.leads_to(read_whole),
        source._READ_ENDS.leads_to(read_ends),
        incomplete._STAMPS.leads_to(stamps),
    ]
    assert all(found)
    assert len(found) == sum(map(len, ADDED.values()))
