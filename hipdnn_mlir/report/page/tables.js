// Tables of a program: its steps, weights, inputs and outputs.
const drawSteps = () => {
  const rows = steps.map((step, index) => ({ ...step, index, time: data.times_us[index], moved: step.read_bytes + step.written_bytes }));
  const cost = Object.values(costs)[0];
  const most = Math.max(...rows.map((row) => cost.of(row.index)), 1e-9);
  const total = sum(rows.map((row) => cost.of(row.index)));
  drawTable(byId("step-table"), rows, [
    { title: "#", class: "n", value: (row) => row.index, cell: (row) => stepLink(row.index, String(row.index)) },
    { title: "Operations", class: "title", value: (row) => row.operations, cell: (row) => [make("i", { class: "dot", hue: hueOf(row) }), shortened(row.operations || row.kind)] },
    { title: "ONNX nodes", class: "names wide", value: (row) => row.nodes, cell: (row) => shortened(row.nodes.replaceAll("+", ", ")) },
    { title: "Engine", class: "engine wide", value: (row) => engineOf(row), cell: (row) => own(engineOf(row)) },
    { title: "Read", class: "n wide", value: (row) => row.read_bytes, cell: (row) => bytesText(row.read_bytes) },
    { title: "Written", class: "n wide", value: (row) => row.written_bytes, cell: (row) => bytesText(row.written_bytes) },
    { title: "FLOPs", class: "n", value: (row) => row.flops ?? -1, cell: (row) => flopsText(row.flops) },
    ...(hasTimes ? [{ title: "Time", class: "n", value: (row) => row.time, cell: (row) => timeText(row.time) }] : []),
    { title: `Relative ${cost.label}`, class: "share", hue: (row) => hueOf(row), cell: (row) => bar(cost.of(row.index) / most) },
  ]);
  byId("steps-text").textContent = `${countText(steps.length, "step")} in the order of execution. FLOPs are those of convolutions, matmuls and attention, 2 for each multiply-add; bytes are those of the tensors that a step reads and writes. ${total ? `Bars show the ${cost.label} of a step, relative to the largest.` : ""}`;
};

const drawWeights = () => {
  const most = Math.max(...data.weights.map((weight) => weight.bytes), 1);
  const total = sum(data.weights.map((weight) => weight.bytes));
  const unread = data.weights.filter((weight) => !weight.steps.length).length;
  byId("weights-text").textContent = `${countText(data.weights.length, "tensor")}, ${bytesText(total)}, as the program reads them: folded, and in the layout that its engines want.${unread ? ` ${countText(unread, "tensor")} no step reads.` : ""}`;
  drawTable(byId("weight-table"), data.weights, [
    { title: "Name", class: "title", value: (row) => row.name, cell: (row) => [shortened(row.name), row.is_computed ? make("span", { class: "muted" }, " computed from dynamic dimensions") : ""] },
    { title: "Type", class: "wide", value: (row) => row.dtype, cell: (row) => row.dtype },
    { title: "Shape", class: "n wide", value: (row) => row.bytes, cell: (row) => shapeText(row.dims) },
    { title: "Bytes", class: "n", value: (row) => row.bytes, cell: (row) => bytesText(row.bytes) },
    { title: "Size", class: "share wide", cell: (row) => bar(row.bytes / most) },
    { title: "Read by step", class: "n", value: (row) => row.steps[0] ?? -1, cell: (row) => (row.steps.length ? stepLinks(row.steps) : "–") },
  ]);
};

const drawAbout = () => {
  const ports = [...data.inputs.map((port) => ({ ...port, kind: "input" })), ...data.outputs.map((port) => ({ ...port, kind: "output" }))];
  drawTable(byId("port-table"), ports, [
    { title: "Name", class: "title", cell: (row) => shortened(row.name) }, { title: "Kind", cell: (row) => row.kind }, { title: "Type", cell: (row) => row.dtype },
    { title: "Shape", class: "n", cell: (row) => own(shapeText(row.stated)) },
  ]);
  const sizes = Object.entries(data.sizes).map(([name, size]) => `${name} = ${size}`).join(", ");
  const rows = [["Target", data.target], ["Shown at", sizes], ["SHA-256 of the model", data.digest], ...Object.entries(data.producer).map(([name, version]) => [name, version])];
  byId("facts").append(...rows.filter(([, value]) => value).flatMap(([name, value]) => [make("dt", {}, own(name)), make("dd", {}, own(value))]));
};
