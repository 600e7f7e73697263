// The page of the lecturer: the view fills the screen; a clicker's keys lead through the steps; C opens a class.

const [SMALLEST, LARGEST, BY] = [0.9, 3, 0.15];
const POINTER_MS = 80;
const NOTICE_MS = 4000;

const page = JSON.parse(document.getElementById("page").textContent);
const { texts, slides } = page;
const OPENED = `headlight-class-${page.name}`;
const at = (id) => document.getElementById(id);
const made = { views: slides.map(() => null), problems: slides.map(() => ""), answers: {} };

let room = null; // the class: {code, shown, key}
let counts = null;
let size = Number(localStorage.getItem("headlight-size")) || (innerWidth < 700 ? 1 : Math.min(LARGEST, Math.max(1.5, Math.min(innerWidth / 1280, innerHeight / 720))));
let pointing = false;
let latest = null; // the newest state of the class
let [ordering, ordered] = [0, 0]; // orders of this page that are not answered yet, and the number of the last one that is

const stage = new Stage(at("stage"), { load: loadFrom(page.views), chosen: (choice) => { if (!moving) steer({ choice }); } });
const question = new QuestionBox(at("question"), texts, null);
question.redraw = () => draw();
let moving = null; // the newest move of the page itself, until it is drawn: what is selected meanwhile is no choice
const talk = new Talk(slides, (what) => { steer(what); draw(); }, stepNamed(location.hash, slides));
const address = new StepAddress(talk);
const named = location.hash !== "" && performance.getEntriesByType("navigation")[0]?.type !== "reload"; // a link to a step was followed

let noticing = null;

/** Says something over the picture; what only answers a key goes away by itself. */
function notice(text, brief = false) {
  clearTimeout(noticing);
  at("notice").textContent = text;
  at("notice").hidden = !text;
  if (brief) noticing = setTimeout(notice, NOTICE_MS, "");
}

/** Tells the class what the lecturer does. */
async function steer(order) {
  if (!room) return;
  ordering += 1;
  try {
    const { orders } = await asked(`${page.classes}/${room.code}/steer`, order);
    ordered = Math.max(ordered, orders);
    notice("");
  } catch (error) {
    return notice(error.message); // the page stays where it was led
  } finally {
    ordering -= 1;
  }
  settle();
}

function draw() {
  const { step } = talk;
  const now = talk.shown(made.views, made.answers);
  document.body.classList.toggle("black", talk.black);
  at("title").textContent = now.title;
  setWords(at("words"), now.words);
  at("points").replaceChildren(...pointList(now.points, (choice) => { stage.show(stage.name, choice); steer({ choice }); }));
  question.show(step, now.question, counts);
  document.body.classList.toggle("asking", now.covered);
  const problem = talk.away || now.covered ? "" : made.problems[step];
  at("problem").textContent = problem;
  at("problem").hidden = !problem;
  at("waiting").hidden = Boolean(now.view || now.covered || problem || !slides[step].link);
  const move = (moving = {});
  stage.show(now.view, {}).then(() => { if (at("notice").textContent === texts.noPicture) notice(""); }, () => notice(texts.noPicture)).finally(() => {
    if (moving !== move) return; // another step was drawn meanwhile
    moving = null;
    document.body.dataset.shown = `${step}/${now.view ?? ""}`;
  });
  prepareAround();
  at("chapters").replaceChildren(...chapterStrip(talk));
  at("home").hidden = !talk.away;
  showWords(step, now.question && made.answers[step] ? talk.phase : "");
  address.tell();
}

/** Draws the views ahead that the next keys show: that of a question, those of the next steps, the one before. */
function prepareAround() {
  const { step } = talk;
  const following = made.views[step + 1];
  drawAround(stage, talk, made.views, [step, step + 1, step - 1, step + 2]).then(() => {
    if (following && talk.step === step && stage.sheets.has(following)) document.body.dataset.ahead = step + 1;
  });
}

function resize(to) {
  const before = size;
  size = Math.min(LARGEST, Math.max(SMALLEST, Math.round(to * 100) / 100));
  if (size === before) return notice(to > size ? texts.largest : texts.smallest, true);
  localStorage.setItem("headlight-size", size);
  setSize(size);
  stage.again();
}

/** Opens a class, once. */
async function openClass() {
  if (room) return room;
  const { code, shown } = await asked(page.classes, { lecture: page.name, step: talk.step });
  sessionStorage.setItem(OPENED, JSON.stringify({ code, shown }));
  return followClass({ code, shown });
}

/** Goes on with the class that this tab opened before it was loaded again. */
async function resumeClass() {
  const opened = JSON.parse(sessionStorage.getItem(OPENED) ?? "null");
  if (opened) await asked(`${page.classes}/${opened.code}/steer`, {}).then(() => goOnWith(opened), () => {}); // else it is over
}

/** Follows the class again, at its step or at the one that the address names. */
function goOnWith(opened) {
  followClass(opened);
  if (named) steer({ step: talk.step });
}

/** Takes the newest state of the class, which another window may have steered, once it holds all orders of this page. */
function settle() {
  if (!latest || ordering || latest.orders < ordered) return;
  const { step, black, question: asks } = latest;
  const away = latest.away ? latest.view : null;
  const same = step === talk.step && black === talk.black && away === talk.away;
  if (same && (!asks || !talk.slide.question || asks.phase === talk.phase)) return; // what was selected here stays
  if (asks) talk.phases.set(step, asks.phase);
  Object.assign(talk, { step, black, away });
  draw();
}

/** Follows what happens in a class. */
function followClass(opened) {
  room = opened;
  question.polled = true;
  draw();
  follow(`${page.classes}/${room.code}/lecturer`, {
    step: (state) => { latest = state; settle(); },
    counts: (found) => { counts = found; question.show(talk.step, talk.shown(made.views, made.answers).question, counts); fitWords(); },
    followers: ({ followers }) => { at("followers").textContent = fill(texts.followers, { count: followers }); },
  }, (lost) => {
    if (lost) ordered = 0; // a server that was started again counts anew
    notice(lost ? texts.lost : "");
  });
  return room;
}

const isLoopback = (host) => host === "localhost" || host === "[::1]" || host.startsWith("127.");

/** Shows where a class is joined, below one of the machine's addresses. */
function showAddress(origin) {
  at("address").textContent = `${origin.replace(/^http:\/\//, "")}${page.classes}`;
  at("qr").src = `${page.classes}/${room.code}/qr.svg?origin=${encodeURIComponent(origin)}`;
  at("qr").alt = `${origin}${page.classes}/${room.code}`;
}

async function showClass() {
  try {
    const { code, shown } = await openClass();
    at("code").textContent = shown;
    at("counts").href = `${page.classes}/${code}/answers.csv`;
    const { addresses } = await asked(`${page.classes}/${code}/addresses`);
    const origins = addresses.map((each) => `${location.protocol}//${each}${location.port ? `:${location.port}` : ""}`);
    if (!isLoopback(location.hostname) && !origins.includes(location.origin)) origins.unshift(location.origin);
    at("loopback").hidden = origins.length > 0;
    const choice = at("origins");
    const chosen = origins.includes(choice.value) ? choice.value : origins.find((each) => each === location.origin) ?? origins[0];
    choice.replaceChildren(...origins.map((each) => el("option", { value: each, selected: each === chosen }, each)));
    at("several").hidden = origins.length < 2;
    showAddress(chosen ?? location.origin);
    at("class").showModal();
  } catch (error) {
    notice(error.message);
  }
}

async function openSpeaker() {
  const opened = open("", "headlight-speaker", "width=900,height=700");
  try {
    const { code } = await openClass();
    if (opened) opened.location = `${page.classes}/${code}/speaker`;
  } catch (error) {
    opened?.close();
    notice(error.message);
  }
}

/** Runs another sentence on the view of this step, for all to see. */
async function tryText(text) {
  at("other").close();
  notice(texts.running);
  try {
    const { view } = await asked(`${page.deck}/view`, { step: talk.step, text });
    notice("");
    talk.leave(view);
  } catch (error) {
    notice(error.message);
  }
}

function togglePointer() {
  pointing = !pointing;
  document.body.classList.toggle("pointing", pointing);
  if (!pointing) steer({ pointer: {} });
}

let told = 0;
let last = null;
document.addEventListener(CHANNEL, ({ detail }) => {
  if (!pointing || !room) return;
  clearTimeout(last);
  const tell = () => { told = performance.now(); steer({ pointer: detail }); };
  last = setTimeout(tell, Math.max(0, told + POINTER_MS - performance.now()));
});
document.addEventListener("pointermove", ({ clientX, clientY }) => {
  at("spot").style.transform = `translate(${clientX}px, ${clientY}px)`;
}, { passive: true, capture: true });

/** Hides or shows the text beside the picture; a question stays, and says so. */
function toggleWords() {
  const hidden = document.body.classList.toggle("wordless");
  if (document.body.classList.contains("asking")) notice(hidden ? texts.willHide : texts.willShow, true);
  stage.again();
}

const fullScreen = () => (document.fullscreenElement ? document.exitFullscreen() : document.documentElement.requestFullscreen?.().catch(() => {}));
const next = () => talk.next(!room);
const back = () => talk.back();
onKeys({
  PageDown: next, ArrowRight: next, ArrowDown: next, " ": next, PageUp: back, ArrowLeft: back, ArrowUp: back,
  Home: () => (talk.away ? talk.home() : notice(texts.atHome, true)), b: () => talk.blacken(), ".": () => talk.blacken(), l: togglePointer,
  "+": () => resize(size + BY), "=": () => resize(size + BY), "-": () => resize(size - BY), "−": () => resize(size - BY), f: fullScreen,
  w: toggleWords, c: showClass, s: openSpeaker, a: () => (room && talk.phase === "open" ? question.toggleEarly() : notice(texts.noneOpen, true)),
  t: () => { at("text").value = ""; at("other").showModal(); }, "?": () => at("keys").showModal(), h: () => at("keys").showModal(),
});
for (const [id, act] of Object.entries({ next, back, home: () => talk.home(), "open-class": showClass, "open-keys": () => at("keys").showModal(), "open-other": () => at("other").showModal(), "open-speaker": openSpeaker, full: fullScreen })) {
  at(id).addEventListener("click", ({ currentTarget }) => { currentTarget.blur(); act(); });
}
at("origins").addEventListener("change", ({ currentTarget }) => showAddress(currentTarget.value));
addEventListener("resize", fitWords);
talk.unmoved = (end) => notice(end === "last" ? texts.last : texts.first, true);
at("other-form").addEventListener("submit", (event) => { event.preventDefault(); if (at("text").value.trim()) tryText(at("text").value.trim()); });
for (const each of document.querySelectorAll("dialog")) each.addEventListener("click", ({ target }) => { if (target === each) each.close(); });
follow(`${page.deck}/events`, {
  prepared: (found) => {
    const known = () => JSON.stringify([made.views[talk.step], made.problems[talk.step], slides[talk.step]]);
    const before = known();
    takePrepared(slides, made, found);
    if (before !== known()) draw();
    else prepareAround();
  },
}, () => {});
addEventListener("hashchange", () => { if (stepNamed(location.hash, slides) !== talk.step) talk.go(stepNamed(location.hash, slides)); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => stage.again());
setSize(size);
draw();
resumeClass();
