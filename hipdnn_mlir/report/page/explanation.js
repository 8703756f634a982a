// What the nodes of an explanation's graph are: those of the ONNX model, in the colours of one target.
const reports = data.reports;
const members = reports[0].nodes;
/** Place of a node: its colour, and what it is called. */
const places = {
  graph: { hue: "var(--c0)", label: "on hipDNN graphs" },
  kernel: { hue: "var(--c1)", label: "in kernels" },
  moved: { hue: "var(--c3)", label: "views and copies" },
  folded: { hue: GREY, label: "folded away" },
  "left out": { hue: "var(--c4)", label: "left out" },
};
const numberOf = new Map(members.map((member, node) => [member.name, node]));
let report = reports[0];

const placeOf = (node) => report.nodes[node].place;
const titleOf = (node) => [members[node].op, members[node].name];
const kindOf = () => "node";
const isPort = () => false;
const colourOf = (node) => places[placeOf(node)].hue;
const legend = () => Object.values(places).map(({ label, hue }) => [label, hue]);
const idOf = (node) => `node-${node}`;
const nodeOf = (id) => {
  const node = Number(/^node-(\d+)$/.exec(id)?.[1] ?? NaN);
  return node < members.length && idOf(node) === id ? node : null;
};
const textOf = (node) => [...titleOf(node), ...reports.map((known) => known.nodes[node].place)].join("\n");
const regionsOf = (known) => [...known.graphs, ...known.launches];
/** 100 % is said of all alone, and 0 % of none. */
const percentText = (share) => {
  if (share === null) return "–";
  const isPart = share > 1e-6 && share < 100 - 1e-6;
  return `${isPart ? Math.min(99, Math.max(1, Math.round(share))) : share.toFixed(0)} %`;
};
/** Whether a region is no graph of a library, but a function of the host's library or code that the compiler writes. */
const isKernel = (region) => ["kernel", "GENERATED"].includes(region.engine);

const nodeLink = (node) =>
  make("button", { type: "button", class: "linkish", title: titleOf(node).join("\n").slice(0, 600), click: () => select(node, { scroll: "auto" }) }, own(members[node].name.slice(0, 200)));
const SHOWN_LINKS = 12;
/** Links to nodes by name; what the model does not call so is a text. */
const nodeLinks = (names) => {
  const made = names.slice(0, SHOWN_LINKS).map((name) => (numberOf.has(name) ? nodeLink(numberOf.get(name)) : own(name)));
  return [...made.flatMap((link, place) => (place ? [", ", link] : [link])), names.length > SHOWN_LINKS ? ` and ${names.length - SHOWN_LINKS} more` : ""];
};

const detailOf = (node) => (node === null ? overall() : ofNode(node));
const overall = () => [
  make("p", { class: "head" }, "Select a node"),
  make("p", { class: "muted small" }, "A box is a node of the ONNX model, in the colour of the place that it has on this target. Constants are in the nodes that read them."),
  make("h3", {}, `On ${report.target}`),
  pairs(Object.entries(places).map(([place, { label }]) => [label, countText(report.nodes.filter((known) => known.place === place).length, "node")])),
];
const ofNode = (node) => {
  const known = report.nodes[node];
  const groups = report.reject_groups.filter((group) => group.nodes.includes(known.name));
  const regions = regionsOf(report).filter((region) => known.within.includes(region.name));
  return [
    make("p", { class: "head clamp", hue: colourOf(node) }, make("i"), own(known.op)),
    pairs([
      ["Node", own(known.name)],
      ["Place", places[known.place].label],
      ...groups.flatMap((group) => [["Reason", own(`${group.reason} [${group.rule}]`)], ["What would help", group.advice ? own(group.advice) : ""]]),
      ...(reports.length > 1 ? reports.filter((other) => other !== report).map((other) => [`On ${other.target}`, places[other.nodes[node].place].label]) : []),
    ]),
    ...regions.flatMap((region) => [
      make("h3", {}, own(`${region.name}, ${region.engine}`)), make("p", { class: "small" }, own(region.summary)), make("h3", {}, "Its nodes"), chips(region.nodes),
    ]),
  ];
};
const onSelect = () => {};

const drawCoverage = () => {
  const share = (known, place) => known.nodes.filter((member) => member.place === place).length / Math.max(1, known.nodes.length);
  const stack = (known) =>
    make("span", { class: "stack", role: "img", "aria-label": Object.entries(places).map(([place, { label }]) => `${(100 * share(known, place)).toFixed(0)} % ${label}`).join(", ") },
      ...Object.entries(places).map(([place, { hue, label }]) => make("i", { hue, title: `${label}: ${known.nodes.filter((member) => member.place === place).length}`, style: { width: `${100 * share(known, place)}%` } })));
  drawTable(byId("coverage-table"), reports, [
    { title: "Target", cell: (known) => (reports.length === 1 ? own(known.target) : make("button", { type: "button", "aria-pressed": String(known === report), click: () => choose(known) }, own(known.target))) },
    { title: "On graphs", class: "n", value: (known) => known.coverage.percent, cell: (known) => percentText(known.coverage.percent) },
    { title: "FLOPs", class: "n", value: (known) => known.coverage.flops_percent ?? -1, cell: (known) => percentText(known.coverage.flops_percent) },
    { title: "Left out", class: "n", value: (known) => known.coverage.left_out, cell: (known) => String(known.coverage.left_out) },
    { title: "Nodes by place", class: "share", cell: stack },
  ]);
  byId("coverage-text").textContent = `“On graphs” is the share of the nodes that run; “FLOPs” that of the work of convolutions and matmuls.${reports.length > 1 ? " Select a target to see the rest of this page for it." : ""}`;
};

const drawLeftOut = () => {
  byId("left-out-text").textContent = report.reject_groups.length
    ? `On ${report.target}, by reason. A model with such nodes has no program of its own; in ONNX Runtime they run on its CPU provider.`
    : report.no_program ? `Every node has a place on ${report.target}, and there is no program: ${report.no_program}` : `Every node has a place on ${report.target}.`;
  byId("reject-table").parentElement.hidden = !report.reject_groups.length;
  drawTable(byId("reject-table"), report.reject_groups, [
    { title: "Count", class: "n", value: (group) => group.nodes.length, cell: (group) => String(Math.max(1, group.nodes.length)) },
    { title: "Operator", class: "engine", value: (group) => group.operator, cell: (group) => own(group.operator) },
    { title: "Reason", class: "title", value: (group) => group.reason, cell: (group) => own(`${group.reason} [${group.rule}]`) },
    { title: "What would help", class: "title", value: (group) => group.advice, cell: (group) => own(group.advice || "–") },
    { title: "Nodes", class: "names wide", cell: (group) => nodeLinks(group.nodes) },
  ]);
};

const drawRegions = () => {
  const regions = regionsOf(report);
  const kernels = regions.filter(isKernel).length;
  const order = report.graphs.length && report.launches.length ? "Those called graph are in the order of execution, and so are those called kernel." : "They are in the order of execution.";
  byId("regions-text").textContent = `${countText(regions.length - kernels, "graph")}, ${countText(kernels, "kernel")} on ${report.target}. ${regions.length ? order : ""}`;
  drawTable(byId("region-table"), regions, [
    { title: "Name", class: "engine", value: (region) => region.name, cell: (region) => region.name },
    { title: "Engine", class: "engine", value: (region) => region.engine, cell: (region) => own(region.engine) },
    { title: "Operations", class: "title", value: (region) => region.summary, cell: (region) => shortened(region.summary) },
    { title: "Nodes", class: "names wide", cell: (region) => nodeLinks(region.nodes) },
  ]);
};

const drawReport = () => {
  const found = report.coverage;
  const samples = Object.entries(report.samples).map(([name, size]) => `${name} = ${size}`).join(", ");
  byId("made").textContent = [`explained for ${report.target}`, samples && `shown at ${samples}`].filter(Boolean).join(" · ");
  drawNumberRows([
    ["On hipDNN graphs", percentText(found.percent), `${found.graph} of ${found.graph + found.kernel + found.left_out} nodes that run`],
    ["FLOPs on graphs", percentText(found.flops_percent), "convolutions and matmuls"],
    ["In kernels", String(found.kernel), "nodes"], ["Views and copies", String(found.moved), "nodes"],
    ["Folded away", String(found.folded), "nodes"], ["Left out", String(found.left_out), "nodes"],
  ]);
  drawCoverage();
  drawLeftOut();
  drawRegions();
};

/** Show another target. */
const choose = (other) => {
  report = other;
  drawReport();
  nodes.forEach((element, node) => element.style.setProperty("--hue", colourOf(node)));
  drawOverview();
  showDetail(selected);
};
