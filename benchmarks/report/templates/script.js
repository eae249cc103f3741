"use strict";
// The pages say everything without this script. It sorts and filters tables, and opens what a link names.

// Sorting

function sortKey(row, column) {
  const cell = row.cells[column];
  const text = cell.dataset.value ?? cell.textContent.trim().replace("−", "-");
  if (!cell.classList.contains("num")) return text.toLowerCase();
  const value = Number.parseFloat(text.replace(/^[<>=≥]\s*/, ""));
  return Number.isNaN(value) ? null : value;
}

function sort(button) {
  const header = button.closest("th");
  const table = header.closest("table");
  const first = header.classList.contains("num") ? "descending" : "ascending";
  const other = first === "ascending" ? "descending" : "ascending";
  const order = header.getAttribute("aria-sort") === first ? other : first;
  for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", order);
  const sign = order === "ascending" ? 1 : -1;
  for (const body of table.tBodies) {
    const rows = [...body.rows].filter((row) => !row.classList.contains("label"));
    const keyed = rows.map((row) => [sortKey(row, header.cellIndex), row]);
    keyed.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null); // what is missing stays last
      return sign * (typeof a === "string" ? a.localeCompare(b, undefined, { numeric: true }) : a - b);
    });
    body.append(...keyed.map(([, row]) => row));
  }
}

// Filtering

function filter(table) {
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

function button(text, does) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.addEventListener("click", () => does(made));
  return made;
}

for (const header of document.querySelectorAll("th[data-sort]")) {
  const named = header.querySelector(".panel") ?? header;
  named.replaceChildren(button(named.textContent.trim(), sort));
}
for (const controls of document.querySelectorAll(".controls")) controls.hidden = false;
for (const control of document.querySelectorAll("[data-filter], [data-only-run]")) {
  const table = document.getElementById(control.dataset.filter ?? control.dataset.onlyRun);
  control.addEventListener("input", () => filter(table));
}
// A table that fits needs no box of its own to scroll in: its header then sticks to the window
const boxes = new ResizeObserver((entries) => {
  for (const { target } of entries) fit(target.closest(".scroll"));
});
const fit = (box) => box.classList.toggle("fits", box.firstElementChild.offsetWidth <= box.clientWidth);
for (const box of document.querySelectorAll("main .scroll:has(> table)")) {
  boxes.observe(box);
  boxes.observe(box.firstElementChild);
}
// A link into what is folded opens it
const unfold = () => document.getElementById(decodeURIComponent(location.hash.slice(1)))?.closest("details")?.setAttribute("open", "");
addEventListener("hashchange", unfold);
unfold();
