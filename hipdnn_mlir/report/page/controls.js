// What works alike on every page with a graph.
const useTheme = () => {
  const button = byId("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const apply = (theme) => {
    document.documentElement.dataset.theme = theme;
    button.textContent = theme === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Change to the ${theme === "dark" ? "light" : "dark"} theme`);
    if (nodes.length) drawOverview();
  };
  let isChosen = false;
  dark.addEventListener("change", () => isChosen || apply(dark.matches ? "dark" : "light"));
  button.addEventListener("click", () => { isChosen = true; apply(document.documentElement.dataset.theme === "dark" ? "light" : "dark"); });
  apply(dark.matches ? "dark" : "light");
};

const decoded = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a % that begins no escape
  }
};

const openHash = () => {
  const hash = location.hash.slice(1);
  const node = nodeOf(hash);
  if (node !== null) select(node, { scroll: "instant" });
  if (hash.startsWith("find=")) {
    byId("search").value = decoded(hash.slice(5));
    search(byId("search").value);
  }
};

const useGraph = () => {
  drawGraph();
  showDetail(null);
  drag();
  useOverview();
  useSearch();
  byId("zoom-in").addEventListener("click", () => zoomTo(zoom * 1.25));
  byId("zoom-out").addEventListener("click", () => zoomTo(zoom / 1.25));
  byId("zoom-fit").addEventListener("click", fitAll);
  // A graph that is much wider than the box is opened at a size that can be read.
  zoomTo(Math.max(fitWidth(), Math.min(0.7, 1)));
  view.scrollTo({ left: data.layout.nodes.length ? data.layout.nodes[0][0] * zoom - view.clientWidth / 2 : 0, top: 0 });
  new ResizeObserver(drawOverview).observe(view);
  addEventListener("hashchange", openHash);
  openHash();
};
