// Records a canvas as a film, by the browser's own MediaRecorder: WebM, or MP4 where a browser writes no WebM.

const FILM_TYPES = ["video/webm;codecs=vp9", "video/webm;codecs=vp8", "video/webm", "video/mp4"];
const FRAMES = 60; // frames a second, at most
const BITS = 8e6; // bits a second: edges of cells stay sharp

class FilmRecorder {
  /** `ended()` is called when a film has been saved. */
  constructor(ended) {
    this.ended = ended;
  }

  /** The type of the films of this browser; undefined: it records none. */
  static get type() {
    const records = globalThis.MediaRecorder && HTMLCanvasElement.prototype.captureStream;
    return records ? FILM_TYPES.find((type) => MediaRecorder.isTypeSupported(type)) : undefined;
  }

  get records() {
    return this.recorder?.state === "recording";
  }

  /** Records what `canvas` shows from now on, until `stop`, into a file of this name. */
  start(canvas, name) {
    const { type } = FilmRecorder;
    const pieces = [];
    let began = 0;
    const recorder = (this.recorder = new MediaRecorder(canvas.captureStream(FRAMES), { mimeType: type, videoBitsPerSecond: BITS }));
    recorder.addEventListener("dataavailable", ({ data }) => pieces.push(data));
    recorder.addEventListener("start", () => { began = performance.now(); });
    recorder.addEventListener("stop", async () => {
      const lasted = performance.now() - began;
      for (const track of recorder.stream.getTracks()) track.stop();
      const [media] = type.split(";");
      const href = URL.createObjectURL(await withLength(new Blob(pieces, { type: media }), lasted));
      el("a", { href, download: `${name}.${media.split("/")[1]}` }).click();
      setTimeout(() => URL.revokeObjectURL(href), KEPT_MS);
      this.ended();
    });
    recorder.start();
  }

  stop() {
    if (this.records) this.recorder.stop();
  }
}

const KEPT_MS = 60_000; // a browser may ask where to save a film before it reads it

const INFO = [0x15, 0x49, 0xa9, 0x66]; // ids of elements, as they stand in a WebM file (RFC 8794, RFC 9559)
const DURATION = [0x44, 0x89];
const HEADER = 4096; // bytes within which the information about a film stands

/** The same film, saying in its header that it lasts `ms`: MediaRecorder leaves that out, and players then show no length and cannot seek. */
async function withLength(film, ms) {
  const bytes = new Uint8Array(await film.slice(0, HEADER).arrayBuffer());
  const at = bytes.findIndex((_, i) => INFO.every((byte, j) => bytes[i + j] === byte));
  if (at < 0) return film; // no WebM
  const { value: size, end: start } = sizeAt(bytes, at + INFO.length);
  const end = start + size;
  if (end > bytes.length) return film;
  for (let place = start; place < end;) { // its children
    const id = bytes.subarray(place, place + widthOf(bytes[place]));
    if (DURATION.every((byte, i) => id[i] === byte)) return film;
    const child = sizeAt(bytes, place + id.length);
    place = child.end + child.value;
  }
  const added = new DataView(new ArrayBuffer(DURATION.length + 1 + 8));
  [...DURATION, 0x88].forEach((byte, i) => added.setUint8(i, byte));
  added.setFloat64(3, ms); // the format's default unit, which MediaRecorder keeps
  const whole = new DataView(new ArrayBuffer(8));
  whole.setBigUint64(0, BigInt(size + added.byteLength) | (1n << 56n)); // a size of eight bytes
  return new Blob([bytes.slice(0, at), new Uint8Array(INFO), whole, bytes.slice(start, end), added, film.slice(end)], { type: film.type });
}

/** Bytes of a number of variable width, which its first byte tells. */
function widthOf(first) {
  return Math.clz32(first) - 23;
}

/** The size that stands at a place, and where it ends. */
function sizeAt(bytes, place) {
  const width = widthOf(bytes[place]);
  let value = bytes[place] & (0xff >> width);
  for (let i = 1; i < width; i++) value = value * 256 + bytes[place + i];
  return { value, end: place + width };
}
