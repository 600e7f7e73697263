// The names beside and above the tiles of a card, and the marks over them: rows, columns, the selected head, the one pointed at.

/** Writes the name of a head that was found above it, with the number that sorts it if there is room. */
function drawName(card, pen, tile) {
  const { texts } = card.atlas.header;
  const name = `${card.group.sites[tile.row].label} ${fill(texts.headShort, { head: tile.head + 1 })}`;
  const long = name + card.finder.number(tile);
  Object.assign(pen, { fillStyle: card.atlas.colours.faint, textAlign: "left" });
  pen.fillText(pen.measureText(long).width <= card.size ? long : name, tile.x, tile.y - 8, card.size + 4);
}

/** Writes the names of layers beside their rows and of heads above their columns; of one tile only, if `active`. */
function drawNames(card, pen, colour, font, { layers, heads, ranges = [] }, active) {
  const { headShort } = card.atlas.header.texts;
  Object.assign(pen, { fillStyle: colour, font, textBaseline: "middle", textAlign: "right" });
  for (const { layer, x, y } of layers) if (!active || active.row === layer) pen.fillText(card.group.sites[layer].label, x, y);
  for (const { layer, heads: [from, to], x, y } of ranges) {
    if (active && (active.row !== layer || active.head < from || active.head > to)) continue;
    pen.fillText(fill(headShort, { head: from === to ? from + 1 : `${from + 1}–${to + 1}` }), x, y);
  }
  pen.textAlign = "center";
  for (const { x, y, step, first } of heads) {
    const { shared } = card.group.sites[first];
    for (let head = 0; shared && !active && head < card.across; head += shared) { // a line joins the heads that share a key head
      pen.fillRect(x + head * step, y + 7, (shared - 1) * step + card.size, 1.5);
    }
    const widest = pen.measureText(fill(headShort, { head: card.across })).width;
    const every = Math.ceil((widest + 4) / step);
    for (let head = 0; head < card.across; head++) {
      if (active ? active.head !== head : head % every) continue;
      if (active && every > 1) pen.clearRect(x + head * step - widest, y - 7, 2 * widest + step, 14);
      pen.fillText(fill(headShort, { head: head + 1 }), x + head * step + card.size / 2, y);
    }
  }
}

/** Marks the pointed-at and selected rows and columns, the selected head, and the head under the pointer or the keyboard. */
function drawMarks(card, pen, tile, { row, column, selected }) {
  const { atlas, size, high } = card;
  const { colours } = atlas;
  const { x, y } = tile;
  if (selected >= 0) tick(card, pen, colours.accent, tile, "row", selected);
  if (row >= 0) mark(card, pen, colours.text, tile, "row", row);
  if (column >= 0) mark(card, pen, colours.second, tile, "column", column);
  if (atlas.isSilenced(tile)) crossOut(pen, colours, { x, y, width: size, height: high });
  const outline = (colour, line) => {
    Object.assign(pen, { strokeStyle: colour, lineWidth: line });
    pen.strokeRect(x - line / 2, y - line / 2, size + line, high + line);
  };
  if (same(tile, atlas.chosen)) outline(colours.accent, 2.5);
  if (tile === atlas.hovered?.tile || (card.keyboard && tile === card.tiles[card.at])) outline(colours.text, 1.5);
}

/** Outlines a row or column of a tile; if cells are small, marks it only at the edge. */
function mark(card, pen, colour, tile, axis, index) {
  const { x, y } = tile;
  const { size, high } = card;
  const step = axis === "row" ? high / tile.cells.rows : size / tile.cells.columns;
  if (step < 2.5) return tick(card, pen, colour, tile, axis, index);
  Object.assign(pen, { strokeStyle: colour, lineWidth: 1 });
  if (axis === "row") pen.strokeRect(x, y + index * step, size, step);
  else pen.strokeRect(x + index * step, y, step, high);
}

/** Marks a row at the left edge of a tile, a column at the top; the mark lies in the gap and covers no cell. */
function tick(card, pen, colour, tile, axis, index) {
  const { x, y } = tile;
  const at = (index + 0.5) * (axis === "row" ? card.high / tile.cells.rows : card.size / tile.cells.columns);
  const corners = [[0, at], [-4, at - 3], [-4, at + 3]];
  pen.fillStyle = colour;
  pen.beginPath();
  for (const [out, along] of corners) pen.lineTo(...(axis === "row" ? [x + out, y + along] : [x + along, y + out]));
  pen.fill();
}
