// The words of a step beside its picture, the notes on what to point at, and the size of type.

/** Fills a box with HTML that viz/features/lectures/presenter/markdown.py made from Markdown; it holds no HTML of the author. */
function setWords(box, html) {
  if (box.dataset.html === html) return;
  box.dataset.html = html;
  box.innerHTML = html;
  for (const link of box.querySelectorAll("a")) Object.assign(link, { target: "_blank", rel: "noopener" }); // the lecture stays open
}

/** The list of what to point at; pointing at one shows it in the drawings, a click selects it. */
function pointList(points, chosen) {
  const about = ({ queryStrip = null, query = null, keyStrip = null, key = null }) => ({ queryStrip, query, keyStrip, key });
  const items = points.map((each) => {
    const show = () => point(about(each));
    const leave = () => point({});
    const onclick = () => { chosen(each); show(); }; // a tap does not stay upon it, as a pointer does
    const note = el("span");
    setWords(note, each.note);
    return el("li", {}, el("button", { type: "button", onclick, onpointerenter: show, onfocus: show, onpointerleave: leave, onblur: leave },
      el("b", {}, each.label), " ", note));
  });
  return items.length ? [el("ul", { class: "points" }, ...items)] : [];
}

/** Sets the size of everything, 1 being that of the app. */
function setSize(size) {
  document.documentElement.style.setProperty("--headlight-scale", size);
  document.documentElement.style.setProperty("--size", size);
}

/** Fetches JSON; throws an Error with the server's sentence. */
async function asked(address, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(address, { ...options, credentials: "same-origin" });
  if (response.status === 204) return {};
  const found = await response.json().catch(() => ({}));
  if (!response.ok && !found.outcome) throw new Error(found.sentence ?? `${response.status}`);
  return found;
}

/** Loads pictures from the server, each once: their name is a hash of their content. */
const loadFrom = (address) => async (name) => {
  for (let wait = 250; ; wait *= 2) {
    const response = await fetch(`${address}/${name}`, { credentials: "same-origin" }).catch(() => null);
    if (response?.ok) return new Uint8Array(await response.arrayBuffer());
    if (response?.status === 404 || wait > 8000) throw new Error(`no picture ${name}`);
    await new Promise((done) => setTimeout(done, wait));
  }
};

/** Follows server-sent events for good: a connection that the server refuses is tried again, too. */
function follow(address, handlers, lost) {
  let source;
  const start = () => {
    source = new EventSource(address);
    source.onopen = () => lost(false);
    source.onerror = () => {
      lost(true);
      if (source.readyState === EventSource.CLOSED) setTimeout(start, 2000 + 3000 * Math.random());
    };
    for (const [kind, handle] of Object.entries(handlers)) source.addEventListener(kind, ({ data }) => handle(JSON.parse(data)));
  };
  start();
  return () => source.close();
}
