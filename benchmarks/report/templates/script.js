"use strict";
// The pages say everything without this script. It sorts tables, and opens what a link names.

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
