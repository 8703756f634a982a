// What is known of the selected node.
const stepLink = (index, text = `step ${index}`) =>
  make("button", { type: "button", class: "linkish", title: titleOf(firstStep + index).join("\n").slice(0, 600), click: () => select(firstStep + index, { scroll: "auto" }) }, text);
const stepLinks = (indices) => indices.flatMap((index, place) => (place ? [", ", stepLink(index, String(index))] : [stepLink(index, String(index))]));

const detailOf = (node) => (node === null ? overall() : isPort(node) ? ofPort(node) : ofStep(node - firstStep));

const overall = () => {
  const rows = [...hues.keys(), ...(engines.includes("copies") ? ["copies"] : [])].map((name) => {
    const mine = steps.flatMap((step, index) => (engineOf(step) === name ? [index] : []));
    return [name, mine];
  });
  const longest = [...steps.keys()].sort((a, b) => Object.values(costs)[0].of(b) - Object.values(costs)[0].of(a)).slice(0, 8);
  const cost = Object.values(costs)[0];
  return [
    make("p", { class: "head" }, "Select a node"),
    make("p", { class: "muted small" }, "A box is a step of the program: a hipDNN graph, a kernel or a copy. Dashed boxes are inputs and outputs. Weights are in the steps that read them."),
    make("h3", {}, "Who runs the steps"),
    pairs(rows.map(([name, mine]) => [own(name), countText(mine.length, "step")])),
    make("h3", {}, `Steps with the most ${cost.label}`),
    pairs(longest.filter((index) => cost.of(index) > 0).map((index) => [stepLink(index), [own(steps[index].operations.slice(0, 80)), ` · ${cost.text(cost.of(index))}`]])),
  ];
};

const ofPort = (node) => {
  const port = kindOf(node) === "input" ? data.inputs[node] : data.outputs[node - firstOutput];
  return [
    make("p", { class: "head clamp" }, own(port.name)),
    pairs([
      ["Kind", kindOf(node)], ["Type", port.dtype], ["Shape", shapeText(port.dims)],
      ["As stated", port.stated.join() === port.dims.join() ? "" : own(shapeText(port.stated))],
      [kindOf(node) === "input" ? "Read by" : "Written by", port.steps.length ? ["step ", ...stepLinks(port.steps)] : "no step"],
    ]),
  ];
};

const ofStep = (index) => {
  const step = steps[index];
  const intensity = step.flops ? digitsText(step.flops / (step.read_bytes + step.written_bytes)) : "";
  const time = hasTimes ? data.times_us[index] : null;
  const scratch = data.arena.blocks.find((block) => block.is_workspace && block.step === index);
  return [
    make("p", { class: "head clamp", hue: hueOf(step) }, make("i"), own(step.operations || step.kind)),
    pairs([
      ["Step", `${index} of ${steps.length}, ${{ execute: "a hipDNN graph", launch: "a kernel", copy: "a copy" }[step.kind]}`],
      [step.kind === "launch" ? "Function" : "Engine", step.engine ? own(step.engine) : ""],
      ["Plan", data.plans[index] ? own(data.plans[index]) : ""],
      ["Time", time === null ? "" : `${timeText(time)}, ${((100 * time) / sum(data.times_us)).toFixed(1)} % of all steps`],
      ["FLOPs", step.flops === null ? "" : `${flopsText(step.flops)}${intensity ? `, ${intensity} per byte` : ""}${time ? `, ${rateText(step.flops, time)}` : ""}`],
      ["Reads", bytesText(step.read_bytes)], ["Writes", bytesText(step.written_bytes)],
      ["Workspace", scratch ? bytesText(scratch.bytes) : ""], ["Name", step.module],
      ...data.refused.filter((plan) => plan.steps.includes(index)).map((plan) => ["In place of", [own(plan.summary), ", which the library refused: ", own(plan.reason)]]),
    ]),
    make("h3", {}, "ONNX nodes"), step.nodes ? chips(step.nodes.split("+")) : make("p", { class: "muted small" }, "none: the compiler added it"),
    make("h3", {}, "Reads"), ...tensors(step, "in", index), make("h3", {}, "Writes"), ...tensors(step, "out", index),
    ...codeOf("Torch IR", data.torch_ir[index], true),
    ...codeOf(step.kind === "execute" ? "hipDNN descriptors" : "Kernel", data.modules[step.module]?.join("\n"), !data.torch_ir[index]),
  ];
};

const codeOf = (title, text, isOpen) => (text ? [make("details", { open: isOpen }, make("summary", {}, title), make("pre", { tabIndex: 0, dir: "ltr" }, text))] : []);

const tensors = (step, role, index) =>
  step.operands.filter((operand) => operand.role === role).map((operand) =>
    make("div", { class: "tensor" },
      make("span", { class: "clamp" }, ...placeOf(operand, index)),
      make("span", { class: "n" }, bytesText(operand.bytes)),
      make("code", {}, operand.dtype ? `${operand.dtype} ${shapeText(operand.dims)}${isPacked(operand) ? "" : ` strides ${operand.strides.join(" ")}`}` : "bytes"),
    ));

const placeOf = (operand, index) => {
  const known = given.get(operand.buffer);
  if (operand.role === "in") {
    if (operand.writers.length) return ["from step ", ...stepLinks(operand.writers)];
    return known ? [`${known.kind} `, own(known.name)] : ["nothing written yet"];
  }
  const readers = steps.flatMap((step, reader) => (step.operands.some((other) => other.buffer === operand.buffer && other.writers.includes(index)) ? [reader] : []));
  const name = outputs.has(operand.buffer) ? ["output ", own(outputs.get(operand.buffer)), readers.length ? ", " : ""] : [];
  return readers.length ? [...name, "for step ", ...stepLinks(readers)] : name.length ? name : ["read by no step"];
};

const isPacked = (operand) => {
  let expected = 1;
  return operand.dims.map((dim, axis) => [dim, operand.strides[axis]]).reverse().every(([dim, stride]) => {
    const isFitting = dim === 1 || stride === expected;
    expected *= dim;
    return isFitting;
  });
};
