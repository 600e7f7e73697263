// Reads the answer of the live route: a stream of frames.

/** The frames of an answer, each {header, scenes}; viz/features/live/route.py makes them. */
async function* framesOf(body) {
  const reader = body.getReader();
  let held = new Uint8Array();
  for (;;) {
    while (held.length >= 4 && held.length >= 4 + lengthOf(held)) {
      const end = 4 + lengthOf(held);
      const { header, blobs } = unpack(held.slice(4, end));
      held = held.slice(end);
      const opened = ([name, { array }]) => { const data = array.slice(); return [name, { data, scene: unpack(data) }]; };
      yield { header, scenes: Object.fromEntries(Object.entries(blobs).map(opened)) };
    }
    const { done, value } = await reader.read();
    if (done) return;
    const both = new Uint8Array(held.length + value.length);
    both.set(held);
    both.set(value, held.length);
    held = both;
  }
}

const lengthOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);

/** Fetches the parts of scenes that are not in them, so that all drawings can change in the same frame. */
function fetchParts(scenes, signal) {
  const missing = Object.values(scenes).flatMap(({ scene: { header: { parts = {}, partsAddress }, blobs } }) => {
    const whole = Object.entries(parts).filter(([name, part]) => !blobs[name] && !part.levels);
    return whole.map(([, part]) => `${partsAddress}/${part.name}/whole`).filter((address) => !partFetcher.get(address));
  });
  return Promise.all(missing.map((address) => partFetcher.load(address, () => {}, signal)));
}
