// The page's script, as the sentence box sees it: whether it runs, and the Enter key from which it learns of the sentence.

const AGREED_MS = 50; // how often it is checked whether the script has ended
const DUE_MS = globalThis.headlightPatience ?? 5000; // within this time the script has answered, or never will

class PageScript {
  constructor() {
    this.own = new WeakSet(); // Enter keys that come from here
    this.due = 0; // until when an answer of the script to one of them is awaited
    this.told = null; // the sentence that the script was told last; null: the page has moved on
    this.sent = null; // the same, until the next one
  }

  get runs() {
    return Boolean(document.querySelector("[data-testid=stApp][data-test-script-state=running]"));
  }

  /** True while the script runs, or has not answered yet: what it still sends would put an older sentence into the box. */
  get busy() {
    return this.due > performance.now() || this.runs;
  }

  /** Waits until the script has ended, for some seconds and while `goes` holds. */
  async rests(goes = () => true) {
    for (let waited = 0; goes() && this.busy && waited < DUE_MS; waited += AGREED_MS) await pause(AGREED_MS);
  }

  /** Tells the script the sentence: an Enter key in the box, which keeps its focus and its caret. */
  tell(box) {
    this.told = this.sent = box.value;
    this.due = performance.now() + DUE_MS;
    this.enter(box);
  }

  /** The script has sent a scene of a sentence. */
  offered(text) {
    if (text === this.sent) this.due = 0;
  }

  /** Gives the box an Enter key: Streamlit then sends what it holds, unless it has sent that. */
  enter(box) {
    const enter = new KeyboardEvent("keydown", { key: "Enter", code: "Enter", keyCode: 13, bubbles: true, cancelable: true });
    this.own.add(enter);
    box.dispatchEvent(enter);
  }
}
