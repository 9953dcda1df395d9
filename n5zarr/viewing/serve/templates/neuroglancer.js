// This build would ask a Python server for its state, and say that there is none. Here, the state is
// in the URL. A line says how much is loaded, as the bars in Neuroglancer's names of layers are
// thin, or why nothing is drawn.
{
window.EventSource = class { constructor() { setTimeout(() => this.onopen()) } close() {} };
const line = document.documentElement.appendChild(document.createElement("div"));
line.id = "loading";
line.role = "status";
line.style = "position: fixed; right: 8px; bottom: 8px; z-index: 99; padding: 4px 8px; "
  + "font: 14px sans-serif; color: white; background: #000c; pointer-events: none";
const canDraw = document.createElement("canvas").getContext("webgl2") !== null;
const show = () => {
  if (!canDraw) {
    line.textContent = "Neuroglancer needs WebGL 2, which this browser does not draw. Turn on hardware "
      + "acceleration in its settings, or use another browser. n5zarr thumbnail makes pictures without it.";
    line.style.inset = "30% 20% auto";
    line.style.font = "20px sans-serif";
    return;
  }
  const viewer = window.viewer;
  const shown = (viewer?.layerManager.managedLayers ?? []).filter((each) => each.visible);
  const layers = shown.flatMap((each) => each.layer?.renderLayers ?? []);
  const infos = layers.flatMap((each) => each.layerChunkProgressInfo ?? []);
  const needed = infos.reduce((n, each) => n + each.numVisibleChunksNeeded, 0);
  const loaded = infos.reduce((n, each) => n + each.numVisibleChunksAvailable, 0);
  line.textContent = viewer === undefined ? "Neuroglancer starts"
    : needed ? `${loaded} of ${needed} blocks loaded` : "Neuroglancer reads metadata";
  const sources = shown.flatMap((each) => each.layer?.dataSources ?? []);
  const isBroken = sources.some((each) => each.loadState?.error);  // which Neuroglancer shows
  line.hidden = isBroken ? loaded === needed : viewer?.isReady() ?? false;
  setTimeout(show, 200);
};
show();
}
