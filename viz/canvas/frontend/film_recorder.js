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
    const recorder = (this.recorder = new MediaRecorder(canvas.captureStream(FRAMES), { mimeType: type, videoBitsPerSecond: BITS }));
    recorder.addEventListener("dataavailable", ({ data }) => pieces.push(data));
    recorder.addEventListener("stop", () => {
      for (const track of recorder.stream.getTracks()) track.stop();
      const [media] = type.split(";");
      const href = URL.createObjectURL(new Blob(pieces, { type: media }));
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
