// A graph: nodes are buttons in a scrolled box, edges lines behind them. The page's own script says what a node is: `titleOf`, `kindOf`, `idOf`,
// `nodeOf`, `isPort`, `colourOf`, `detailOf`, `onSelect` and `legend`.
const nodeCount = data.layout.nodes.length;
const view = byId("view");
const stage = byId("stage");
const nodes = [];
const lines = [];
const links = Array.from({ length: nodeCount }, () => ({ above: [], below: [], edges: [] }));
const half = { width: data.node_width / 2, height: data.node_height / 2 };
const MOST_ZOOM = 2;
const LEAST_ZOOM = 0.02;
/** Below this zoom texts cannot be read, and boxes are filled with their colour instead. */
const FAR = 0.25;
let zoom = 1;
let selected = null;

const drawGraph = () => {
  Object.assign(stage.style, { width: `${data.layout.width}px`, height: `${data.layout.height}px` });
  const edges = byId("edges");
  edges.setAttribute("width", data.layout.width);
  edges.setAttribute("height", data.layout.height);
  data.edges.forEach(([source, target], index) => {
    lines.push(make("svg:path", { d: curve(data.layout.edges[index]) }));
    links[source].below.push(target);
    links[target].above.push(source);
    links[source].edges.push(index);
    links[target].edges.push(index);
  });
  edges.append(...lines);
  data.layout.nodes.forEach(([x, y], node) => nodes.push(makeNode(node, x, y)));
  stage.append(...nodes);
  drawLegend();
};

/** A line through points: straight down, or bent between two points that lie beside each other. */
const curve = (points) =>
  points.reduce((path, [x, y], index) => {
    if (index === 0) return `M${x} ${y}`;
    const [x0, y0] = points[index - 1];
    if (x === x0) return `${path}V${y}`;
    const bend = Math.min((y - y0) / 2, 60);
    return y - y0 > 2 * bend + 1
      ? `${path}C${x0} ${y0 + bend} ${x} ${y0 + bend} ${x} ${y0 + 2 * bend}V${y}`
      : `${path}C${x0} ${y0 + bend} ${x} ${y - bend} ${x} ${y}`;
  }, "");

const makeNode = (node, x, y) => {
  const [title, text] = titleOf(node);
  const label = `${isPort(node) ? kindOf(node) : idOf(node).replace("-", " ")} ${title.slice(0, 200)}`;
  return make(
    "button",
    {
      type: "button", class: isPort(node) ? "node port" : "node", hue: colourOf(node), title: `${title}\n${text}`.slice(0, 600), "aria-label": label, "data-node": idOf(node),
      tabIndex: node === 0 ? 0 : -1, click: () => select(node), keydown: (event) => walk(event, node), focus: () => keepInView(node),
      style: { left: `${x - half.width}px`, top: `${y - half.height}px`, width: `${2 * half.width}px`, height: `${2 * half.height}px` },
    },
    make("b", { dir: "auto" }, title.slice(0, 200)), make("span", { dir: "auto" }, text.slice(0, 200)), isPort(node) ? null : make("i"),
  );
};

const drawLegend = () => byId("legend").replaceChildren(...legend().map(([name, hue]) => make("li", { hue }, make("i"), own(name))));

const showDetail = (node) => {
  const panel = byId("detail");
  panel.classList.toggle("picked", node !== null);
  panel.replaceChildren(...detailOf(node));
  if (node !== null) panel.prepend(make("button", { type: "button", class: "close", "aria-label": "Close", click: () => select(null) }, "×"));
  panel.scrollTop = 0;
};

/** Zoom so that the point of the box at (x, y) stays where it is. */
const zoomTo = (wanted, x = view.clientWidth / 2, y = view.clientHeight / 2) => {
  const next = Math.min(MOST_ZOOM, Math.max(LEAST_ZOOM, wanted));
  const before = byId("sized").getBoundingClientRect();
  const box = view.getBoundingClientRect();
  const inside = { x: (x - (before.left - box.left)) / zoom, y: (y - (before.top - box.top)) / zoom };
  zoom = next;
  stage.style.transform = `scale(${zoom})`;
  stage.classList.toggle("far", zoom < FAR);
  Object.assign(byId("sized").style, { width: `${data.layout.width * zoom}px`, height: `${data.layout.height * zoom}px` });
  const after = byId("sized").getBoundingClientRect();
  view.scrollLeft += after.left - box.left + inside.x * zoom - x;
  view.scrollTop += after.top - box.top + inside.y * zoom - y;
  drawOverview();
};

const fitWidth = () => Math.min(1, view.clientWidth / data.layout.width);
const fitAll = () => zoomTo(Math.min(fitWidth(), view.clientHeight / data.layout.height));

const keepInView = (node, isCentred = false) => {
  const [x, y] = data.layout.nodes[node].map((place) => place * zoom);
  const [width, height] = [half.width * zoom + 24, half.height * zoom + 24];
  const isOutside =
    x - width < view.scrollLeft || x + width > view.scrollLeft + view.clientWidth || y - height < view.scrollTop || y + height > view.scrollTop + view.clientHeight;
  if (isCentred || isOutside) view.scrollTo({ left: x - view.clientWidth / 2, top: y - view.clientHeight / 2 });
};

const select = (node, { focus = true, scroll = "" } = {}) => {
  if (selected !== null) {
    nodes[selected].classList.remove("on");
    links[selected].edges.forEach((edge) => lines[edge].classList.remove("on"));
    [...links[selected].above, ...links[selected].below].forEach((other) => nodes[other].classList.remove("near"));
  }
  nodes.forEach((element, index) => { element.tabIndex = index === (node ?? 0) ? 0 : -1; });
  selected = node;
  showDetail(node);
  onSelect(node);
  if (node === null) return history.replaceState(null, "", "#graph");
  nodes[node].classList.add("on");
  links[node].edges.forEach((edge) => { lines[edge].classList.add("on"); byId("edges").append(lines[edge]); });
  [...links[node].above, ...links[node].below].forEach((other) => nodes[other].classList.add("near"));
  if (zoom < 0.6) zoomTo(0.9);
  keepInView(node);
  if (focus) nodes[node].focus({ preventScroll: true });
  if (scroll) byId("graph").scrollIntoView({ behavior: scroll });
  history.replaceState(null, "", `#${idOf(node)}`);
};

/** Arrow keys: up and down along edges, left and right among the nodes of a layer. */
const walk = (event, node) => {
  const nearest = (others) => others.reduce((best, other) => (best === null || gap(other) < gap(best) ? other : best), null);
  const gap = (other) => Math.abs(data.layout.nodes[other][0] - data.layout.nodes[node][0]);
  const beside = (sign) =>
    nearest(data.layout.nodes.map((_, other) => other).filter((other) => data.layout.nodes[other][1] === data.layout.nodes[node][1] && sign * (data.layout.nodes[other][0] - data.layout.nodes[node][0]) > 0));
  const next = {
    ArrowUp: () => nearest(links[node].above), ArrowDown: () => nearest(links[node].below), ArrowLeft: () => beside(-1), ArrowRight: () => beside(1),
    Home: () => 0, End: () => nodeCount - 1,
  }[event.key]?.();
  if (next === undefined) return;
  event.preventDefault();
  if (next !== null) select(next);
};

const drag = () => {
  let start = null;
  view.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse" && event.button === 0 && !event.target.closest(".node")) start = { x: event.clientX + view.scrollLeft, y: event.clientY + view.scrollTop };
  });
  addEventListener("pointermove", (event) => {
    if (start === null) return;
    view.classList.add("dragged");
    view.scrollLeft = start.x - event.clientX;
    view.scrollTop = start.y - event.clientY;
  });
  addEventListener("pointerup", () => { start = null; view.classList.remove("dragged"); });
  view.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = view.getBoundingClientRect();
    zoomTo(zoom * Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
};

// The whole graph, small, with a frame around what the box shows.
const OVERVIEW = { width: 130, height: 240 };
const overviewScale = Math.min(OVERVIEW.width / data.layout.width, OVERVIEW.height / data.layout.height);
const drawOverview = () => {
  const canvas = byId("overview");
  const isNeeded = data.layout.height * zoom > view.clientHeight + 1 || data.layout.width * zoom > view.clientWidth + 1;
  canvas.hidden = !isNeeded;
  if (!isNeeded) return;
  const [width, height] = [Math.max(24, data.layout.width * overviewScale), data.layout.height * overviewScale];
  const ratio = devicePixelRatio || 1;
  Object.assign(canvas, { width: width * ratio, height: height * ratio });
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  const context = canvas.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name.replace(/^var\(|\)$/g, ""));
  context.scale(ratio, ratio);
  data.layout.nodes.forEach(([x, y], node) => {
    context.fillStyle = colour(colourOf(node));
    context.fillRect((x - half.width) * overviewScale, (y - half.height) * overviewScale, Math.max(2, 2 * half.width * overviewScale), Math.max(1, 2 * half.height * overviewScale));
  });
  const scale = overviewScale / zoom;
  context.strokeStyle = colour("--ink");
  context.lineWidth = 1.5;
  context.strokeRect(view.scrollLeft * scale + 1, view.scrollTop * scale + 1, Math.min(view.clientWidth * scale, width) - 2, Math.min(view.clientHeight * scale, height) - 2);
};
const useOverview = () => {
  const canvas = byId("overview");
  const move = (event) => {
    const box = canvas.getBoundingClientRect();
    const scale = zoom / overviewScale;
    view.scrollTo({ left: (event.clientX - box.left) * scale - view.clientWidth / 2, top: (event.clientY - box.top) * scale - view.clientHeight / 2 });
  };
  canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); move(event); });
  canvas.addEventListener("pointermove", (event) => { if (event.buttons) move(event); });
  view.addEventListener("scroll", drawOverview);
};
