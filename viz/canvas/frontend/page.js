// The script of a standalone page: it plays the part of the app, without a server. The page holds the run, compressed; every choice
// is drawn immediately.

/** Decompresses what viz/canvas/standalone.py compressed. */
async function inflated(text) {
  const { readable, writable } = new DecompressionStream("deflate");
  const writer = writable.getWriter();
  writer.write(Uint8Array.fromBase64?.(text) ?? bytesOfString(atob(text)));
  writer.close();
  return new Uint8Array(await new Response(readable).arrayBuffer());
}

/** The bytes of a binary string, for browsers without `fromBase64`. `Uint8Array.from` would be a hundred times slower. */
function bytesOfString(text) {
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}

/** The bytes of a scene without blobs, as `unpack` reads them. */
function scene(header) {
  const text = new TextEncoder().encode(JSON.stringify({ ...header, blobs: {} }));
  const data = new Uint8Array(4 + text.length);
  new DataView(data.buffer).setUint32(0, text.length, true);
  data.set(text, 4);
  return data;
}

const { strips: { array: ofStrips }, atlas: ofAtlas, other: ofOther, ...pieces } = unpack(await inflated(document.getElementById("run").text)).blobs;
const readings = [ofAtlas, ofOther].filter(Boolean).map(({ array }) => unpack(array).header); // with and without the first token
let [atlas] = readings;
for (const [path, { array }] of Object.entries(pieces)) partFetcher.put(`${atlas.partsAddress}/${path}`, array);
const { groups } = partFetcher.get(`${atlas.partsAddress}/${atlas.parts.overview.name}/whole`).header;
const rows = new Map(groups.flatMap(({ queryStrip, queries, sites }) => sites.map(({ site }) => [site, { queryStrip, rows: queries.length }])));
let chosen = atlas.selection;

/** Applies a choice as the app's script does: other fields stay, and a row that the site does not have is deselected. */
function choose(_, { site = chosen.site, head = chosen.head, query = chosen.query, hide }) {
  if (hide) atlas = readings.find(({ first }) => (hide === "first") === Boolean(first?.left)) ?? atlas;
  chosen = { site, head, query: query < rows.get(site).rows ? query : -1 };
  queueMicrotask(draw);
}

function show(Kind, id, header) {
  mount({ parentElement: document.getElementById(id), data: scene(header), setStateValue: choose, setTriggerValue: () => {} }, Kind);
}

function draw() {
  show(Atlas, "atlas", { ...atlas, selection: chosen });
  if (folded.open) show(Strips, "strips", { ...unpack(ofStrips).header, ...rows.get(chosen.site), query: chosen.query, continues: null });
}

const folded = document.querySelector("details");
folded.addEventListener("toggle", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
document.querySelector(".waiting").remove();
await document.fonts.load('1em "Source Sans"').catch(() => []); // labels are measured
draw();
