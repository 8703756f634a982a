// Data, numbers for people, and elements: every text of a model is set as text, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const steps = data.steps;
const firstStep = data.inputs.length;
const firstOutput = firstStep + steps.length;
const nodeCount = firstOutput + data.outputs.length;
const hasTimes = data.times_us.length > 0;
const byId = (id) => document.getElementById(id);

const bytesText = (count) => {
  let size = count;
  for (const unit of ["B", "KiB", "MiB"]) {
    if (size < 1024) return `${unit === "B" ? size : size.toFixed(1)} ${unit}`;
    size /= 1024;
  }
  return `${size.toFixed(1)} GiB`;
};
const flopsText = (count) => {
  if (count === null) return "–";
  const power = Math.min(4, Math.max(0, Math.floor(Math.log10(count || 1) / 3)));
  return `${(count / 1000 ** power).toPrecision(3).replace(/\.0+$/, "")} ${["", "k", "M", "G", "T"][power]}`.trim();
};
const timeText = (us) => (us >= 1000 ? `${(us / 1000).toPrecision(3)} ms` : `${us.toPrecision(3)} µs`);
const shapeText = (dims) => (dims.length ? dims.join("×") : "scalar");
const countText = (count, name) => `${count.toLocaleString("en")} ${name}${count === 1 ? "" : "s"}`;
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

/** An element; of its properties `class` and those with "-" are attributes, functions listeners, `hue` its colour. */
const make = (tag, properties = {}, ...children) => {
  const element = tag.startsWith("svg:") ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4)) : document.createElement(tag);
  const isDrawing = tag.startsWith("svg:");
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name === "hue") element.style.setProperty("--hue", value);
    else if (name === "style") Object.assign(element.style, value);
    else if (isDrawing || name === "class" || name === "role" || name.includes("-")) element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
};
/** A text of the model, isolated so that its direction stays its own. */
const own = (text) => make("bdi", {}, text);

// One colour per engine, in the order of first use; copies and what is no step are grey.
const engines = [...new Set(steps.map((step) => engineOf(step)))];
function engineOf(step) {
  return step.kind === "execute" ? step.engine || "no engine named" : step.kind === "launch" ? "kernels" : "copies";
}
const GREY = "var(--c7)";
const hues = new Map(engines.filter((name) => name !== "copies").map((name, index) => [name, `var(--c${Math.min(index, 6)})`]));
const hueOf = (step) => hues.get(engineOf(step)) ?? GREY;

// What lies in a buffer before the first step.
const given = new Map();
for (const port of data.inputs) given.set(port.buffer, { kind: "input", name: port.name });
for (const weight of data.weights) given.set(weight.buffer, { kind: "weight", name: weight.name });
const outputs = new Map(data.outputs.map((port) => [port.buffer, port.name]));

const costs = {
  time: { label: "time", text: timeText, of: (index) => data.times_us[index] },
  flops: { label: "FLOPs", text: flopsText, of: (index) => steps[index].flops ?? 0 },
  bytes: { label: "bytes moved", text: bytesText, of: (index) => steps[index].read_bytes + steps[index].written_bytes },
};
if (!hasTimes) delete costs.time;

/** The name of a node and the line below it. */
const titleOf = (node) => {
  if (node < firstStep) return [data.inputs[node].name, portText(data.inputs[node])];
  if (node >= firstOutput) return [data.outputs[node - firstOutput].name, portText(data.outputs[node - firstOutput])];
  return [steps[node - firstStep].operations || steps[node - firstStep].kind, steps[node - firstStep].nodes];
};
const portText = (port) => `${port.dtype} ${shapeText(port.dims)}`;
const kindOf = (node) => (node < firstStep ? "input" : node >= firstOutput ? "output" : "step");
const idOf = (node) => `${kindOf(node)}-${node - (node < firstStep ? 0 : node >= firstOutput ? firstOutput : firstStep)}`;
const nodeOf = (id) => {
  const match = /^(input|step|output)-(\d+)$/.exec(id);
  if (!match) return null;
  const node = Number(match[2]) + { input: 0, step: firstStep, output: firstOutput }[match[1]];
  return node < nodeCount && idOf(node) === id ? node : null;
};
