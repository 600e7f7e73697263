// Token strips: the source and the target, each generated token with its probability and its alternatives.

const TO_THE_TIP_MS = 250;

class Strips extends Drawing {
  constructor(parent) {
    super(parent, "strips");
    this.readout.classList.add("unseen");
    this.tip.addEventListener("pointerenter", () => clearTimeout(this.leaving));
    this.tip.addEventListener("pointerleave", () => this.leave());
    this.tip.addEventListener("pointerdown", (event) => event.preventDefault()); // the token keeps the focus
    this.tip.addEventListener("mousedown", (event) => event.preventDefault());
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
    const leave = () => this.leave();
    const onclick = () => this.select(strip, token, position);
    const onkeydown = (event) => this.onKey(event, token);
    return { onpointerenter: enter, onfocus: enter, onpointerleave: leave, onblur: leave, onclick, onkeydown };
  }

  enter(node, strip, token, position) {
    const { x, bottom, top } = node.getBoundingClientRect();
    clearTimeout(this.leaving);
    const go = this.goes(token);
    this.showTip({ x, y: top, height: bottom - top }, ...aboutToken(token, strip, this.header.texts, go));
    this.tip.classList.toggle("clickable", Boolean(go));
    this.offered = [...this.tip.querySelectorAll("button.candidate")];
    for (const each of this.offered) each.tabIndex = -1; // arrow keys move through them
    this.at = -1;
    this.say(tokenSentence(token, this.header.texts), { query: token.row >= 0 ? token.row : undefined });
    const query = token.row >= 0 ? { queryStrip: strip.name, query: token.row } : {};
    point(strip.written ? query : { ...query, keyStrip: strip.name, key: position });
  }

  /** Hides the tooltip, after a moment where its candidates can be clicked: the pointer may be on its way there. */
  leave() {
    clearTimeout(this.leaving);
    const hide = () => { this.hideTip(); this.offered = []; };
    if (this.offered?.length) this.leaving = setTimeout(hide, TO_THE_TIP_MS);
    else hide();
    point({});
  }

  /** Continues the decode from a candidate of a token; null where it cannot be continued. */
  goes({ candidates, step }) {
    const { continues } = this.header;
    return candidates && continues && ((id) => { this.offered = []; this.leave(); this.choose(continuation(continues, step, id)); });
  }

  /** Up and down move through the candidates of a token, Enter continues from one. */
  onKey(event, token) {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const there = this.offered?.[this.at];
    if (!(by && this.offered?.length) && !(event.key === "Enter" && there)) return;
    event.preventDefault();
    if (!by) return there.click();
    this.at = Math.min(Math.max(this.at + by, -1), this.offered.length - 1);
    this.offered.forEach((each, at) => each.classList.toggle("at", at === this.at));
    this.say(this.offered[this.at]?.getAttribute("aria-label") ?? tokenSentence(token, this.header.texts));
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
