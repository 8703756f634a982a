// Data, numbers for people, and elements: every text of a model is set as text, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const GREY = "var(--c7)";
const byId = (id) => document.getElementById(id);

const bytesText = (count) => {
  let size = count;
  for (const unit of ["B", "KiB", "MiB"]) {
    if (size < 1024) return `${unit === "B" ? size : size.toFixed(1)} ${unit}`;
    size /= 1024;
  }
  return `${size.toFixed(1)} GiB`;
};
/** Three digits that count, and all of those before the point: `toPrecision` would write 12345 as 1.23e+4. */
const digitsText = (value) => (value < 999.5 ? value.toPrecision(3) : Math.round(value).toLocaleString("en"));
/** The value in the first of units, each a thousand of the one before, in which it has no more than three digits before the point. */
const unitText = (value, units) => {
  const index = units.findIndex((_, power) => value / 1000 ** power < 999.5 || power === units.length - 1);
  return [digitsText(value / 1000 ** index), units[index]];
};
const flopsText = (count) => {
  if (count === null) return "–";
  const [digits, unit] = unitText(count, ["", "k", "M", "G", "T"]);
  return `${digits.replace(/\.0+$/, "")} ${unit}`.trim();
};
const timeText = (us) => unitText(us, ["µs", "ms", "s"]).join(" ");
const rateText = (flops, us) => `${digitsText(flops / us / 1000)} GFLOP/s`;
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
const pairs = (rows) => make("dl", { class: "pairs" }, ...rows.filter(([, value]) => value).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, ...[value].flat())]));
const chips = (names) => make("ul", { class: "chips" }, ...names.filter(Boolean).map((name) => make("li", {}, own(name))));

/** A table whose columns sort: each has a title, a class, the value to sort by and the cell's content. */
const drawTable = (table, rows, columns) => {
  const body = make("tbody");
  const heads = columns.map((column) => {
    const head = make("th", { scope: "col", class: column.class });
    const isText = !/\bn\b/.test(column.class ?? "");
    head.append(column.value ? make("button", { type: "button", click: () => sort(column, head, isText) }, column.title) : column.title);
    if (column.value) head.setAttribute("aria-sort", "none");
    return head;
  });
  const lineOf = rows.map((row, index) => make("tr", { "data-row": index }, ...columns.map((column) => make("td", { class: column.class, hue: column.hue?.(row) }, ...[column.cell(row)].flat()))));
  const sort = (column, head, isText) => {
    const isDown = head.getAttribute("aria-sort") === "none" ? !isText : head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => { if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none"); });
    head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
    const compare = (a, b) => (isText ? String(a).localeCompare(String(b), "en", { numeric: true }) : a - b);
    const order = [...rows.keys()].sort((a, b) => compare(column.value(rows[a]), column.value(rows[b])) * (isDown ? -1 : 1) || a - b);
    body.append(...order.map((index) => lineOf[index]));
  };
  body.append(...lineOf);
  table.replaceChildren(make("thead", {}, make("tr", {}, ...heads)), body);
};

const bar = (share) => make("i", { style: { width: `${(100 * share).toFixed(2)}%` } });
const shortened = (text) => own(text.length > 300 ? `${text.slice(0, 300)}…` : text);

/** The large numbers at the top: a name, a value and a line below it each. */
const drawNumberRows = (rows) =>
  byId("numbers").replaceChildren(...rows.filter(Boolean).map(([name, value, more]) => make("div", {}, make("dt", {}, name), make("dd", {}, value, make("small", {}, more)))));
