// The sentence box as it is typed into: asks the live route after each short pause, and hands its scenes to the drawings of the page.
// The box stays Streamlit's own. After a longer pause, or Enter, it gets an Enter key from here, so that the page's script learns of
// the sentence the usual way. Where the route fails, keys pass through untouched.

const QUIET_MS = 1000; // a pause after which the page's script learns of the sentence
const ENTER_MS = 700; // how long Enter waits for a picture before the script runs
const AGREED_MS = 50;
const DUE_MS = 5000; // within this time the script has answered, or never will
const MOST_SENTENCES = 100;
const BOX = ".st-key-sentence [data-testid=stTextInput] input";
const AHEAD = "headlightAhead"; // attribute of the page: it shows a sentence that its script has not drawn yet
const BUSY = "headlightLive"; // attribute of the page: an answer is on its way
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));

/** Whether the switch is on, in this browser's storage, which may be blocked. */
const storage = {
  key: "headlight-live",
  get() { try { return localStorage.getItem(this.key); } catch { return null; } },
  set(value) { try { localStorage.setItem(this.key, value); } catch { /* it is on again after a reload */ } },
};

/** The frames of an answer, each {header, scenes}; viz/live/frames.py makes them. */
async function* framesOf(body) {
  const reader = body.getReader();
  let held = new Uint8Array();
  for (;;) {
    while (held.length >= 4 && held.length >= 4 + lengthOf(held)) {
      const end = 4 + lengthOf(held);
      const { header, blobs } = unpack(held.slice(4, end));
      held = held.slice(end);
      const opened = ([name, { array }]) => { const data = array.slice(); return [name, { data, scene: unpack(data) }]; };
      yield { header, scenes: Object.fromEntries(Object.entries(blobs).map(opened)) };
    }
    const { done, value } = await reader.read();
    if (done) return;
    const both = new Uint8Array(held.length + value.length);
    both.set(held);
    both.set(value, held.length);
    held = both;
  }
}

const lengthOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
/** Fetches the parts of scenes that are not in them, so that all drawings can change in the same frame. */
function fetchParts(scenes, signal) {
  const missing = Object.values(scenes).flatMap(({ scene: { header: { parts = {}, partsAddress }, blobs } }) => {
    const whole = Object.entries(parts).filter(([name, part]) => !blobs[name] && !part.levels);
    return whole.map(([, part]) => `${partsAddress}/${part.name}/whole`).filter((address) => !partFetcher.get(address));
  });
  return Promise.all(missing.map((address) => partFetcher.load(address, () => {}, signal)));
}

class LiveBox {
  constructor(root) {
    this.button = root.querySelector("button");
    this.stopping = root.querySelector(".stop");
    this.said = root.querySelector(".said");
    this.sentences = []; // typed before, the newest last
    this.own = new WeakSet(); // Enter keys that come from here
    this.due = 0; // until when an answer of the script to one of them is awaited
    this.choices = new Choices(() => this.choose(), (change) => this.setTriggerValue("changed", change));
    this.leaving = new Leaving((box) => this.enter(box), () => this.rests());
    this.button.addEventListener("click", () => this.turn(!this.on));
    this.stopping.addEventListener("click", () => fetch(this.path, { method: "DELETE" }));
  }

  take({ data, setTriggerValue }) {
    const { path, pause: ms, texts } = data;
    Object.assign(this, { path, ms, texts, setTriggerValue });
    this.choices.take(data);
    this.leaving.take(data);
    this.button.textContent = texts.live;
    this.button.title = texts.help;
    this.stopping.textContent = texts.stop;
    this.listen();
    this.turn(storage.get() !== "off");
  }

  /** Follows the box, or leaves everything to the page's script. */
  turn(on) {
    this.on = on;
    this.button.setAttribute("aria-checked", on);
    storage.set(on ? "on" : "off");
    if (!on) this.giveUp();
  }

  listen() {
    if (this.life && !this.life.signal.aborted) return;
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
    liveScenes.onOffered = (text) => { if (text === this.sent) this.due = 0; };
    liveScenes.onDrawn = (live) => { this.choices.drawn(live); this.drawn(live.text); };
    this.choices.listen(this.life.signal);
    this.leaving.listen(this.life.signal);
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
    this.at = null;
    this.soon = setTimeout(() => this.ask(), this.ms);
    this.later = setTimeout(() => this.settled().then(() => this.commit()), QUIET_MS);
  }

  onKey(event) {
    const { target: box } = event;
    const plain = !(event.ctrlKey || event.metaKey || event.altKey || event.shiftKey);
    if (this.own.has(event) || event.isComposing || event.keyCode === 229 || !plain) return;
    if (event.key === "Enter") {
      this.remember(box.value);
      if (!this.on || box.value !== liveScenes.typed || box.value === this.told) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      this.forget();
      const text = box.value;
      Promise.race([this.ask(), pause(ENTER_MS).then(() => this.settled())]).then(() => this.commit(text));
    } else if (event.key === "ArrowUp" || event.key === "ArrowDown") this.recall(event, event.key === "ArrowUp" ? -1 : 1);
  }

  /** The end of a run that is drawn while it writes: the script would take time from it. At once, if none is. */
  async settled() {
    if (!this.stopping.hidden) await this.asking;
  }

  /** Puts an earlier sentence into the box, or a later one. */
  recall(event, by) {
    const { sentences } = this;
    const at = (this.at ?? sentences.length) + by;
    if (at < 0 || at > sentences.length || !sentences.length) return;
    event.preventDefault();
    if (this.at === null) this.draft = event.target.value;
    const text = at === sentences.length ? this.draft : sentences[at];
    put(event.target, text);
    this.at = at;
  }

  remember(text) {
    this.sentences = [...this.sentences.filter((each) => each !== text), text].slice(-MOST_SENTENCES);
    this.at = null;
  }

  /** True while the script runs, or has not answered yet: what it still sends would put an older sentence into the box. */
  get scriptRuns() {
    return this.due > performance.now() || Boolean(document.querySelector("[data-testid=stApp][data-test-script-state=running]"));
  }

  /** The end of the script's run, for some seconds and while `goes` holds. */
  async rests(goes = () => true) {
    for (let waited = 0; goes() && this.scriptRuns && waited < DUE_MS; waited += AGREED_MS) await pause(AGREED_MS);
  }

  /** Tells the page's script the sentence: an Enter key in the box, which keeps its focus and its caret. */
  async commit(text = liveScenes.typed) {
    const { box } = liveScenes;
    const holds = () => box?.isConnected && box.value === text && !this.composing && this.told !== text;
    await this.rests(holds);
    if (!holds()) return;
    this.forget();
    this.told = text;
    this.sent = text;
    this.due = performance.now() + DUE_MS;
    this.enter(box);
  }

  /** Gives the box an Enter key: Streamlit then sends what it holds, unless it has sent that. */
  enter(box) {
    const enter = new KeyboardEvent("keydown", { key: "Enter", code: "Enter", keyCode: 13, bubbles: true, cancelable: true });
    this.own.add(enter);
    box.dispatchEvent(enter);
  }

  /** Asks for the picture of what the box holds; the promise ends when it is painted, or something newer is asked. */
  ask() {
    const { box } = liveScenes;
    liveScenes.typed = box.value;
    if (box.value === this.asked && !this.failed) return this.asking;
    this.told = null;
    return this.start(box.value);
  }

  /** Asks for the picture of a choice; false if the run with it cannot be drawn. */
  async choose() {
    this.refused = false;
    if (this.on) await this.start(liveScenes.typed);
    return !this.refused;
  }

  /** Shows the run that the page's script waits for, while it writes. */
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

  show({ progress, error, stopped }, scenes) {
    this.said.textContent = error ?? (progress?.written ? fill(this.texts.how_far, progress) : "");
    this.stopping.hidden = !progress;
    if (error) this.failed = this.refused = true;
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
    delete document.documentElement.dataset[BUSY];
    liveScenes.giveUp();
    if (!liveScenes.ahead) delete document.documentElement.dataset[AHEAD];
  }

  /** The page's script has drawn a sentence. Once it has ended and draws what is shown, the whole page speaks of one sentence again. */
  async drawn(text) {
    if (!this.flight && text !== this.asked) this.asked = undefined;
    if (text !== this.told) this.told = null;
    if (this.agreeing || !(AHEAD in document.documentElement.dataset)) return;
    this.agreeing = true;
    do await pause(AGREED_MS); while (document.querySelector("[data-testid=stApp][data-test-script-state=running]"));
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
