// Tile pyramid of a head that is too large to send whole: tiles are fetched as they come into view. Level 0 is exact; a cell of
// level n stands for 2ⁿ × 2ⁿ cells, by their largest weight or their mean.

const REST_MS = 60; // a pointer that rests this long fetches the exact weight

class TilePyramid {
  /**
   * `place` is the part's entry in the scene, with its finest level if that is not 0. `fetched(address)` returns a cached tile, or
   * null and fetches it.
   */
  constructor(place, partsAddress, fetched) {
    Object.assign(this, { finest: 0 }, place, { address: `${partsAddress}/${place.name}`, fetched, pooling: "max" });
  }

  at(level, row, column, pooling = this.pooling) {
    return `${this.address}/${level ? pooling : "exact"}/${level}/${row}/${column}`;
  }

  /** The finest level whose cells are no smaller than a pixel, so that no weight falls between pixels. */
  levelFor(cellsInPixel) {
    return Math.min(Math.max(Math.ceil(Math.log2(cellsInPixel) - 1e-6), this.finest), this.levels - 1);
  }

  /** Paints the visible part at (x, y) in device pixels, from the finest tiles in the cache. */
  paintInto(pen, colours, { x, y, width, height }, shown) {
    const perPixel = Math.max((shown.right - shown.left) / width, (shown.bottom - shown.top) / height);
    const wanted = this.levelFor(perPixel);
    pen.save();
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.beginPath();
    pen.rect(x, y, width, height);
    pen.clip();
    pen.fillStyle = colours.masked;
    pen.fillRect(x, y, width, height);
    pen.imageSmoothingEnabled = false;
    const across = (cell) => x + Math.round(((cell - shown.left) * width) / (shown.right - shown.left));
    const down = (cell) => y + Math.round(((cell - shown.top) * height) / (shown.bottom - shown.top));
    const finest = this.visible(wanted, shown).map((tile) => ({ ...tile, image: this.image(tile, colours, this.fetched) }));
    const coarser = finest.every(({ image }) => image) ? [] : this.coarser(wanted, shown, colours);
    for (const { left, top, right, bottom, image } of [...coarser, ...finest]) {
      const [from, above] = [across(left), down(top)];
      if (image) pen.drawImage(image, from, above, across(right) - from, down(bottom) - above);
    }
    pen.restore();
  }

  /** Tiles of coarser levels, coarsest first. Only the coarsest is fetched; the others are used if they are cached. */
  coarser(wanted, shown, colours) {
    const top = this.levels - 1;
    const levels = Array.from({ length: Math.max(0, top - wanted) }, (_, i) => top - i);
    const get = (level) => (level === top ? this.fetched : (address) => partFetcher.get(address));
    return levels.flatMap((level) => this.visible(level, shown).map((tile) => ({ ...tile, image: this.image(tile, colours, get(level)) })));
  }

  /** The tiles of a level in the visible part, each with the range of cells it covers. */
  visible(level, { left, top, right, bottom }) {
    const size = this.side * 2 ** level;
    const range = (from, to, count) => {
      const [first, last] = [Math.floor(from / size), Math.min(Math.ceil(to / size), Math.ceil(count / size))];
      return Array.from({ length: Math.max(0, last - first) }, (_, i) => first + i);
    };
    return range(top, bottom, this.rows).flatMap((row) => range(left, right, this.columns).map((column) => {
      const [x, y] = [column * size, row * size];
      return { level, row, column, left: x, top: y, right: Math.min(x + size, this.columns), bottom: Math.min(y + size, this.rows) };
    }));
  }

  /** A tile as an image with one pixel per cell; null if it is not cached. */
  image({ level, row, column }, colours, get) {
    const tile = get(this.at(level, row, column));
    if (!tile) return null;
    if (tile.painted !== colours.background) {
      const { mask: { shape: [rows, columns], array: mask }, codes, exact } = tile.blobs;
      const cells = grid(rows, columns, codes?.array ?? encoded(exact.array), mask);
      tile.image = Object.assign(document.createElement("canvas"), { width: columns, height: rows });
      paint(tile.image.getContext("2d"), cells, colours, { x: 0, y: 0, width: columns, height: rows });
      tile.painted = colours.background;
    }
    return tile.image;
  }

  /** The weight of a cell from the finest cached tile: exact at level 0, else an upper bound. `rest` makes it exact. */
  cellAt(row, column) {
    for (let level = 0; level < this.levels; level++) {
      const size = this.side * 2 ** level;
      const [tileRow, tileColumn] = [Math.floor(row / size), Math.floor(column / size)];
      const tile = partFetcher.get(this.at(level, tileRow, tileColumn, "max"));
      if (tile) return this.read(tile, Math.floor((row % size) / 2 ** level), Math.floor((column % size) / 2 ** level));
    }
    return { weight: undefined, exact: false, masked: false, most: true };
  }

  read({ blobs: { exact, codes, mask } }, row, column) {
    const at = row * mask.shape[1] + column;
    const masked = !mask.array[at];
    return exact ? { weight: exact.array[at], exact: true, masked } : { weight: (codes.array[at] / 255) ** 2, exact: false, masked, most: true };
  }

  /** Fetches the exact tile of a cell once the pointer has rested for a moment. */
  rest(row, column) {
    clearTimeout(this.resting);
    if (this.finest) return;
    this.resting = setTimeout(() => this.fetched(this.at(0, Math.floor(row / this.side), Math.floor(column / this.side))), REST_MS);
  }
}
