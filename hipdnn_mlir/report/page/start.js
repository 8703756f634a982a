// Put the page together.
const drawNumbers = () => {
  const weights = sum(data.weights.map((weight) => weight.bytes));
  const flops = sum(steps.map((step) => step.flops ?? 0));
  const kinds = (kind) => steps.filter((step) => step.kind === kind).length;
  drawNumberRows([
    ["Steps", String(steps.length), [["graph", kinds("execute")], ["kernel", kinds("launch")], ["cop", kinds("copy")]].filter(([, count]) => count).map(([name, count]) => (name === "cop" ? `${count} ${count === 1 ? "copy" : "copies"}` : countText(count, name))).join(", ")],
    hasTimes ? ["Time of all steps", timeText(sum(data.times_us)), flops ? rateText(flops, sum(data.times_us)) : ""] : null,
    ["FLOPs", flopsText(flops), "matmuls, convolutions, attention"],
    ["Weights", bytesText(weights), countText(data.weights.length, "tensor")],
    ["Arena", bytesText(arena.bytes), `${bytesText(arena.largest_live_bytes)} at the peak`],
    ["Bytes moved", bytesText(sum(steps.map((step) => step.read_bytes + step.written_bytes))), "read and written by all steps"],
  ]);
};

const markRow = (node) => {
  for (const row of byId("step-table").querySelectorAll("tr.on")) row.classList.remove("on");
  if (node !== null && kindOf(node) === "step") byId("step-table").querySelector(`tr[data-row="${node - firstStep}"]`)?.classList.add("on");
};
const onSelect = (node) => { markRow(node); markBlocks(node); };

const start = () => {
  const sizes = Object.entries(data.sizes).map(([name, size]) => `${name} = ${size}`).join(", ");
  byId("made").textContent = [`compiled for ${data.target}`, sizes && `shown at ${sizes}`].filter(Boolean).join(" · ");
  if (data.not_loaded) {
    byId("notice").hidden = false;
    byId("notice").append("This machine cannot run the program, so engines are those that it was compiled for, and the arena has no workspaces. ", own(data.not_loaded));
  }
  useTheme();
  drawNumbers();
  drawSteps();
  drawWeights();
  drawAbout();
  useMemory();
  useGraph();
  drawMeasures();
};
start();
