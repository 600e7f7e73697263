// The likeliest next tokens as bars, which follow temperature, top k and top p while these are turned: from the logits of the run.

/**
 * Probabilities of the first `count` tokens when sampling, likeliest first. `logits` are those of all tokens, from the largest to the
 * smallest: top k and top p keep the first ones.
 */
function sampled(logits, { temperature, topK, topP }, count) {
  const kept = topK ? logits.subarray(0, topK) : logits;
  const weights = Float64Array.from(kept, (logit) => Math.exp((logit - logits[0]) / temperature));
  const all = weights.reduce((sum, weight) => sum + weight, 0);
  let end = 0;
  let total = 0; // the weight of all likelier tokens together
  while (end < weights.length && total / all < topP) total += weights[end++];
  return Array.from({ length: count }, (_, at) => (at < end ? weights[at] / total : 0));
}

class Next extends Drawing {
  constructor(parent) {
    super(parent, "next");
  }

  needs() { return ["logits"]; }

  form() {
    const { run, tokens, knobs, turned } = this.header;
    return JSON.stringify([run, tokens, knobs, turned]);
  }

  build() {
    const { texts, tokens, knobs, begun, turned } = this.header;
    this.set = Object.fromEntries(knobs.map(({ name, value }) => [name, value]));
    const go = (id) => this.choose(continuation(begun, begun.length, id));
    const rows = tokens.map(({ id, text, chosen }) =>
      candidateRow(text, 0, chosen ? "chosen" : "", { type: "button", "data-id": id, onclick: () => go(id) }));
    this.bars = el("div", { class: "candidates" }, ...rows, candidateRow(texts.others, 0, "others"));
    this.root.replaceChildren(...(turned ? [el("div", { class: "knobs" }, ...knobs.map((knob) => this.knob(knob)))] : []), this.bars);
  }

  /** A slider with its label and its value. */
  knob({ name, label, value, least, most, step, digits }) {
    const shown = () => fixed(this.set[name], digits);
    const told = el("output", {}, shown());
    const turn = ({ target }) => {
      this.set[name] = Number(target.value);
      told.textContent = shown();
      this.redraw();
    };
    return el("label", {}, el("span", {}, label), el("input", { type: "range", name, min: least, max: most, step, value, oninput: turn }), told);
  }

  take() {
    this.logits = this.part("logits").blobs.logits.array;
  }

  draw() {
    const { tokens, texts } = this.header;
    const shares = sampled(this.logits, this.set, tokens.length);
    const others = Math.max(0, 1 - shares.reduce((sum, share) => sum + share, 0));
    for (const [at, row] of [...this.bars.children].entries()) {
      const share = shares[at] ?? others;
      row.dataset.probability = share;
      row.querySelector("i").style.setProperty("--share", share);
      row.querySelector(".number").textContent = exactly(share);
      if (tokens[at]) row.title = fill(texts.continue, { token: tokens[at].text, probability: exactly(share) });
    }
  }
}
