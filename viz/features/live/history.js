// Sentences that Enter ran before: the arrow keys put them into the box again.

const MOST_SENTENCES = 100;

class SentenceHistory {
  constructor() {
    this.sentences = []; // the newest last
    this.at = null; // the place of the sentence in the box; null: it was typed, and is none of these
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

  /** Adds a sentence that Enter ran, as the newest. */
  remember(text) {
    this.sentences = [...this.sentences.filter((each) => each !== text), text].slice(-MOST_SENTENCES);
    this.at = null;
  }
}
