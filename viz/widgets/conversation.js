// The conversation with a model. All text is text: nothing that anybody typed or a model wrote becomes HTML.

const ENTER = "Enter";

class Conversation {
  constructor(root) {
    const find = (selector) => root.querySelector(selector);
    this.root = find("section");
    this.turns = find(".turns");
    this.raw = find(".raw");
    this.form = find("form");
    this.next = find(".next");
    this.system = { box: find(".system"), summary: find(".system summary"), text: find(".system textarea"), apply: find(".apply") };
    this.send = find(".send");
    this.anew = find(".anew");
    this.showRaw = find(".show-raw");
    this.instead = find(".instead");
    this.form.addEventListener("submit", (event) => { event.preventDefault(); this.say({}); });
    this.anew.addEventListener("click", () => this.say({ anew: true }));
    this.showRaw.addEventListener("click", () => this.tell({ raw: this.showRaw.getAttribute("aria-pressed") !== "true" }));
    this.system.apply.addEventListener("click", () => { this.waits(); this.tell({ system: this.system.text.value }); });
    this.instead.querySelector("button").addEventListener("click", () => this.replace(null));
    this.next.addEventListener("input", () => this.typed());
    this.next.addEventListener("keydown", (event) => this.onKey(event));
    this.at = null; // the turn that the sentence in the box replaces
  }

  listen() {
    this.life?.abort();
    this.life = new AbortController();
    document.addEventListener("headlight:reply", ({ detail }) => this.write(detail), { signal: this.life.signal });
  }

  disconnect() {
    this.life?.abort();
  }

  take({ data, setTriggerValue }) {
    const { texts, turns, reply, raw, isRaw, system } = data;
    const began = performance.now();
    const report = (act) => setTriggerValue("said", act);
    this.tell = globalThis.headlightPageLinks?.here(report, began) ?? report;
    this.texts = texts;
    this.root.setAttribute("aria-label", texts.label);
    this.turns.setAttribute("aria-label", texts.label);
    this.raw.setAttribute("aria-label", texts.raw);
    this.next.placeholder = texts.say;
    this.next.setAttribute("aria-label", texts.say);
    this.system.text.setAttribute("aria-label", texts.system);
    this.system.text.placeholder = texts["system default"];
    this.system.summary.textContent = system ? `${texts.system}: ${system}` : texts.system;
    if (this.root.getRootNode().activeElement !== this.system.text) this.system.text.value = system;
    for (const [node, name] of [[this.system.apply, "apply"], [this.send, "send"], [this.anew, "anew"], [this.showRaw, "raw"]]) node.textContent = texts[name];
    this.anew.title = texts.anewHelp;
    this.showRaw.title = texts.rawHelp;
    this.showRaw.setAttribute("aria-pressed", isRaw);
    this.instead.querySelector("button").setAttribute("aria-label", texts.keep);
    this.listen();
    const form = JSON.stringify([turns, reply, raw, texts.user]);
    if (form !== this.form_) this.draw(turns, reply, raw);
    this.form_ = form;
    this.typed();
  }

  /** Draws the turns, the last of them in view. A reply of null is still to come. */
  draw(turns, reply, raw) {
    this.shown = turns;
    this.turns.hidden = raw !== null;
    this.raw.hidden = raw === null;
    this.raw.textContent = raw ?? "";
    this.turns.replaceChildren(...turns.map(({ role, text }, at) => this.turn(role, text, role === "user" ? at : null)));
    const answer = this.turn("assistant", reply === null ? this.texts.waits : reply.trim() ? reply : this.texts.empty, null);
    this.answer = answer.querySelector("p");
    this.answer.classList.toggle("faint", reply === null || !reply.trim());
    this.turns.append(answer);
    this.turns.setAttribute("aria-busy", reply === null);
    if (reply === null || turns.at(-1)?.text) this.toEnd();
  }

  turn(role, text, at) {
    const node = document.createElement("div");
    const who = document.createElement("b");
    const said = document.createElement("p");
    node.className = `turn ${role}`;
    who.textContent = this.texts[role];
    said.textContent = text;
    said.dir = "auto";
    node.append(who, said);
    if (at === null) return node;
    const change = document.createElement("button");
    Object.assign(change, { type: "button", textContent: "✎", title: this.texts.change });
    change.setAttribute("aria-label", this.texts.change);
    change.addEventListener("click", () => this.replace(at));
    node.append(change);
    return node;
  }

  toEnd() {
    requestAnimationFrame(() => {
      this.turns.scrollTop = this.turns.scrollHeight;
      this.raw.scrollTop = this.raw.scrollHeight;
    });
  }

  /** A reply as far as it is written. */
  write(reply) {
    if (!this.answer || !reply || this.turns.getAttribute("aria-busy") !== "true") return;
    const follows = this.turns.scrollTop + this.turns.clientHeight > this.turns.scrollHeight - 40;
    this.answer.classList.remove("faint");
    this.answer.textContent = reply;
    if (follows) this.turns.scrollTop = this.turns.scrollHeight;
  }

  /** Shows at once what was said; the page's script draws it again. */
  waits(turns = this.shown) {
    this.draw(turns, null, null);
    this.form_ = null;
  }

  say(how) {
    const text = this.next.value;
    if (!text.trim()) return;
    const act = { say: text, ...(this.at === null || how.anew ? {} : { at: this.at }), ...how };
    const whole = this.answer && this.turns.getAttribute("aria-busy") !== "true" && !this.answer.classList.contains("faint");
    const answered = whole ? [{ role: "assistant", text: this.answer.textContent }] : [];
    const kept = how.anew ? [] : this.at !== null ? this.shown.slice(0, this.at) : answered.length ? [...this.shown, ...answered] : this.shown.slice(0, -1);
    this.next.value = "";
    this.replace(null);
    this.waits([...kept, { role: "user", text }]);
    this.tell(act);
  }

  /** The next sentence stands in place of a turn; null: it follows the last one. */
  replace(at) {
    if (at !== null) this.next.value = this.shown[at].text;
    this.at = at;
    this.instead.hidden = at === null;
    this.instead.querySelector("span").textContent = at === null ? "" : this.texts.instead.replace("{number}", at + 1);
    this.typed();
    if (at !== null) this.next.focus();
  }

  typed() {
    const { next } = this;
    this.send.disabled = this.anew.disabled = !next.value.trim();
    next.style.height = "auto";
    next.style.height = `${next.scrollHeight + 2}px`;
  }

  onKey(event) {
    if (event.key === "Escape" && this.at !== null) {
      this.next.value = "";
      this.replace(null);
    }
    if (event.key !== ENTER || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    this.say({});
  }
}

const conversations = new WeakMap();

export default (component) => {
  const { parentElement } = component;
  if (!conversations.has(parentElement)) conversations.set(parentElement, new Conversation(parentElement));
  const mine = conversations.get(parentElement);
  mine.take(component);
  const call = (mine.calls = (mine.calls ?? 0) + 1);
  return () => { if (call === mine.calls) mine.disconnect(); }; // Streamlit may clean up late, after a newer call
};
