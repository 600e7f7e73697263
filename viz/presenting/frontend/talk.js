// A lecture as its slides and its state: the present step, which questions were closed or revealed, a view off the path.

class Talk {
  /** `changed(what)` hears every change: the fields that changed, with their values. */
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
    const covered = phase !== null && phase !== "revealed" && !away;
    const question = slide.question && { ...slide.question, phase, answer: phase === "revealed" ? answers[step] : undefined };
    return {
      step, steps: this.slides.length, ...slide, question, covered,
      view: away ?? (covered ? null : views[step]), points: covered || away ? [] : slide.points,
    };
  }

  /** A clicker's next: closes the question, reveals the answer, goes to the next step. */
  next(quick = false) {
    const { phase } = this;
    if (this.away) return this.home();
    if (phase === "open" && !quick) return this.setPhase("closed");
    if (phase === "open" || phase === "closed") return this.setPhase("revealed");
    if (this.step + 1 < this.slides.length) this.go(this.step + 1);
  }

  back() {
    if (this.away) return this.home();
    if (this.step > 0) this.go(this.step - 1);
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

/** Puts the question over the stage while it waits for answers, then below the words. */
function placeQuestion(covered) {
  const [cover, below, box] = ["cover", "below", "question"].map((id) => document.getElementById(id));
  const home = covered ? cover : below;
  if (box.parentElement !== home) home.append(box);
  cover.hidden = !covered;
  document.getElementById("stage").classList.toggle("covered", covered);
}

/** Scrolls the words: a step begins at its top; when the run answers, its answer comes into sight. Else they stay where they are. */
function scrollWords(step, phase) {
  const side = document.querySelector(".side");
  const now = `${step}/${phase}`;
  if (side.dataset.at === now) return;
  side.dataset.at = now;
  side.scrollTop = 0;
  if (phase !== "revealed") return;
  const box = document.getElementById("question");
  for (const each of [box, box.querySelector(".right, .answer")]) each?.scrollIntoView({ block: "nearest" });
}

/** The strip of chapters; each has a mark for each of its steps. */
function chapterStrip(talk) {
  const chapters = [];
  talk.slides.forEach(({ chapter }, step) => {
    if (!chapters.length || chapters.at(-1).chapter !== chapter) chapters.push({ chapter, steps: [] });
    chapters.at(-1).steps.push(step);
  });
  return chapters.map(({ chapter, steps }) => {
    const dots = steps.map((step) => el("button", {
      type: "button", class: "dot", title: talk.slides[step].title || `${step + 1}`, onclick: () => talk.go(step),
      "aria-label": `${step + 1} ${talk.slides[step].title}`, "aria-current": step === talk.step ? "step" : false,
    }));
    const now = steps.includes(talk.step);
    return el("div", { class: now ? "chapter now" : "chapter" }, el("span", { class: "name" }, chapter || "·"), el("span", { class: "dots" }, ...dots));
  });
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
