// The arena: a rectangle is a buffer, from its first step to its last, at its offset.
const arena = data.arena;
const rectangles = [];
let moment = arena.peak_step;

const ownersAt = (step) => arena.blocks.filter((block) => block.first <= step && step <= block.last).sort((a, b) => b.bytes - a.bytes);
const hueOfBlock = (block) => (block.step === null ? GREY : hueOf(steps[block.step]));
const lifeText = (block) => (block.first === block.last ? `step ${block.first}` : `steps ${block.first} to ${block.last}`);

/** Round byte counts for an axis, at most 6. */
const marks = (most) => {
  const unit = 2 ** Math.ceil(Math.log2(Math.max(most, 6) / 6));
  return Array.from({ length: Math.floor(most / unit) + 1 }, (_, index) => index * unit);
};

const drawMap = () => {
  const box = byId("map");
  const width = Math.max(260, box.clientWidth - 20);
  const [left, top, bottom] = [68, 24, 30];
  const height = width < 500 ? 260 : 360;
  const [across, up] = [(width - left - 8) / Math.max(steps.length, 1), (height - top - bottom) / Math.max(arena.bytes, 1)];
  const x = (step) => left + step * across;
  const y = (offset) => height - bottom - offset * up;
  const drawing = make("svg:svg", { viewBox: `0 0 ${width} ${height}`, height, role: "group", "aria-label": "Bytes of the arena over the steps" });
  for (const mark of marks(arena.bytes)) {
    drawing.append(make("svg:line", { class: "grid", x1: left, x2: width - 8, y1: y(mark), y2: y(mark) }), make("svg:text", { x: left - 8, y: y(mark) + 4, "text-anchor": "end" }, bytesText(mark)));
  }
  const every = Math.max(1, 10 ** Math.ceil(Math.log10(steps.length / (width / 60))) / 2);
  for (let step = 0; step < steps.length; step += Math.ceil(every)) drawing.append(make("svg:text", { x: x(step + 0.5), y: height - bottom + 16, "text-anchor": "middle" }, String(step)));
  drawing.append(make("svg:text", { x: left, y: height - 4 }, "step"));
  rectangles.length = 0;
  const places = arena.blocks.map((block) => ({ x: x(block.first), y: y(block.offset + block.bytes), width: (block.last - block.first + 1) * across, height: block.bytes * up }));
  arena.blocks.forEach((block, index) => rectangles.push(drawBlock(block, index, places[index])));
  drawing.append(...rectangles, ...arena.blocks.flatMap((block, index) => drawName(block, places[index])));
  drawing.append(
    make("svg:line", { class: "limit", x1: left, x2: width - 8, y1: y(arena.bytes), y2: y(arena.bytes) }),
    make("svg:text", { class: "strong", x: width - 8, y: y(arena.bytes) - 7, "text-anchor": "end" }, `arena ${bytesText(arena.bytes)}`),
    make("svg:rect", { class: "now", id: "now", x: x(moment), y: top - 6, width: Math.max(across, 2), height: height - bottom - top + 6 }),
  );
  byId("map").replaceChildren(drawing);
  drawMap.x = x;
};

const drawBlock = (block, index, place) => {
  const text = `${block.label || "buffer"}: ${bytesText(block.bytes)} at ${bytesText(block.offset)}, ${lifeText(block)}`;
  const show = () => { byId("readout").replaceChildren(own(text.length > 400 ? `${text.slice(0, 400)}…` : text)); };
  const open = () => block.step !== null && select(firstStep + block.step, { focus: false });
  return make("svg:rect", {
    ...place, class: block.is_workspace ? "block scratch" : "block", hue: hueOfBlock(block), tabindex: index === 0 ? 0 : -1, role: "button", "aria-label": text.slice(0, 300), "data-block": index,
    pointerenter: show, focus: show, click: open,
    keydown: (event) => {
      const next = { ArrowRight: index + 1, ArrowLeft: index - 1 }[event.key];
      if (event.key === "Enter") open();
      if (next === undefined || !rectangles[next]) return;
      event.preventDefault();
      rectangles[index].setAttribute("tabindex", -1);
      rectangles[next].setAttribute("tabindex", 0);
      rectangles[next].focus();
    },
  });
};

/** What a block holds and how much, where there is room for it. */
const drawName = (block, place) => {
  const name = block.step === null ? block.label : steps[block.step].operations;
  const lines = [block.is_workspace ? "workspace" : name, bytesText(block.bytes)].slice(0, Math.floor((place.height - 6) / 15));
  const most = Math.floor((place.width - 12) / 6.6);
  if (most < 9 || !lines.length) return [];
  return lines.map((line, index) => make("svg:text", { class: "inside", x: place.x + 6, y: place.y + 15 * (index + 1) }, line.length > most ? `${line.slice(0, most - 1)}…` : line));
};

const markBlocks = (node) => rectangles.forEach((rectangle, index) => rectangle.classList.toggle("on", node !== null && arena.blocks[index].step === node - firstStep));

const showMoment = (step) => {
  moment = step;
  byId("moment").value = step;
  const owners = ownersAt(step);
  byId("moment-text").textContent = `Step ${step}${step === arena.peak_step ? ", the peak" : ""}: ${bytesText(arena.live_bytes[step])} taken`;
  byId("now").setAttribute("x", drawMap.x(step));
  const live = Math.max(arena.live_bytes[step], 1);
  byId("owners").replaceChildren(
    make("thead", {}, make("tr", {}, ...["Owner", "Bytes", "Share", "From", "To"].map((name, column) => make("th", { scope: "col", class: ["", "n", "", "n wide", "n wide"][column] }, name)))),
    make("tbody", {}, ...owners.map((block) => make("tr", {},
      make("td", { class: "title" }, make("i", { class: "dot", hue: hueOfBlock(block) }), own(block.label.slice(0, 300) || "buffer"), " ", block.step === null ? null : stepLink(block.step)),
      make("td", { class: "n" }, bytesText(block.bytes)),
      make("td", { class: "share", hue: hueOfBlock(block) }, make("i", { style: { width: `${(100 * block.bytes) / live}%` } })),
      make("td", { class: "n wide" }, String(block.first)), make("td", { class: "n wide" }, String(block.last)),
    ))),
  );
};

const useMemory = () => {
  const how = arena.is_loaded
    ? "as the runtime has laid it out on this machine"
    : "laid out here without the workspaces of plans, which only the device's library knows; the program cannot be loaded on this machine";
  const over = arena.bytes - arena.largest_live_bytes;
  byId("memory-text").textContent = arena.blocks.length
    ? `One block holds all temporaries and workspaces, ${how}. A rectangle is a buffer, from the first step that needs it to the last; pale ones with dashed edges are workspaces. At the peak ${bytesText(arena.largest_live_bytes)} are taken at once. ${over ? `The arena is ${((100 * over) / arena.largest_live_bytes).toFixed(1)} % larger than that.` : "No arena could be smaller."}`
    : "The program needs no memory beside its weights, inputs and outputs.";
  byId("memory-body").hidden = !arena.blocks.length;
  if (!arena.blocks.length) return;
  byId("moment").max = steps.length - 1;
  byId("moment").addEventListener("input", () => showMoment(Number(byId("moment").value)));
  byId("to-peak").addEventListener("click", () => showMoment(arena.peak_step));
  const largest = ownersAt(arena.peak_step)[0];
  byId("readout").textContent = largest ? "Point at a rectangle to see what lies there; click it to select its step." : "";
  drawMap();
  showMoment(arena.peak_step);
  new ResizeObserver(() => { drawMap(); showMoment(moment); markBlocks(selected); }).observe(byId("map"));
};
