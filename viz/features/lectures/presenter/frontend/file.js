// A lecture as one file: all pictures are inside; questions are answered here and revealed immediately.

/** Decompresses what viz/features/lectures/presenter/file.py compressed. */
async function inflated(text) {
  const { readable, writable } = new DecompressionStream("gzip");
  const writer = writable.getWriter();
  const string = atob(text);
  const bytes = new Uint8Array(string.length);
  for (let place = 0; place < string.length; place++) bytes[place] = string.charCodeAt(place);
  writer.write(bytes);
  writer.close();
  return new Uint8Array(await new Response(readable).arrayBuffer());
}

const page = JSON.parse(document.getElementById("page").textContent);
const { texts, slides } = page;
const at = (id) => document.getElementById(id);
const load = (name) => inflated(document.getElementById(`view-${name}`).textContent);

const stage = new Stage(at("stage"), { load });
const made = {};
takePrepared(slides, made, JSON.parse(new TextDecoder().decode(await inflated(page.prepared))));
const question = new QuestionBox(at("question"), texts, async (step, value) => ({ outcome: "counted", value }));
question.redraw = () => talk.setPhase("revealed");
const talk = new Talk(slides, draw, stepNamed(location.hash, slides));
const address = new StepAddress(talk);

function draw() {
  const now = talk.shown(made.views, made.answers);
  at("title").textContent = now.title;
  setWords(at("words"), now.words);
  at("points").replaceChildren(...pointList(now.points, (choice) => stage.show(stage.name, choice)));
  question.show(talk.step, now.question, null);
  document.body.classList.toggle("asking", now.covered);
  at("problem").textContent = now.covered ? "" : made.problems[talk.step];
  at("problem").hidden = !at("problem").textContent;
  stage.show(now.view, {});
  drawAround(stage, talk, made.views, [talk.step, talk.step + 1, talk.step - 1]);
  at("chapters").replaceChildren(...chapterStrip(talk));
  showWords(talk.step, talk.phase);
  document.body.dataset.shown = `${talk.step}/${now.view ?? ""}`;
  address.tell();
}

const next = () => talk.next(true);
const back = () => talk.back();
onKeys({ PageDown: next, ArrowRight: next, PageUp: back, ArrowLeft: back });
at("next").addEventListener("click", next);
at("back").addEventListener("click", back);
addEventListener("resize", fitWords);
addEventListener("hashchange", () => { if (stepNamed(location.hash, slides) !== talk.step) talk.go(stepNamed(location.hash, slides)); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => stage.again());
draw();
