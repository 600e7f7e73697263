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

const { strips: { array: ofStrips }, atlas: ofAtlas, other: ofOther, lines: { array: ofLines }, ...pieces } = unpack(await inflated(document.getElementById("run").text)).blobs;
const readings = [ofAtlas, ofOther].filter(Boolean).map(({ array }) => unpack(array).header); // with and without the first token
let [atlas] = readings;
for (const [path, { array }] of Object.entries(pieces)) partFetcher.put(`${atlas.partsAddress}/${path}`, array);
const overview = partFetcher.get(`${atlas.partsAddress}/${atlas.parts.overview.name}/whole`);
const { groups } = overview.header;
const lines = unpack(ofLines).header;
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
  drawLines();
  if (folded.open) show(Strips, "strips", { ...unpack(ofStrips).header, ...rows.get(chosen.site), query: chosen.query, continues: null });
}

/** The name of the part with the weights of a head; null: the page has them only pooled, or too many for lines. */
function partOfLines(site, head, { blocks }) {
  const place = atlas.places[`${site}/${head}`];
  if (place) return place.levels ? null : { name: place.name };
  if (String(blocks) !== "1,1") return null;
  const name = `${site}/${head}/about`;
  const { shape: [, rows, columns], array } = overview.blobs[`weights/${site}`];
  const codes = array.subarray(head * rows * columns, (head + 1) * rows * columns);
  const exact = { shape: [rows, columns], array: Float32Array.from(codes, (code) => (code / 255) ** 2) };
  partFetcher.kept.set(`${atlas.partsAddress}/${name}/whole`, { scene: { header: {}, blobs: { exact } }, size: 4 * exact.array.length });
  return { name, about: true };
}

/** Draws the selected head as lines, with the weights of the overview where the page has no others. */
function drawLines() {
  const { site, head, query } = chosen;
  const group = groups.find(({ sites }) => sites.some((row) => row.site === site));
  const part = partOfLines(site, head, group);
  ofHead.hidden = !part;
  if (!part) return;
  const name = group.sites.find((row) => row.site === site).names[head];
  ofHead.querySelector("summary").textContent = fill(part.about ? lines.about : lines.title, { head: name });
  if (!ofHead.open) return;
  const { schemes, run, decimal, silenced, partsAddress, lost } = atlas;
  const { queryAxis, keyAxis, queries, keys, queryStrip, keyStrip } = group;
  const drawn = { queryAxis, keyAxis, queries, keys, queryStrip, keyStrip, name, site, head, query, opens: false, largest: 1 };
  const words = { texts: lines.texts, description: "" };
  show(Lines, "lines", { schemes, run, decimal, silenced, partsAddress, lost, ...drawn, ...words, parts: { exact: part } });
}

const folded = document.querySelector("details");
const ofHead = document.getElementById("of-lines");
for (const part of [folded, ofHead]) part.addEventListener("toggle", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
document.querySelector(".waiting").remove();
await document.fonts.load('1em "Source Sans"').catch(() => []); // labels are measured
draw();
