// The speaker's window: notes, the next step, the clock, and the answers as they come. Its keys steer the class, too.

const page = JSON.parse(document.getElementById("page").textContent);
const { texts, minutes } = page;
const at = (id) => document.getElementById(id);
const here = location.pathname.replace(/\/speaker\/?$/, "");
const question = new QuestionBox(at("question"), texts, null);
question.early = true; // only the speaker sees this window

let state = null;
let counts = null;
const began = Number(sessionStorage.getItem("headlight-began")) || Date.now();
sessionStorage.setItem("headlight-began", began);

const steer = (order) => asked(`${here}/steer`, order).catch((error) => { at("notice").textContent = error.message; at("notice").hidden = false; });

function draw() {
  at("place").textContent = [state.chapter, fill(texts.place, { step: state.step + 1, steps: state.steps })].filter(Boolean).join(" · ");
  at("title").textContent = state.title;
  setWords(at("notes"), state.notes);
  setWords(at("words"), state.told);
  at("answer").textContent = state.known && state.question?.phase !== "revealed" ? question.right(state.question, state.known) : "";
  at("next-title").textContent = state.next;
  at("problem").textContent = state.problem;
  question.show(state.step, state.question, counts);
}

function next() {
  const phase = state.question?.phase;
  if (phase === "open") steer({ phase: "closed" });
  else if (phase === "closed") steer({ phase: "revealed" });
  else if (state.step + 1 < state.steps) steer({ step: state.step + 1 });
}

function back() {
  if (state.step > 0) steer({ step: state.step - 1 });
}

function clock() {
  const passed = Math.floor((Date.now() - began) / 1000);
  const two = (number) => String(number).padStart(2, "0");
  at("clock").textContent = fill(texts.clock, { passed: `${Math.floor(passed / 60)}:${two(passed % 60)}`, minutes });
  at("time").textContent = new Date().toLocaleTimeString(document.documentElement.lang || [], { hour: "2-digit", minute: "2-digit" });
}

onKeys({ PageDown: next, ArrowRight: next, " ": next, PageUp: back, ArrowLeft: back, b: () => steer({ black: !state.black }) });
at("next").addEventListener("click", next);
at("back").addEventListener("click", back);
follow(`${here}/lecturer`, {
  step: (found) => { state = found; draw(); },
  counts: (found) => { counts = found; if (state) draw(); },
  followers: ({ followers }) => { at("followers").textContent = fill(texts.followers, { count: followers }); },
}, (lost) => { at("lost").hidden = !lost; });
setInterval(clock, 1000);
clock();
