// Tokens as chips, and the candidates of a step as bars, for the strips and the player.

const PIECE = "##"; // begins a piece that continues a word; it stands on the left, where the word begins, in each script

/** One token as a chip. `row` is its query row, in a decoder the row that generated it. */
function chip(token, position, listeners) {
  const node = el(
    "button",
    {
      type: "button",
      class: ["chip", token.special && "special", token.unknown && "unknown", token.byHand && "by-hand", token.part && "part"].filter(Boolean).join(" "),
      tabindex: position ? -1 : 0,
      "data-position": position,
      "data-row": token.row,
      "data-probability": token.probability,
      ...listeners,
    },
    el("bdi", { dir: token.label.startsWith(PIECE) ? "ltr" : null }, token.part ? "·" : token.label),
  );
  if (token.probability !== undefined) node.append(el("span", { class: "bar" }, shareOf(token.probability)));
  return node;
}

/** The filled share of a bar. */
function shareOf(probability) {
  const part = el("i");
  part.style.setProperty("--share", probability);
  return part;
}

/**
 * The candidates of one step as rows of text, bar and number; the last row sums up all other tokens. Where `go` is given, a row is a
 * button that continues from it: `go(id)`.
 */
function candidateList(candidates, texts, go) {
  const rest = 1 - candidates.reduce((sum, { probability }) => sum + probability, 0);
  const rows = candidates.map(({ id, text, probability, chosen }) => {
    const label = fill(texts.continue, { token: text, probability: exactly(probability) });
    const button = go && { type: "button", "data-id": id, title: label, onclick: () => go(id) };
    return candidateRow(text, probability, chosen ? "chosen" : "", button);
  });
  if (rest > 0.00005) rows.push(candidateRow(texts.others, rest, "others"));
  return el("div", { class: "candidates" }, ...rows);
}

function candidateRow(text, probability, kind, button) {
  return el(
    button ? "button" : "div",
    { class: `candidate ${kind}`, "data-probability": probability, ...button },
    el("bdi", {}, text),
    el("span", { class: "share" }, shareOf(probability)),
    el("span", { class: "number" }, exactly(probability)),
  );
}

/** What `choose` reports to continue a decode with another token: the ids before it, and its own. */
function continuation(continues, step, id) {
  return { begin: [...continues.slice(0, step), id].join() };
}

/** Content of a token's tooltip; `go` as for `candidateList`. */
function aboutToken(token, strip, texts, go) {
  const notes = [token.special && texts.special, token.unknown && texts.unknown, token.byHand && texts.byHand];
  if (token.within) notes.push(fill(texts.within, { whole: token.within }));
  notes.push(!token.special && signOf(token.text, texts));
  if (strip.generated && token.probability === undefined) notes.push(texts.given);
  return [
    el("b", {}, token.text),
    ...notes.filter(Boolean).map((note) => el("p", {}, note)),
    ...(token.candidates ? [candidateList(token.candidates, texts, go)] : []),
  ];
}

/** What the sign at the beginning of a token stands for; undefined: it begins with a letter. */
function signOf(text, texts) {
  if (text.startsWith(PIECE)) return texts.piece;
  if (/\\x[0-9a-f]{2}/.test(text)) return texts.bytes;
  return { "␣": texts.blank, "▁": texts.blank, "Ġ": texts.blank, "↵": texts.lineBreak }[text[0]];
}

/** One sentence about a token, for screen readers. */
function tokenSentence(token, texts) {
  const said = token.probability === undefined ? texts.token : texts.written;
  const about = fill(said, { token: token.text, probability: token.probability === undefined ? "" : exactly(token.probability) });
  return [about, token.unknown && texts.unknown, token.byHand && texts.byHand].filter(Boolean).join(" ");
}

/** A labeled strip of chips: one tab stop, arrow keys move inside it. */
function chipStrip(strip, chips, texts) {
  const box = el("div", { class: "chips", role: "group", "aria-label": strip.title }, ...inTurns(strip, chips, texts));
  box.addEventListener("keydown", (event) => {
    const at = chips.indexOf(event.target);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: chips.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const next = chips[Math.min(Math.max(to, 0), chips.length - 1)];
    if (next.classList.contains("earlier") && box.classList.contains("folded")) box.querySelector(".fold").click();
    for (const each of chips) each.tabIndex = each === next ? 0 : -1;
    next.focus();
  });
  return el("div", { class: "strip", "data-strip": strip.name }, el("div", { class: "title" }, strip.title), box);
}

const LONG = 70; // tokens of a conversation above which it opens at its last turn
const turnsShown = (globalThis.headlightTurnsShown ??= { all: false }); // each drawing is a module of its own

/**
 * The chips of a conversation, each turn in a line of its own: `strip.starts` are the first tokens of the turns and of the reply. A long
 * one opens at its last turn: a button shows the others.
 */
function inTurns({ starts }, chips, texts) {
  if (!starts?.length) return chips;
  const last = starts.at(-2) ?? 0;
  const folds = chips.length > LONG && last > 0;
  const lines = chips.flatMap((node, at) => {
    if (folds) node.classList.toggle("earlier", at < last);
    return at && starts.includes(at) ? [el("i", { class: at < last ? "turn earlier" : "turn" }), node] : [node];
  });
  if (!folds) return lines;
  const button = el("button", { type: "button", class: "fold" });
  const show = (all) => {
    turnsShown.all = all;
    button.parentElement?.classList.toggle("folded", !all);
    button.textContent = all ? texts.fold : fill(texts.earlier, { count: last });
    button.setAttribute("aria-expanded", all);
  };
  button.onclick = () => show(!turnsShown.all);
  show(turnsShown.all);
  queueMicrotask(() => show(turnsShown.all)); // by then it has a parent
  return [button, el("i", { class: "turn" }), ...lines];
}

/** Scrolls a chip into view within its strip, and nothing else. */
function keepInView({ parentElement, offsetTop, offsetHeight }) {
  const { scrollTop, clientHeight, children } = parentElement;
  if (offsetTop < scrollTop) parentElement.scrollTop = offsetTop;
  else if (offsetTop + offsetHeight > scrollTop + clientHeight) {
    const least = offsetTop + offsetHeight - clientHeight; // the first line that is whole comes to the top: none is cut there
    parentElement.scrollTop = Math.min(offsetTop, ...[...children].map((chip) => chip.offsetTop).filter((top) => top >= least));
  }
}

/** Shades a chip by a weight; null resets it. */
function shade({ style }, colours, weight) {
  const colour = weight === null ? null : colourOf(colours, weight);
  style.background = colour ? `rgb(${colour})` : "";
  style.borderColor = colour ? colours.line : "";
  style.color = colour ? inkOn(colour) : "";
}
