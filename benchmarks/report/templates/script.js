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

for (const header of document.querySelectorAll("th[data-sort]")) {
  const named = header.querySelector(".panel") ?? header;
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: named.textContent.trim() });
  button.addEventListener("click", () => sort(button));
  named.replaceChildren(button);
}
for (const board of document.querySelectorAll("[data-filter]")) {
  const about = board.dataset.filter;
  const field = Object.assign(document.createElement("input"), { type: "search", placeholder: about, ariaLabel: about });
  field.addEventListener("input", () => {
    for (const name of board.querySelectorAll("tbody th"))
      name.parentElement.hidden = !`${name.textContent} ${name.dataset.family ?? ""}`.toLowerCase().includes(field.value.trim().toLowerCase());
  });
  board.prepend(field);
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
// A link into what is folded opens it, and shows it
const unfold = () => {
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  named?.closest("details")?.setAttribute("open", "");
  named?.scrollIntoView({ behavior: "instant" });
};
addEventListener("hashchange", unfold);
unfold();
