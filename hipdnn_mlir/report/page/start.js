// Put the page together.
const drawNumbers = () => {
  const weights = sum(data.weights.map((weight) => weight.bytes));
  const flops = sum(steps.map((step) => step.flops ?? 0));
  const kinds = (kind) => steps.filter((step) => step.kind === kind).length;
  const rows = [
    ["Steps", String(steps.length), [["graph", kinds("execute")], ["kernel", kinds("launch")], ["cop", kinds("copy")]].filter(([, count]) => count).map(([name, count]) => (name === "cop" ? `${count} ${count === 1 ? "copy" : "copies"}` : countText(count, name))).join(", ")],
    hasTimes ? ["Time of all steps", timeText(sum(data.times_us)), flops ? `${(flops / sum(data.times_us) / 1000).toPrecision(3)} GFLOP/s` : ""] : null,
    ["FLOPs", flopsText(flops), "matmuls, convolutions, attention"],
    ["Weights", bytesText(weights), countText(data.weights.length, "tensor")],
    ["Arena", bytesText(arena.bytes), `${bytesText(arena.largest_live_bytes)} at the peak`],
    ["Bytes moved", bytesText(sum(steps.map((step) => step.read_bytes + step.written_bytes))), "read and written by all steps"],
  ];
  byId("numbers").append(...rows.filter(Boolean).map(([name, value, more]) => make("div", {}, make("dt", {}, name), make("dd", {}, value, make("small", {}, more)))));
};

const useTheme = () => {
  const button = byId("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const apply = (theme) => {
    document.documentElement.dataset.theme = theme;
    button.textContent = theme === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Change to the ${theme === "dark" ? "light" : "dark"} theme`);
    if (nodes.length) drawOverview();
  };
  let isChosen = false;
  dark.addEventListener("change", () => isChosen || apply(dark.matches ? "dark" : "light"));
  button.addEventListener("click", () => { isChosen = true; apply(document.documentElement.dataset.theme === "dark" ? "light" : "dark"); });
  apply(dark.matches ? "dark" : "light");
};

const markRow = (node) => {
  for (const row of byId("step-table").querySelectorAll("tr.on")) row.classList.remove("on");
  if (node !== null && kindOf(node) === "step") byId("step-table").querySelector(`tr[data-row="${node - firstStep}"]`)?.classList.add("on");
};

const openHash = () => {
  const hash = location.hash.slice(1);
  const node = nodeOf(hash);
  if (node !== null) select(node, { scroll: "instant" });
  if (hash.startsWith("find=")) {
    byId("search").value = decodeURIComponent(hash.slice(5));
    search(byId("search").value);
  }
};

const start = () => {
  const sizes = Object.entries(data.sizes).map(([name, size]) => `${name} = ${size}`).join(", ");
  byId("made").textContent = [`compiled for ${data.target}`, sizes && `shown at ${sizes}`].filter(Boolean).join(" · ");
  if (data.not_loaded) {
    byId("notice").hidden = false;
    byId("notice").append("This machine cannot run the program, so engines are those that it was compiled for, and the arena has no workspaces. ", own(data.not_loaded));
  }
  useTheme();
  drawNumbers();
  drawGraph();
  drawSteps();
  drawWeights();
  drawAbout();
  useMemory();
  showDetail(null);
  drag();
  useOverview();
  useSearch();
  byId("zoom-in").addEventListener("click", () => zoomTo(zoom * 1.25));
  byId("zoom-out").addEventListener("click", () => zoomTo(zoom / 1.25));
  byId("zoom-fit").addEventListener("click", fitAll);
  // A graph that is much wider than the box is opened at a size that can be read.
  zoomTo(Math.max(fitWidth(), Math.min(0.7, 1)));
  view.scrollTo({ left: data.layout.nodes.length ? data.layout.nodes[0][0] * zoom - view.clientWidth / 2 : 0, top: 0 });
  new ResizeObserver(drawOverview).observe(view);
  addEventListener("hashchange", openHash);
  openHash();
};
start();
