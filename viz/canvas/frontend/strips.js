// Token strips: the source and the target, each generated token with its probability and its alternatives.

class Strips extends Drawing {
  constructor(parent) {
    super(parent, "strips");
    this.readout.classList.add("unseen");
  }

  form() {
    const { strips, queryStrip, rows } = this.header;
    return JSON.stringify([strips, queryStrip, rows]);
  }

  build() {
    const { strips, texts } = this.header;
    this.chips = strips.map((strip) => strip.tokens.map((token, at) => chip(token, at, this.listeners(strip, token, at))));
    this.root.replaceChildren(
      el("div", { class: "strips" }, ...strips.map((strip, i) => chipStrip(strip, this.chips[i], texts))),
      this.readout,
    );
    this.eachChip((node, strip, token) => node.toggleAttribute("data-selectable", this.selectable(strip, token)));
  }

  /** True if the token has a query row at the selected site. */
  selectable(strip, token) {
    if (this.header.hides) return strip.name in this.header.hides;
    return strip.name === this.header.queryStrip && token.row >= 0 && token.row < this.header.rows;
  }

  listeners(strip, token, position) {
    const enter = ({ currentTarget }) => this.enter(currentTarget, strip, token, position);
    const leave = () => { this.hideTip(); point({}); };
    const onclick = () => this.select(strip, token, position);
    return { onpointerenter: enter, onfocus: enter, onpointerleave: leave, onblur: leave, onclick };
  }

  enter(node, strip, token, position) {
    const { x, bottom, top } = node.getBoundingClientRect();
    this.showTip({ x, y: top, height: bottom - top }, ...aboutToken(token, strip, this.header.texts));
    this.say(tokenSentence(token, this.header.texts), { query: token.row >= 0 ? token.row : undefined });
    const query = token.row >= 0 ? { queryStrip: strip.name, query: token.row } : {};
    point(strip.written ? query : { ...query, keyStrip: strip.name, key: position });
  }

  select(strip, token, position) {
    if (!this.selectable(strip, token)) return;
    if (this.header.hides) return this.setTriggerValue("edit", { act: "hide", strip: strip.name, position });
    this.header.query = token.row;
    this.choose({ query: token.row });
    this.redraw();
  }

  draw() {
    const { header, pointed } = this;
    this.eachChip((node, strip, token) => {
      const { classList, dataset } = node;
      const position = Number(dataset.position);
      const selected = strip.name === header.queryStrip ? header.query : -1;
      const lit = strip.name === pointed.queryStrip ? pointed.query : null;
      classList.toggle("selected", selected >= 0 && token.row === selected);
      classList.toggle("lit", lit !== null && token.row === lit);
      classList.toggle("reads", strip.written && position === (lit ?? selected));
      classList.toggle("key", strip.name === pointed.keyStrip && position === pointed.key);
      const hidden = header.hides?.[strip.name]?.includes(position);
      classList.toggle("hidden", Boolean(hidden));
      if (hidden !== undefined) node.setAttribute("aria-pressed", hidden);
    });
  }

  /** Calls `visit(chip, strip, token)` for every chip. */
  eachChip(visit) {
    this.header.strips.forEach((strip, i) => strip.tokens.forEach((token, j) => visit(this.chips[i][j], strip, token)));
  }
}
