// Shows for how long an answer of the engine has been waited for, and what is written so far; asks for the page once it is there.

const AGAIN_MS = 1000; // after a connection was lost, or the page was asked for; each time twice as long: a script may be slow
const TICK_MS = 100;
const WAITS = "headlightWaits"; // attribute of the page: what it waits for

const waits = new WeakMap();

let decimalSign = ".";

const fixed = (value) => value.toFixed(1).replace(".", decimalSign);

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

function tell(root, { written, most, rate, text }, how_far) {
  if (written === undefined) return; // nothing is written yet, or it is no decode
  const gaps = { written, most, rate: fixed(rate), left: Math.ceil((most - written) / Math.max(rate, 0.1)) };
  root.querySelector(".how-far").textContent = how_far.replace(/{(\w+)}/g, (_, name) => gaps[name]);
  const line = root.querySelector(".written");
  line.textContent = text;
  line.scrollTop = line.scrollHeight;
}

/** The bytes of a download. What was there before it began says nothing about its speed. */
function tellBytes(root, { written, most }, atFirst, later, first) {
  const perSecond = (written - first.written) / Math.max((performance.now() - first.at) / 1000, 0.1);
  const left = Math.ceil((most - written) / perSecond);
  const sentence = perSecond > 0 ? later : atFirst;
  const minutes = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
  const gaps = { written: fixed(written / 1e6), most: fixed(most / 1e6), left: minutes };
  root.querySelector(".how-far").textContent = sentence.replace(/{(\w+)}/g, (_, name) => gaps[name]);
  Object.assign(root.querySelector("progress"), { hidden: false, max: most, value: written });
}

async function wait(root, { path, seconds, sentence, how_far, measured, to_measure, fetched, fetched_at_first }, ready, signal) {
  const began = performance.now() - 1000 * seconds;
  const line = root.querySelector(".waiting");
  const tick = () => { line.textContent = sentence.replace("{seconds}", fixed((performance.now() - began) / 1000)); };
  tick();
  const ticking = setInterval(tick, TICK_MS);
  signal.addEventListener("abort", () => clearInterval(ticking));
  let first = null;
  for (let again = AGAIN_MS, seen = 0; !signal.aborted; ) {
    try {
      const answer = await fetch(`${path}?seen=${seen}`, { signal });
      const told = answer.ok ? await answer.json() : { done: true };
      if (!told.done) {
        seen = told.seen;
        if (told.fetching) tellBytes(root, told, fetched_at_first, fetched, (first ??= { written: told.written, at: performance.now() }));
        else tell(root, told, told.measuring ? (told.written ? measured : to_measure) : how_far);
        await pause(TICK_MS);
        continue;
      }
      if (!signal.aborted) ready();
    } catch (error) {
      if (!(error instanceof TypeError || error.name === "AbortError")) throw error; // both say that nothing came
    }
    await pause(again);
    again *= 2;
  }
}

export default ({ parentElement, data, setTriggerValue }) => {
  decimalSign = data.decimal;
  let mine = waits.get(parentElement);
  if (mine?.path !== data.path || mine.life.signal.aborted) {
    mine?.life.abort();
    mine = { path: data.path, life: new AbortController(), calls: 0, born: performance.now() };
    waits.set(parentElement, mine);
    document.documentElement.dataset[WAITS] = data.path;
    mine.life.signal.addEventListener("abort", () => {
      if (document.documentElement.dataset[WAITS] === data.path) delete document.documentElement.dataset[WAITS];
    });
    document.dispatchEvent(new CustomEvent("headlight:waiting")); // live pictures may show what the run writes
    wait(parentElement, data, () => mine.ready(), mine.life.signal);
  }
  mine.ready = pageLinks.here(() => setTriggerValue("ready", true), mine.born);
  const call = ++mine.calls;
  return () => { if (call === mine.calls) mine.life.abort(); }; // Streamlit may clean up late, after a newer call
};
