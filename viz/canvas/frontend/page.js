// A page of its own: what the app is to its drawings there, without a server. The run stands in the page, compressed; what a person
// chooses is drawn at once.

/** The bytes that viz/canvas/standalone.py compressed. */
async function inflated(text) {
  const { readable, writable } = new DecompressionStream("deflate");
  const writer = writable.getWriter();
  writer.write(Uint8Array.fromBase64?.(text) ?? lettersOf(atob(text)));
  writer.close();
  return new Uint8Array(await new Response(readable).arrayBuffer());
}

/** A string of bytes as bytes, in a browser without `fromBase64`; `Uint8Array.from` takes a hundred times as long. */
function lettersOf(text) {
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}

/** A scene without blobs, as `unpack` reads it. */
function scene(header) {
  const text = new TextEncoder().encode(JSON.stringify({ ...header, blobs: {} }));
  const data = new Uint8Array(4 + text.length);
  new DataView(data.buffer).setUint32(0, text.length, true);
  data.set(text, 4);
  return data;
}

const { strips: { array: ofStrips }, atlas: { array: ofAtlas }, ...pieces } = unpack(await inflated(document.getElementById("run").text)).blobs;
const { header: atlas } = unpack(ofAtlas);
for (const [path, { array }] of Object.entries(pieces)) supply.put(`${atlas.shelf}/${path}`, array);
const { groups } = supply.peek(`${atlas.shelf}/${atlas.parts.overview.name}/whole`).header;
const rows = new Map(groups.flatMap(({ queryStrip, queries, sites }) => sites.map(({ site }) => [site, { queryStrip, rows: queries.length }])));
let chosen = atlas.selection;

/** What the app's script does with a choice: all that was not chosen stays, a row that the site has not is let go. */
function choose(_, { site = chosen.site, head = chosen.head, query = chosen.query }) {
  chosen = { site, head, query: query < rows.get(site).rows ? query : -1 };
  queueMicrotask(draw);
}

function show(Kind, id, header) {
  mount({ parentElement: document.getElementById(id), data: scene(header), setStateValue: choose, setTriggerValue: () => {} }, Kind);
}

function draw() {
  show(Atlas, "atlas", { ...atlas, selection: chosen });
  if (folded.open) show(Strips, "strips", { ...unpack(ofStrips).header, ...rows.get(chosen.site), query: chosen.query });
}

const folded = document.querySelector("details");
folded.addEventListener("toggle", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
document.querySelector(".waiting").remove();
draw();
