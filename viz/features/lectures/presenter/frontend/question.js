// The question of a step: what a student answers with, and the live picture of all answers.

const SHORT = 4; // options of at most so many characters are side by side
const LEAST = 0.005; // weights below this are shown as 0.00
const LONG = 16; // longer options break into lines beside their numbers

const NEAR = 0.1; // a number is right within this share of the run's, or within half of its second decimal

const BLANK = document.documentElement.lang.startsWith("zh") ? "" : " "; // Chinese sentences follow without a blank

const near = (own, number) => Math.abs(own - number) <= Math.max(NEAR * Math.abs(number), 0.005);

const LARGEST_SENT = 1e12; // as the server accepts it
const GROUPED = /^[-+]?[1-9]\d{0,2}([.,])\d{3}(?:\1\d{3})*$/; // 9,984 or 9.984
const PLAIN = /^[-+]?(?:\d+[.,]?\d*|[.,]\d+)(?:e[-+]?\d+)?$/i;

/** The sign that groups thousands in the language of the page. */
const GROUP = new Intl.NumberFormat(LANGUAGE).formatToParts(1234567).find(({ type }) => type === "group")?.value ?? ",";

/**
 * The number that was typed, in the way of the page's language, with or without its unit; null: it is none. A quantity that is
 * `counted`, such as bytes, has no decimals, so that both signs group its thousands. Blanks between digits group them, too.
 */
function typedNumber(text, counted = false) {
  const bare = text.normalize("NFKC").trim().replace(/[−–]/g, "-").replace(/(?<=\d)[\s'’](?=\d{3})/g, "").replace(/\s*(?:%|\p{L}+\.?)$/u, "");
  const several = bare.match(/[.,](?=\d{3}(?!\d))/g) ?? [];
  const group = bare.match(GROUPED)?.[1];
  if (group && (counted || group === GROUP || several.length > 1)) return inRange(Number(bare.replaceAll(group, "")));
  const [whole, part, more] = bare.split(GROUP === "," ? "." : ",");
  if (part && more === undefined && GROUPED.test(whole) && whole.includes(GROUP) && /^\d+$/.test(part)) return inRange(Number(`${whole.replaceAll(GROUP, "")}.${part}`));
  return PLAIN.test(bare) ? inRange(Number(bare.replace(",", "."))) : null;
}

const inRange = (value) => (Math.abs(value) <= LARGEST_SENT ? value : null);

class QuestionBox {
  /**
   * Draws into `box`. `answered(step, value)` sends an answer and gives {outcome, value}, the value that counts; null: no answers here.
   * While a class answers (`polled`), its counts are hidden until the question is closed, or shown at once (`early`).
   */
  constructor(box, texts, answered) {
    Object.assign(this, { box, texts, answered, own: new Map(), polled: false, early: false });
  }

  toggleEarly() {
    this.early = !this.early;
    this.redraw?.();
  }

  /** Shows the question of a step with the counts that are known; null: none. */
  show(step, question, counts) {
    this.box.hidden = !question;
    if (!question) return this.box.replaceChildren();
    if (counts?.step !== step) counts = null;
    const { prompt, layout, phase, answer } = question;
    const head = el("div", { class: "prompt" });
    setWords(head, prompt);
    const told = counts?.answered && (this.early || phase !== "open") ? counts : null;
    const body = layout === "number" ? this.number(step, question, told) : this.options(step, question, told);
    const said = answer?.text ? [el("p", { class: "answer" }, answer.text)] : [];
    const known = answer && answer.number !== null ? [el("p", { class: "answer" }, this.right(question, answer))] : [];
    const short = layout === "list" && question.options.length > 4 && question.options.every((text) => text.length <= SHORT);
    this.box.className = `question ${layout} ${phase}${short ? " short" : ""}`;
    const shown = [...this.verdict(step, question), head, ...this.given(question), ...body, ...known, ...said];
    this.box.replaceChildren(...shown, this.note(step, phase, counts), ...this.earlySwitch(phase));
  }

  /** A number with the unit of the question. */
  quantity(value, { unit = "" }, digits) {
    const number = inSentence(value, digits);
    return unit === "%" ? fill(this.texts.percent, { number }) : [number, unit].filter(Boolean).join(" ");
  }

  /** The answer of the run as a sentence. */
  right(question, answer) {
    const { number } = answer;
    const said = number === null ? answer.right.map((at) => question.options[at]).join(", ") : this.quantity(number, question, Number.isInteger(number) ? 12 : 4);
    return fill(this.texts.runSays, { number: said });
  }

  /** Whether the own answer is right, and else what is: before everything else. */
  verdict(step, question) {
    const { options, phase, answer } = question;
    if (!this.answered || phase !== "revealed" || !answer) return [];
    const { texts, own } = this;
    if (!own.has(step)) return [el("p", { class: "verdict" }, `${texts.unanswered}${BLANK}`, el("span", {}, this.right(question, answer)))];
    const mine = own.get(step);
    const right = answer.number === null ? answer.right.includes(mine) : near(mine, answer.number);
    const said = fill(texts.yours, { answer: answer.number === null ? options[mine] : this.quantity(mine, question, 12) });
    const exact = answer.number === null ? right : mine === answer.number;
    const rest = exact ? said : `${said} · ${this.right(question, answer)}`;
    return [el("p", { class: `verdict ${right ? "good" : "bad"}`, role: "status" }, `${right ? "✓" : "✗"} ${right ? texts.youRight : texts.youWrong}${BLANK}`, el("span", {}, rest))];
  }

  /** The picture of a question that is not revealed: its tokens, those outlined that it asks about. */
  given({ given = [], phase }) {
    if (phase === "revealed" || !given.length) return [];
    const token = (outlined) => (text, at) => el("bdi", { class: outlined.includes(at) ? "token asked" : "token" }, text);
    return [el("div", { class: "given" }, ...given.map((strip) => el("div", { class: "strip" },
      el("span", { class: "faint" }, strip.title), el("div", {}, ...strip.tokens.map(token(strip.outlined))))))];
  }

  /** The switch that shows the counts of an open question. */
  earlySwitch(phase) {
    if (!this.polled || phase !== "open") return [];
    const onclick = ({ currentTarget }) => { currentTarget.blur(); this.toggleEarly(); };
    return [el("button", { type: "button", class: "early", "aria-pressed": String(this.early), onclick }, this.texts.early)];
  }

  /** What became of the own answer, or how many came. */
  note(step, phase, counts) {
    const { texts, own } = this;
    const count = counts ? fill(texts.answers, { count: counts.answered }) : "";
    const closed = (this.answered || this.polled) && phase === "closed" ? texts.closed : "";
    const mine = own.has(step) && phase === "open" ? texts.counted : closed;
    return el("p", { class: "note", role: "status" }, [mine, count].filter(Boolean).join(BLANK));
  }

  /** A button for each option; with counts as a bar, or as a shade where the options are tokens. */
  options(step, { options, layout, phase, answer }, counts) {
    const all = counts?.counts ?? [];
    const most = Math.max(1, ...all);
    const total = Math.max(1, counts?.answered ?? 0);
    const open = this.answered && phase === "open" && !this.own.has(step);
    const tells = (at) => answer?.right.includes(at) || this.own.get(step) === at || all[at] || answer?.shares[at] >= LEAST;
    const buttons = options.map((text, at) => {
      if (layout === "tokens" && answer && !tells(at)) return ""; // a long row has many weights that are shown as 0.00
      const share = all.length ? all[at] / most : 0;
      const right = answer?.right.includes(at);
      const names = ["option", this.own.get(step) === at ? "mine" : "", right ? "right" : "", text.length > LONG ? "long" : ""].filter(Boolean).join(" ");
      const figures = [];
      if (all.length) figures.push(el("span", { class: "number" }, fill(this.texts.percent, { number: Math.round((100 * all[at]) / total) })));
      if (answer?.shares.length) figures.push(el("span", { class: "number run" }, fixed(answer.shares[at], 2)));
      if (right) figures.push(el("span", { class: "mark", "aria-label": this.texts.right }, "✓"));
      const onclick = () => this.send(step, at);
      return el("button", { type: "button", class: names, style: `--share: ${share}`, disabled: !open, onclick },
        el("bdi", {}, text), ...(figures.length ? [el("span", { class: "figures" }, ...figures)] : []));
    });
    return [el("div", { class: "options" }, ...buttons)];
  }

  /** A field with its label and unit; with counts, their histogram. */
  number(step, { phase, unit = "", counted = false }, counts) {
    const bars = counts?.bars?.length ? [barList({
      texts: counts.bars.map(({ from, to }) => (from === to ? significant(from, 6) : `${significant(from, 3)} – ${significant(to, 3)}`)),
      values: counts.bars.map(({ count }) => count), chosen: -1, digits: 0,
    })] : [];
    if (!this.answered || phase !== "open" || this.own.has(step)) return bars;
    if (this.form?.step !== step) this.form = { step, node: this.numberForm(step, unit, counted) }; // what was typed outlives new counts
    return [this.form.node, ...bars];
  }

  numberForm(step, unit, counted) {
    const field = el("input", { type: "text", inputmode: "decimal", autocomplete: "off", size: 12 });
    const problem = el("p", { class: "message", role: "alert" });
    const onsubmit = (event) => {
      event.preventDefault();
      const value = typedNumber(field.value, counted);
      problem.textContent = value === null ? fill(this.texts.noNumber, { text: field.value.trim(), example: inSentence(counted ? 1234 : 1234.5, 6) }) : "";
      if (value !== null) this.send(step, value);
    };
    const label = el("label", {}, `${this.texts.number} `, field, unit ? ` ${unit}` : "");
    return el("form", { onsubmit, class: "typed" }, label, el("button", { type: "submit", class: "option" }, this.texts.send), problem);
  }

  async send(step, value) {
    const { outcome, value: counted } = await this.answered(step, value);
    if (outcome === "counted" || outcome === "again") this.own.set(step, counted);
    this.redraw?.();
  }
}
