"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const groups = new Map(data.groups.map((group) => [group.number, group]));

// Text is always a text node: what users named is never read as markup.
function el(tag, attributes = {}, ...children) {
  const made = tag.startsWith("svg:")
    ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return made;
}

const show = (value) => (value !== null && typeof value === "object" ? JSON.stringify(value) : String(value));
const pairs = (values) => Object.entries(values).map(([name, value]) => `${name} = ${show(value)}`).join(", ");
const number = (value, digits = 2) => (value === null || value === undefined ? "–" : value.toFixed(digits));
const minus = (text) => text.replace("-", "−");

// Sorting

function closeDrills(table) {
  for (const button of table.querySelectorAll(":scope > tbody > tr > * > [aria-expanded=true]")) toggle(button);
}

function sortKey(row, column, kind) {
  const cell = row.cells[column];
  if (kind === "text") return cell.textContent.trim().toLowerCase();
  return cell.dataset.value === undefined ? null : Number(cell.dataset.value);
}

function sort(button) {
  const header = button.closest("th");
  const table = header.closest("table");
  closeDrills(table);
  const kind = button.dataset.sort;
  const first = kind === "number" ? "descending" : "ascending";
  const other = first === "ascending" ? "descending" : "ascending";
  const order = header.getAttribute("aria-sort") === first ? other : first;
  for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", order);
  const sign = order === "ascending" ? 1 : -1;
  const keyed = [...table.tBodies[0].rows].map((row) => [sortKey(row, header.cellIndex, kind), row]);
  keyed.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null); // what is missing stays last
    return sign * (kind === "text" ? a.localeCompare(b, undefined, { numeric: true }) : a - b);
  });
  table.tBodies[0].append(...keyed.map(([, row]) => row));
}

// Filtering

function filter(table) {
  closeDrills(table);
  const search = document.querySelector(`[data-filter="${CSS.escape(table.id)}"]`);
  const only = document.querySelector(`[data-only-run="${CSS.escape(table.id)}"]`);
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of table.tBodies[0].rows) {
    const text = (only ? row.cells[0] : row).textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word)) || Boolean(only?.checked && row.classList.contains("quoted"));
    shown += !row.hidden;
  }
  const all = table.tBodies[0].rows.length;
  document.getElementById(`${table.id}-count`).textContent = shown < all ? `${shown} of ${all} rows` : "";
}

// Drill-down

function toggle(button) {
  const row = button.closest("tr");
  const open = button.getAttribute("aria-expanded") === "true";
  for (const other of row.querySelectorAll("[aria-expanded=true]")) other.setAttribute("aria-expanded", "false");
  if (row.nextElementSibling?.classList.contains("drill")) row.nextElementSibling.remove();
  if (open) return;
  button.setAttribute("aria-expanded", "true");
  const numbers = button.dataset.groups.split(" ").map(Number);
  const inner = el("div", { class: "inner" }, ...numbers.map((n) => details(groups.get(n))));
  row.after(el("tr", { class: "drill" }, el("td", { colspan: row.cells.length }, inner)));
}

function details(group) {
  const facts = [
    ["Parameters", pairs(group.params) || "none"],
    ["Recipe", pairs(group.recipe)],
    ["Protocol", group.protocol],
    ["Data hash", group.data_hash],
    ["Key", group.key],
  ];
  const list = el("dl", {}, ...facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
  const title = el("h4", {}, `${group.loss} on ${group.dataset} (${group.domain}): ${count(group)}`);
  return el("section", { "aria-label": title.textContent, style: "border: 0; margin: 0; padding: 0" }, title, curves(group), runs(group), list);
}

const count = (group) =>
  group.statuses.map(([status, n]) => `${n} ${status}`).join(", ");

function runs(group) {
  const metrics = [...new Set(group.runs.flatMap((run) => Object.keys(run.metrics)))];
  metrics.sort((a, b) => (b === group.main) - (a === group.main));
  const head = ["Seed", "Status", ...metrics, "Seconds", "Peak MiB", "Environment", "Record"];
  const body = group.runs.map((run) => {
    const { device, threads, commit } = data.environments[run.environment];
    const where = `${run.environment + 1}: ${device}, threads ${threads}, ${shortened(commit)}`;
    return el(
      "tr", {},
      el("th", { scope: "row", class: "num" }, run.seed),
      el("td", {}, run.error ? `${run.status}: ${run.error}` : run.status, group.tuning.includes(run.seed) ? ", for tuning: not in the mean" : ""),
      ...metrics.map((name) => el("td", { class: "num" }, number(run.metrics[name]))),
      el("td", { class: "num" }, number(run.seconds, 1)),
      el("td", { class: "num" }, number(run.memory, 0)),
      el("td", {}, where),
      el("td", {}, el("code", {}, run.path)),
    );
  });
  const numeric = new Set([...metrics, "Seed", "Seconds", "Peak MiB"]);
  const headers = head.map((name) => el("th", { scope: "col", ...(numeric.has(name) ? { class: "num" } : {}) }, name));
  const table = el("table", {}, el("thead", {}, el("tr", {}, ...headers)), el("tbody", {}, ...body));
  return el("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": "Records" }, table);
}

const shortened = (commit) => (commit ? commit.slice(0, 12) + (commit.endsWith("+changes") ? "+changes" : "") : "no commit");

// Curves

function curves(group) {
  const series = (name) => group.runs.filter((run) => run[name].length > 1).map((run) => [run.seed, run[name]]);
  const drawn = [
    chart("Training loss", "epoch", series("loss")),
    chart("Validation score", "step", series("dev")),
  ];
  return el("div", { class: "curves" }, ...drawn.filter(Boolean));
}

function chart(title, unit, series) {
  const points = series.flatMap(([, line]) => line).filter(([, y]) => y !== null);
  if (!points.length) return null;
  const [left, right, top, bottom, width, height] = [52, 8, 8, 26, 340, 180];
  const extent = (values) => [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
  const [x0, x1] = extent(points.map(([x]) => x));
  const [y0, y1] = extent(points.map(([, y]) => y));
  const px = (x) => left + ((x - x0) / (x1 - x0 || 1)) * (width - left - right);
  const py = (y) => height - bottom - ((y - y0) / (y1 - y0 || 1)) * (height - top - bottom);
  const text = (x, y, anchor, value) => el("svg:text", { x, y, "text-anchor": anchor, "font-size": 11 }, value);
  const line = (x, y, x2, y2) => el("svg:line", { x1: x, y1: y, x2, y2, stroke: "currentColor", "stroke-width": 0.6 });
  const paths = series.map(([seed, values]) =>
    el("svg:polyline", {
      points: values.filter(([, y]) => y !== null).map(([x, y]) => `${px(x).toFixed(1)},${py(y).toFixed(1)}`).join(" "),
      fill: "none", stroke: "var(--accent)", "stroke-width": 1.4, "stroke-opacity": series.length > 1 ? 0.65 : 1,
    }, el("svg:title", {}, `seed ${seed}`)));
  const ends = series.map(([seed, values]) => `seed ${seed} ends at ${values.at(-1)[1]}`).join(", ");
  const svg = el(
    "svg:svg",
    { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title} by ${unit}: ${ends}` },
    line(left, top, left, height - bottom), line(left, height - bottom, width - right, height - bottom),
    text(left - 6, py(y1) + 4, "end", minus(String(Number(y1.toPrecision(4))))),
    text(left - 6, py(y0) + (y1 > y0 ? 4 : 0), "end", y1 > y0 ? minus(String(Number(y0.toPrecision(4)))) : ""),
    text(left, height - 8, "middle", x0), text(width - right, height - 8, "end", x1),
    text((left + width - right) / 2, height - 8, "middle", unit),
    ...paths,
  );
  const lines = series.length > 1 ? `${series.length} seeds, one line each` : `seed ${series[0][0]}`;
  const figure = el("figure", {}, el("figcaption", {}, `${title}, ${lines}`), svg);
  savable(figure);
  return figure;
}

// Learning curves of a table are drawn once they are seen
function learning(box) {
  if (!box.open || box.children.length > 1) return;
  const shown = box.dataset.curves.split(" ").map((n) => groups.get(Number(n))).filter((group) => group);
  const drawn = shown.map((group) => [group, curves(group)]).filter(([, figures]) => figures.children.length);
  box.append(...drawn.map(([group, figures]) => el("section", { class: "curve" }, el("h4", {}, `${group.loss} on ${group.dataset}${pairs(group.params) && ": "}${pairs(group.params)}`), figures)));
}
for (const box of document.querySelectorAll("[data-curves]")) {
  box.addEventListener("toggle", () => learning(box));
  learning(box);
}

// Plots as files, in ink for paper

function save(button) {
  const drawn = button.closest("figure").querySelector("svg");
  const copy = drawn.cloneNode(true);
  copy.setAttribute("font-family", "sans-serif");
  copy.setAttribute("fill", "currentColor"); // the page's style, which a file has not
  const text = new XMLSerializer().serializeToString(copy)
    .replaceAll("currentColor", "#1c2127").replaceAll("var(--accent)", "#1d5fa6");
  const name = drawn.getAttribute("aria-label").split(/[:,]/)[0].replace(/[^\w.+-]+/g, "-");
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  el("a", { href: address, download: `${name}.svg` }).click();
  URL.revokeObjectURL(address);
}

const savable = (figure) => figure.append(el("button", { type: "button", class: "save", "data-save": "" }, "Save as SVG"));

// The list of all experiments

function listed(group, varying) {
  const differing = Object.fromEntries(Object.entries(group.recipe).filter(([name]) => varying.get(group.domain).has(name)));
  const others = group.statuses.filter(([status]) => status !== "ok").map(([status, n]) => `${n} ${status}`);
  if (group.tuning.length) others.push(`${group.tuning.length} for tuning`);
  const seconds = group.runs.filter((run) => run.status === "ok").map((run) => run.seconds);
  const mean = seconds.reduce((a, b) => a + b, 0) / seconds.length;
  const numeric = (value, ...children) =>
    el("td", { class: "num", ...(Number.isFinite(value) ? { "data-value": value } : {}) }, ...children);
  const name = `${group.domain} ${group.dataset} ${group.loss}`;
  return el(
    "tr", {},
    el("th", { scope: "row" }, el("button", { type: "button", "aria-expanded": "false", "data-groups": group.number }, name)),
    el("td", {}, pairs({ ...group.params, ...differing })),
    el("td", {}, group.main ?? "–"),
    numeric(group.mean ?? NaN, number(group.mean), ...(group.std === null ? [] : [el("small", {}, ` ± ${number(group.std)}`)])),
    numeric(group.n, group.n),
    el("td", {}, others.join(", ")),
    numeric(mean, seconds.length ? number(mean, 1) : "–"),
  );
}

function varyingRecipe() {
  const values = new Map();
  for (const group of data.groups) {
    if (!values.has(group.domain)) values.set(group.domain, new Map());
    for (const [name, value] of Object.entries(group.recipe)) {
      const seen = values.get(group.domain);
      if (!seen.has(name)) seen.set(name, new Set());
      seen.get(name).add(JSON.stringify(value));
    }
  }
  const names = (seen) => new Set([...seen].filter(([, found]) => found.size > 1).map(([name]) => name));
  return new Map([...values].map(([domain, seen]) => [domain, names(seen)]));
}

// A table that fits needs no box of its own to scroll in: its header then sticks to the window
const boxes = new ResizeObserver((entries) => {
  for (const { target } of entries) fit(target.closest(".scroll"));
});
const fit = (box) => box.classList.toggle("fits", box.firstElementChild.offsetWidth <= box.clientWidth);

const varying = varyingRecipe();
document.querySelector("#records-table > tbody").append(...data.groups.map((group) => listed(group, varying)));

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.sort) sort(button);
  else if (button?.dataset.groups) toggle(button);
  else if (button && "save" in button.dataset) save(button);
});
document.querySelectorAll("main figure:has(svg):not(:has(.save))").forEach(savable);
for (const control of document.querySelectorAll("[data-filter], [data-only-run]")) {
  const table = document.getElementById(control.dataset.filter ?? control.dataset.onlyRun);
  control.addEventListener("input", () => filter(table));
}
for (const box of document.querySelectorAll("main .scroll")) {
  boxes.observe(box);
  boxes.observe(box.firstElementChild);
}
