// A drawing in words, for screen readers: its description, and what is announced when something is selected or stepped to.

let described = 0; // drawings with a description, counted for the ids of their descriptions

const touched = matchMedia("(hover: none) and (pointer: coarse)");

/** The hint of a drawing's texts: that for fingers where there is neither mouse nor keyboard. */
function hintOf(texts) {
  return touched.matches ? texts.hintTouch : texts.hint;
}

class Words {
  constructor() {
    this.about = el("p", { class: "unseen", id: `headlight-about-${++described}` });
    this.live = el("p", { class: "unseen", role: "status", "aria-live": "polite" });
    this.box = el("div", { class: "words" }, this.about, this.live);
  }

  /** Puts the description behind everything in `root` that the keyboard reaches, and announces a new selection. */
  describe(root, { description = "", announce = "" }) {
    this.about.textContent = description;
    for (const node of root.querySelectorAll("[role=application]")) {
      if (description) node.setAttribute("aria-describedby", this.about.id);
    }
    if (this.announced !== undefined && this.announced !== announce) this.say(announce);
    this.announced = announce;
  }

  /** Says a sentence to screen readers. */
  say(sentence) {
    this.live.textContent = sentence;
  }
}
