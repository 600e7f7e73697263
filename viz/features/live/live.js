// The sentence box as it is typed into: asks the live route after each short pause, and hands its scenes to the drawings of the page.
// The files before this one: choices.js (choices beside the sentence), leaving.js (what is typed when the page is left), answer.js (frames
// of the route), history.js (earlier sentences), page_script.js (whether Streamlit's script runs, and how it learns of the sentence).
// The box stays Streamlit's own. After a longer pause, or Enter, it gets an Enter key from here, so that the page's script learns of
// the sentence the usual way. Where the route fails, keys pass through untouched.

const QUIET_MS = 1000; // a pause after which the page's script learns of the sentence
const ENTER_MS = 700; // how long Enter waits for a picture before the script runs
const BOX = ".st-key-sentence [data-testid=stTextInput] input";
const AHEAD = "headlightAhead"; // attribute of the page: it shows a sentence that its script has not drawn yet
const BUSY = "headlightLive"; // attribute of the page: an answer is on its way
const WAITS = "headlightWaits"; // attribute of the page: its script waits for a run
const REFUSED = "data-headlight-refused"; // attribute of the page: what is typed cannot be run
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));

/** Whether the switch is on, in this browser's storage, which may be blocked. */
const storage = {
  key: "headlight-live",
  get() { try { return localStorage.getItem(this.key); } catch { return null; } },
  set(value) { try { localStorage.setItem(this.key, value); } catch { /* it is on again after a reload */ } },
};

class LiveBox {
  constructor(root) {
    this.button = root.querySelector("button");
    this.stopping = root.querySelector(".stop");
    this.said = root.querySelector(".said");
    this.history = new SentenceHistory();
    this.born = performance.now();
    this.script = new PageScript();
    this.choices = new Choices(() => this.choose(), (change) => this.setTriggerValue("changed", change));
    this.leaving = new Leaving((box) => this.script.enter(box), () => this.script.rests());
    this.button.addEventListener("click", () => this.turn(!this.on));
    this.stopping.addEventListener("click", () => fetch(this.path, { method: "DELETE" }));
  }

  take({ data, setTriggerValue }) {
    const { path, pause: ms, texts } = data;
    Object.assign(this, { path, ms, texts, setTriggerValue: pageLinks.here(setTriggerValue, this.born) });
    this.choices.take(data);
    this.leaving.take(data);
    this.script.rests().then(() => this.mend(data.text));
    this.button.textContent = texts.live;
    this.button.title = texts.help;
    this.stopping.textContent = texts.stop;
    const begins = this.listen();
    this.turn(storage.get() !== "off");
    if (begins && WAITS in document.documentElement.dataset) this.follow(); // the event came before this box listened
  }

  /** Follows the box, or leaves everything to the page's script. */
  turn(on) {
    this.on = on;
    this.button.setAttribute("aria-checked", on);
    storage.set(on ? "on" : "off");
    if (!on) this.giveUp();
  }

  /**
   * Gives the box back what was typed and the script has drawn. A script that ran when it was told may have put the sentence before it
   * into the box since then: the first run of a server that was just started takes longer than anybody waits.
   */
  mend(text) {
    const box = document.querySelector(BOX);
    if (box && text === liveScenes.typed && text === this.script.sent && box.value !== text && !this.composing) put(box, text);
  }

  /** Listens to the page; true if it did not before. */
  listen() {
    if (this.life && !this.life.signal.aborted) return false;
    this.life = new AbortController();
    const options = { signal: this.life.signal, capture: true };
    const heard = (type, act) => document.addEventListener(type, (event) => {
      if (event.target.matches?.(BOX)) act(event);
    }, options);
    heard("input", (event) => this.onInput(event));
    heard("compositionstart", () => { this.composing = true; this.forget(); });
    heard("compositionend", (event) => { this.composing = false; this.onInput(event); });
    heard("keydown", (event) => this.onKey(event));
    heard("focusout", () => this.forget()); // the box tells the script itself
    document.addEventListener("headlight:waiting", () => this.follow(), options);
    liveScenes.onOffered = (text) => this.script.offered(text);
    liveScenes.onDrawn = (live) => { this.choices.drawn(live); this.drawn(live.text); };
    this.choices.listen(this.life.signal);
    this.leaving.listen(this.life.signal);
    return true;
  }

  disconnect() {
    this.life.abort();
    this.giveUp();
    delete document.documentElement.dataset[AHEAD]; // another page is drawn
  }

  /** Forgets what was to happen after a pause. */
  forget() {
    clearTimeout(this.soon);
    clearTimeout(this.later);
  }

  onInput({ target }) {
    if (!this.on) return;
    liveScenes.box = target;
    this.forget();
    if (this.composing) return;
    this.leaving.note(target.value, this.path);
    liveScenes.typed = target.value;
    this.history.at = null;
    this.soon = setTimeout(() => this.ask(), this.ms);
    this.later = setTimeout(() => this.settled().then(() => this.commit()), QUIET_MS);
  }

  onKey(event) {
    const { target: box } = event;
    const plain = !(event.ctrlKey || event.metaKey || event.altKey || event.shiftKey);
    if (this.script.own.has(event) || event.isComposing || event.keyCode === 229 || !plain) return;
    if (event.key === "Enter") {
      this.history.remember(box.value);
      if (!this.on || box.value !== liveScenes.typed || box.value === this.script.told) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      this.forget();
      const text = box.value;
      Promise.race([this.ask(), pause(ENTER_MS).then(() => this.settled())]).then(() => this.commit(text));
    } else if (event.key === "ArrowUp" || event.key === "ArrowDown") this.history.recall(event, event.key === "ArrowUp" ? -1 : 1);
  }

  /** The end of a run that is drawn while it writes: the script would take time from it. At once, if none is. */
  async settled() {
    if (!this.stopping.hidden) await this.asking;
  }

  /** Tells the page's script the sentence, once the script has ended, if the box still holds it. */
  async commit(text = liveScenes.typed) {
    const { box } = liveScenes;
    const holds = () => box?.isConnected && box.value === text && !this.composing && this.script.told !== text;
    await this.script.rests(holds);
    if (!holds()) return;
    this.forget();
    this.said.textContent = ""; // the script says it, too
    this.script.tell(box);
  }

  /** Asks for the picture of what the box holds; the promise ends when it is painted, or something newer is asked. */
  ask() {
    const { box } = liveScenes;
    liveScenes.typed = box.value;
    if (box.value === this.asked && !this.failed) return this.asking;
    this.script.told = null;
    return this.start(box.value);
  }

  /** Asks for the picture of a choice; false if the run with it cannot be drawn. */
  async choose() {
    this.refused = false;
    if (this.on) await this.start(liveScenes.typed);
    return !this.refused;
  }

  /** Shows the run that the page's script waits for, while it writes: how far it is, or why it cannot be run, the script says itself. */
  follow() {
    if (this.on && !this.flight) this.start(null);
  }

  start(text) {
    this.flight?.abort();
    const flight = (this.flight = new AbortController());
    this.asked = text;
    this.failed = false;
    document.documentElement.dataset[BUSY] = "busy";
    this.asking = this.answer(text, flight.signal)
      .catch(() => { if (!flight.signal.aborted) this.giveUp(); }) // no connection, or refused: the script answers
      .finally(() => {
        if (this.flight !== flight) return;
        this.flight = null;
        this.stopping.hidden = true;
        this.asked = text === null ? undefined : text;
        delete document.documentElement.dataset[BUSY];
      });
    return this.asking;
  }

  async answer(text, signal) {
    const body = JSON.stringify({ text, change: this.choices.change });
    const question = { method: "POST", headers: { "content-type": "application/json" }, body, signal };
    const answer = await fetch(this.path, question);
    if (!answer.ok) throw new Error(await answer.text());
    let ended = false;
    for await (const { header, scenes } of framesOf(answer.body)) {
      await fetchParts(scenes, signal);
      if (signal.aborted) return;
      this.show(header, scenes);
      ended = header.final;
    }
    if (!ended) throw new Error("cut");
    await painted();
  }

  show({ progress, error, stopped, note, reply }, scenes) {
    if (reply !== undefined) document.dispatchEvent(new CustomEvent("headlight:reply", { detail: reply })); // widgets/conversation.js
    const follows = this.asked === null;
    this.said.textContent = (!follows && (error ?? (progress?.written && fill(this.texts.how_far, progress)))) || (note ?? "");
    this.stopping.hidden = !progress || follows;
    if (error) this.failed = this.refused = true;
    document.documentElement.toggleAttribute(REFUSED, Boolean(error));
    if (error || stopped) return;
    liveScenes.draw(scenes);
    if (liveScenes.ahead) document.documentElement.dataset[AHEAD] = "";
  }

  /** Leaves the sentence to the page's script. */
  giveUp() {
    this.flight?.abort();
    this.flight = null;
    this.forget();
    this.asked = undefined;
    this.failed = true;
    this.said.textContent = "";
    this.stopping.hidden = true;
    document.documentElement.removeAttribute(REFUSED);
    delete document.documentElement.dataset[BUSY];
    liveScenes.giveUp();
    if (!liveScenes.ahead) delete document.documentElement.dataset[AHEAD];
  }

  /** The page's script has drawn a sentence. Once it has ended and draws what is shown, the whole page shows one sentence again. */
  async drawn(text) {
    if (!this.flight && text !== this.asked) this.asked = undefined;
    if (text !== this.script.told) this.script.told = null;
    if (this.agreeing || !(AHEAD in document.documentElement.dataset)) return;
    this.agreeing = true;
    do await pause(AGREED_MS); while (this.script.runs);
    this.agreeing = false;
    if (liveScenes.ahead) return;
    delete document.documentElement.dataset[AHEAD];
    for (const { root } of liveScenes.drawings) root.classList.remove("behind");
  }
}

const boxes = new WeakMap();

export default (component) => {
  const { parentElement } = component;
  if (!boxes.has(parentElement)) boxes.set(parentElement, new LiveBox(parentElement));
  const mine = boxes.get(parentElement);
  mine.take(component);
  const call = (mine.calls = (mine.calls ?? 0) + 1);
  return () => { if (call === mine.calls) mine.disconnect(); }; // Streamlit may clean up late, after a newer call
};
