// The page of a student: follows the lecturer, lets the student look around, and sends answers.

const AHEAD_MS = 3000; // the next view is fetched and drawn at a random moment within this time, so that not all ask at once

const page = JSON.parse(document.getElementById("page").textContent);
const { texts } = page;
const at = (id) => document.getElementById(id);
const here = location.pathname.replace(/\/$/, "");
const ANSWERS = `headlight-answers-${here}`; // they outlive a reload, so that the phone still knows whether they are right

const stage = new Stage(at("stage"), { load: loadFrom(page.views), chosen: () => setAway(true) });
const question = new QuestionBox(at("question"), texts, async (step, value) => {
  try {
    const found = await asked(`${here}/answer`, { step, value });
    if (found.outcome === "late") notice(texts.late);
    return found;
  } catch (error) {
    notice(error.message);
    return {};
  }
});
question.own = new Map(JSON.parse(sessionStorage.getItem(ANSWERS) ?? "[]"));
question.redraw = () => {
  sessionStorage.setItem(ANSWERS, JSON.stringify([...question.own]));
  drawQuestion();
};

let state = null;
let counts = null;
let away = false; // whether the student looks around
let waiting = null; // until the next views are prepared

function notice(text) {
  at("notice").textContent = text;
  at("notice").hidden = !text;
}

function setAway(now) {
  away = now;
  at("back").hidden = !away;
  at("back").textContent = texts.back;
}

/** Draws the question. Once it is revealed, whether the own answer is right stands above the picture, the rest below it. */
function drawQuestion() {
  question.show(state.step, state.black ? null : state.question, counts);
  at("own").replaceChildren(...at("question").querySelectorAll(".verdict"));
  const below = state.question?.phase === "revealed";
  if (below !== (at("question").previousElementSibling === at("stage"))) at("stage")[below ? "after" : "before"](at("question"));
}

/** Shows the words: their first paragraph above the picture, the others below it. */
function drawWords() {
  if (at("words").dataset.html === state.words) return; // its first paragraph has moved
  setWords(at("words"), state.words);
  const first = at("words").firstElementChild;
  at("lead").replaceChildren(...(first?.tagName === "P" ? [first] : []));
}

/** Shows what a point names, in the picture, which may be out of sight. */
function explore(choice) {
  setAway(true);
  stage.show(stage.name, choice);
  at("stage").scrollIntoView({ block: "start" });
}

function draw(moved) {
  document.body.classList.toggle("black", Boolean(state.black));
  if (state.black) return;
  at("place").textContent = [state.chapter, fill(texts.place, { step: state.step + 1, steps: state.steps })].filter(Boolean).join(" · ");
  at("title").textContent = state.title;
  drawWords();
  at("points").replaceChildren(...pointList(state.points, explore));
  drawQuestion();
  const covered = state.question && state.question.phase !== "revealed";
  if (covered) setAway(false);
  if (state.question?.phase === "open") stage.prepare([]); // nothing of an earlier step may answer it
  if (away) return void (moved && notice(texts.wentOn));
  notice("");
  if (moved) scrollTo(0, 0);
  stage.show(state.view, state.choice).catch(() => notice(texts.noPicture));
}

follow(`${here}/events`, {
  step: (next) => {
    const moved = state && next.step !== state.step;
    state = next;
    draw(moved);
    clearTimeout(waiting);
    waiting = setTimeout(() => stage.prepare(next.ahead ?? []), AHEAD_MS * Math.random());
  },
  pointer: (detail) => { if (!away) point(detail); },
  counts: (found) => { counts = found; if (state) drawQuestion(); },
  over: () => { at("over").hidden = false; },
}, (lost) => { at("lost").hidden = !lost; });

at("back").addEventListener("click", () => { setAway(false); draw(true); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => stage.again());
