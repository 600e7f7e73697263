// Token strips: the source and the target, each generated token with its probability and its alternatives.

const TO_THE_TIP_MS = 250;
const MOST_LINES = 3; // of chips; of more, two are shown until all are asked for, so that the maps below stay in sight

class Strips extends Drawing {
  constructor(parent) {
    super(parent, "strips");
    this.readout.classList.add("unseen");
    this.whole = new Set(); // strips that are shown whole although they are long
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
    this.fold();
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

  /** Cuts long strips; a token that was selected since is shown. A conversation is cut by its turns instead. */
  fold() {
    const { header: { query, queryStrip, texts } } = this;
    const cut = [...this.root.querySelectorAll(".strip")].filter(
      (strip) => strip.querySelector(".chip") && !strip.querySelector(".turn") && foldLines(strip, this.whole, texts, () => this.redraw()),
    );
    const shown = JSON.stringify([query, queryStrip, this.width, cut.length]);
    if (shown === this.shown) return; // whoever moves through the tokens by keys is not pulled back
    this.shown = shown;
    for (const strip of cut) {
      const at = strip.dataset.strip === queryStrip && query >= 0 ? strip.querySelector(`.chip[data-row="${query}"]`) : null;
      if (at) keepInView(at);
      else strip.lastElementChild.scrollTop = 0;
    }
  }

  /** Calls `visit(chip, strip, token)` for every chip. */
  eachChip(visit) {
    this.header.strips.forEach((strip, i) => strip.tokens.forEach((token, j) => visit(this.chips[i][j], strip, token)));
  }
}

/**
 * Cuts the chips of a strip to two lines if they take too many, with a button for all; true if they are cut. A page that has room for all
 * says so in CSS (--headlight-strip).
 *
 * @param whole names of the strips of which all was asked for.
 */
function foldLines(strip, whole, texts, again) {
  const [title, box] = strip.children;
  const { dataset: { strip: name } } = strip;
  const gap = parseFloat(getComputedStyle(box).rowGap);
  const line = box.firstElementChild.offsetHeight + gap;
  box.style.setProperty("--two-lines", `${2 * line - gap + 2}px`);
  box.classList.add("two-lines");
  const long = box.scrollHeight > box.clientHeight + 1 && box.scrollHeight > MOST_LINES * line;
  const cut = long && !whole.has(name);
  box.classList.toggle("two-lines", cut);
  const button = title.querySelector(".fold") ?? title.appendChild(el("button", { type: "button", class: "fold" }));
  button.hidden = !long;
  button.textContent = cut ? fill(texts.all, { count: box.querySelectorAll(".chip").length }) : texts.fewer;
  button.setAttribute("aria-expanded", !cut);
  button.onclick = () => { if (!whole.delete(name)) whole.add(name); again(); };
  return cut;
}
