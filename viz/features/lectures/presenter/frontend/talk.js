// A lecture as its slides and its state: the present step, which questions were closed or revealed, a view off the path.

class Talk {
  /** `changed(what)` hears every change: the fields that changed, with their values. `unmoved(why)`, if it is set, hears of keys beyond an end. */
  constructor(slides, changed, step = 0) {
    Object.assign(this, { slides, changed, step, phases: new Map(), away: null, black: false });
  }

  get slide() {
    return this.slides[this.step];
  }

  /** The phase of the present question; null: the step asks nothing. */
  get phase() {
    return this.slide.question ? (this.phases.get(this.step) ?? "open") : null;
  }

  /** What a page shows now. `views` and `answers` by step. */
  shown(views, answers) {
    const { slide, step, phase, away } = this;
    const asks = phase !== null && phase !== "revealed"; // what answers the question is not on the page yet
    const covered = asks && !away;
    const question = slide.question && { ...slide.question, phase, answer: phase === "revealed" ? answers[step] : undefined };
    return {
      step, steps: this.slides.length, ...slide, question, covered,
      view: away ?? (asks ? null : views[step]), words: asks ? "" : slide.words, points: asks || away ? [] : slide.points,
    };
  }

  /** A clicker's next: closes the question, reveals the answer, goes to the next step. */
  next(quick = false) {
    const { phase } = this;
    if (this.away) return this.home();
    if (phase === "open" && !quick) return this.setPhase("closed");
    if (phase === "open" || phase === "closed") return this.setPhase("revealed");
    if (this.step + 1 < this.slides.length) return this.go(this.step + 1);
    this.unmoved?.("last");
  }

  back() {
    if (this.away) return this.home();
    if (this.step > 0) return this.go(this.step - 1);
    this.unmoved?.("first");
  }

  go(step) {
    Object.assign(this, { step, away: null, black: false });
    this.changed({ step });
  }

  setPhase(phase) {
    this.phases.set(this.step, phase);
    this.changed({ phase });
  }

  /** Shows a view off the path. */
  leave(view) {
    this.away = view;
    this.changed({ view });
  }

  home() {
    this.away = null;
    this.changed({ view: "" });
  }

  blacken() {
    this.black = !this.black;
    this.changed({ black: this.black });
  }
}

/** Takes what was prepared: the pictures, and what answers the questions, which stays out of the page until it is revealed. */
function takePrepared(slides, made, { views, problems, words, points, questions, answers }) {
  Object.assign(made, { views, problems, answers });
  slides.forEach((slide, step) => Object.assign(slide, { words: words[step], points: points[step], question: questions[step] ?? null }));
}

/** Draws ahead what the next keys show. Of an open question nothing is drawn, which could be read; its picture is only fetched. */
function drawAround(stage, talk, views, near) {
  if (talk.phase !== "open") return stage.prepare(near.map((step) => views[step]));
  for (const name of [views[talk.step], views[talk.step + 1]]) if (name) stage.fetch(name).catch(() => {});
  return stage.prepare([]);
}

const [LEAST_PX, SHRINKING] = [16, 0.95];

/** Makes the text of the side smaller until all of it is seen: a clicker does not scroll. Never smaller than 16 pixels. */
function fitWords() {
  const side = document.querySelector(".side");
  for (let share = 1; ; share *= SHRINKING) {
    side.style.setProperty("--fit", share);
    const cut = side.scrollHeight > side.clientHeight || side.scrollWidth > side.clientWidth;
    if (!cut || parseFloat(getComputedStyle(side).fontSize) * SHRINKING < LEAST_PX) return;
  }
}

/** Shows the words of a step from their heading on; what is right comes into sight if they are longer than the window. */
function showWords(step, phase) {
  fitWords();
  const side = document.querySelector(".side");
  const now = `${step}/${phase}`;
  if (side.dataset.at === now) return;
  side.dataset.at = now;
  side.scrollTop = 0;
  if (phase === "revealed") document.querySelector("#question :is(.right, .answer)")?.scrollIntoView({ block: "nearest" });
}

/** The step that an address names as the page counts them, from 1; it counts them from 0 inside. */
function stepNamed(hash, slides) {
  return Math.min(Math.max(0, (Math.trunc(Number(hash.slice(1))) || 1) - 1), slides.length - 1);
}

/** What an address names a step. */
const hashOf = (step) => `#${step + 1}`;

const BETWEEN_ADDRESSES = 125; // ms; of a page that changes its address more than 100 times in 10 s, WebKit stops the script

/** Writes the present step into the address bar, after everything else; of those that a held key passes some are left out. */
class StepAddress {
  constructor(talk) {
    Object.assign(this, { talk, written: -BETWEEN_ADDRESSES, waiting: null, known: location.hash });
    addEventListener("hashchange", () => { this.known = location.hash; });
  }

  tell() {
    this.waiting ??= setTimeout(() => this.write(), this.written + BETWEEN_ADDRESSES - performance.now());
  }

  write() {
    Object.assign(this, { written: performance.now(), waiting: null });
    if (location.hash !== this.known) return; // somebody has just gone to another step by its address, which the page will hear of
    try {
      history.replaceState(null, "", hashOf(this.talk.step));
      this.known = location.hash;
    } catch { // in a frame or from a disk a browser may refuse it: then the address stays as it is
    }
  }
}

/** The chapters as a list that opens, the present one as "3 / 8 · Masks"; beside it a mark for each of its steps. */
function chapterStrip(talk) {
  const chapters = [];
  talk.slides.forEach(({ chapter }, step) => {
    if (!chapters.length || chapters.at(-1).chapter !== chapter) chapters.push({ chapter, steps: [] });
    chapters.at(-1).steps.push(step);
  });
  const now = chapters.findIndex(({ steps }) => steps.includes(talk.step));
  const named = ({ chapter }, at) => [`${at + 1} / ${chapters.length}`, chapter].filter(Boolean).join(" · ");
  const list = el("select", { "aria-label": document.getElementById("chapters").getAttribute("aria-label"), onchange: () => talk.go(Number(list.value)) },
    ...chapters.map((each, at) => el("option", { value: each.steps[0], selected: at === now }, named(each, at))));
  const dots = chapters[now].steps.map((step) => el("button", {
    type: "button", class: "dot", title: talk.slides[step].title || `${step + 1}`, onclick: () => talk.go(step),
    "aria-label": `${step + 1} ${talk.slides[step].title}`, "aria-current": step === talk.step ? "step" : false,
  }));
  return [list, el("span", { class: "dots" }, ...dots)];
}

/** Calls the function of a key before drawings see it, unless something that takes keys has the focus. */
function onKeys(keys) {
  document.addEventListener("keydown", (event) => {
    const act = keys[event.key] ?? keys[event.key.toLowerCase()];
    const always = event.key === "PageDown" || event.key === "PageUp";
    if (!act || event.ctrlKey || event.metaKey || event.altKey || (keyboardTaken() && !always)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    act();
  }, { capture: true });
}
