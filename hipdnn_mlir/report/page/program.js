// What the nodes of a program's graph are: inputs, steps, outputs.
const steps = data.steps;
const firstStep = data.inputs.length;
const firstOutput = firstStep + steps.length;
const hasTimes = data.times_us.length > 0;

// One colour per engine, in the order of first use; copies and what is no step are grey.
const engines = [...new Set(steps.map((step) => engineOf(step)))];
function engineOf(step) {
  return step.kind === "execute" ? step.engine || "no engine named" : step.kind === "launch" ? "kernels" : "copies";
}
const hues = new Map(engines.filter((name) => name !== "copies").map((name, index) => [name, `var(--c${Math.min(index, 6)})`]));
const hueOf = (step) => hues.get(engineOf(step)) ?? GREY;
const legend = () => [...hues, ...(engines.includes("copies") ? [["copies", GREY]] : [])];

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
if (!steps.some((step) => step.flops)) delete costs.flops;

/** The name of a node and the line below it. */
const titleOf = (node) => {
  if (node < firstStep) return [data.inputs[node].name, portText(data.inputs[node])];
  if (node >= firstOutput) return [data.outputs[node - firstOutput].name, portText(data.outputs[node - firstOutput])];
  return [steps[node - firstStep].operations || steps[node - firstStep].kind, steps[node - firstStep].nodes];
};
const portText = (port) => `${port.dtype} ${shapeText(port.dims)}`;
const kindOf = (node) => (node < firstStep ? "input" : node >= firstOutput ? "output" : "step");
const isPort = (node) => kindOf(node) !== "step";
const colourOf = (node) => (isPort(node) ? GREY : hueOf(steps[node - firstStep]));
const idOf = (node) => `${kindOf(node)}-${node - (node < firstStep ? 0 : node >= firstOutput ? firstOutput : firstStep)}`;
const nodeOf = (id) => {
  const match = /^(input|step|output)-(\d+)$/.exec(id);
  if (!match) return null;
  const node = Number(match[2]) + { input: 0, step: firstStep, output: firstOutput }[match[1]];
  return node < nodeCount && idOf(node) === id ? node : null;
};

const drawMeasures = () => {
  const choice = byId("measure");
  choice.append(...Object.entries(costs).map(([value, cost]) => make("option", { value }, cost.label)));
  const draw = () => {
    const values = steps.map((_, index) => costs[choice.value].of(index));
    const most = Math.max(...values, 1e-9);
    values.forEach((value, index) => {
      nodes[firstStep + index].lastChild.style.width = `${(value / most) * (2 * half.width - 5)}px`;
    });
  };
  choice.addEventListener("change", draw);
  draw();
};

/** What a search finds a node by. */
const textOf = (node) => {
  const step = steps[node - firstStep];
  const parts = [...titleOf(node), idOf(node)];
  if (step) parts.push(step.engine, step.module, data.plans[node - firstStep], ...step.operands.map((operand) => given.get(operand.buffer)?.name ?? outputs.get(operand.buffer) ?? ""));
  return parts.join("\n");
};
