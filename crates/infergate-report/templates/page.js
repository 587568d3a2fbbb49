// Tables sort by a click on a heading.
"use strict";
for (const grid of document.querySelectorAll(".grid")) {
  const table = grid.querySelector("table");
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  if (rows.length < 2) continue;
  const key = (row, at) => {
    const cell = row.cells[at];
    if (!cell) return null;
    if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
    return cell.classList.contains("number") ? null : cell.textContent;
  };
  const compare = (a, b) => {
    // What has no number stands last, whichever way is sorted.
    if (a === null || b === null) return a === b ? 0 : a === null ? Infinity : -Infinity;
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  };
  Array.from(table.tHead.rows[0].cells).forEach((head, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const keyed = rows.map((row, place) => ({ row, place, key: key(row, at) }));
      keyed.sort((a, b) => {
        const order = compare(a.key, b.key);
        if (!Number.isFinite(order)) return order > 0 ? 1 : -1;
        return (down ? -order : order) || a.place - b.place;
      });
      body.append(...keyed.map((entry) => entry.row));
    });
  });
}
