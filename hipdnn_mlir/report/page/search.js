// Search: each word must be somewhere in what the page's own script says of a node (`textOf`).
const texts = Array.from({ length: nodeCount }, (_, node) => textOf(node).toLowerCase());
let matches = [];
let current = -1;

const search = (text) => {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  matches = words.length ? texts.flatMap((known, node) => (words.every((word) => known.includes(word)) ? [node] : [])) : [];
  current = -1;
  const found = new Set(matches);
  nodes.forEach((element, node) => element.classList.toggle("match", found.has(node)));
  byId("found").textContent = words.length ? countText(matches.length, "match").replace("matchs", "matches") : "";
  if (matches.length) keepInView(matches[0], true);
};

const nextMatch = (direction) => {
  if (!matches.length) return;
  current = (current + direction + matches.length) % matches.length;
  select(matches[current], { focus: false });
  keepInView(matches[current], true);
  byId("found").textContent = `${current + 1} of ${matches.length}`;
};

const useSearch = () => {
  const field = byId("search");
  field.addEventListener("input", () => search(field.value));
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") nextMatch(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") { field.value = ""; search(""); field.blur(); }
    event.stopPropagation();
  });
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select")) return;
    const action = {
      "/": () => { byId("graph").scrollIntoView(); field.focus(); field.select(); },
      "+": () => zoomTo(zoom * 1.25), "-": () => zoomTo(zoom / 1.25), Escape: () => select(null),
    }[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
};
