// Live scenes: what the sentence box holds, drawn without a script run (viz/features/live). The drawings of the page register here.

const HELD_MS = 50; // how often a scene that is held back is looked at

/** True if two scenes are the same, byte by byte. */
function sameBytes(one, other) {
  if (one.length !== other.length) return false;
  for (let at = 0; at < one.length; at++) if (one[at] !== other[at]) return false;
  return true;
}

class LiveScenes {
  constructor() {
    this.drawings = new Set(); // those that follow what is typed; while Streamlit moves one, there are two of it
    this.held = new Map(); // scenes of the page's script that are older than what was typed, by drawing
    this.box = null; // the input of the sentence
    this.typed = null; // what a person typed into it; null: nothing, or the route cannot answer
    this.unsaid = null; // {text, path}: what was typed some seconds ago and the page's script did not know, and the session's address
    this.chosen = null; // seed, temperature or silenced heads that a person chose and the page's script has not drawn, as in the URL
    this.onOffered = () => {}; // called with the sentence of a scene of the page's script
    this.onDrawn = () => {}; // called with what a scene of the page's script is of, once it was taken
  }

  register(drawing) {
    if (drawing.header?.live && !drawing.life.signal.aborted) this.drawings.add(drawing);
  }

  forget(drawing) {
    this.drawings.delete(drawing);
    this.held.delete(drawing);
  }

  /** True if a scene of the page's script is older than what was typed or chosen: it would take the picture back. */
  isStale({ live }) {
    const { box, typed } = this;
    if (!live) return false;
    return !this.agrees(live) || (typed !== null && live.text !== typed && Boolean(box?.isConnected) && box.value === typed);
  }

  /** True if a scene is of what was chosen. */
  agrees({ seed, temperature, silenced }) {
    const { seed: wanted, temperature: warmth, silence } = this.chosen ?? {};
    const same = (text, number) => text === undefined || Number(text) === number;
    const heads = silence?.split(" ").filter(Boolean).map((head) => head.replace(":", "/")).sort();
    return same(wanted, seed) && same(warmth, temperature) && (!heads || String(heads) === String(silenced));
  }

  /** A scene of the page's script: the drawing takes it, or it is held back until the sentence box is changed elsewhere. */
  offer(drawing, data) {
    const scene = unpack(data);
    this.held.delete(drawing);
    if (scene.header.live) this.onOffered(scene.header.live.text);
    if (drawing.header && this.isStale(scene.header)) return this.hold(drawing, data, scene);
    this.take(drawing, data, scene);
  }

  take(drawing, data, scene) {
    drawing.accept(data, scene);
    drawing.scripted = data;
    if (scene.header.live) this.onDrawn(scene.header.live);
  }

  hold(drawing, data, scene) {
    this.held.set(drawing, { data, scene });
    this.looking ??= setInterval(() => this.release(), HELD_MS);
  }

  /** Draws the held scenes that are not stale any more. */
  release() {
    for (const [drawing, { data, scene }] of this.held) {
      if (this.isStale(scene.header)) continue;
      this.held.delete(drawing);
      this.take(drawing, data, scene);
      drawing.arrived();
    }
    if (this.held.size) return;
    clearInterval(this.looking);
    this.looking = null;
  }

  /** Leaves the sentence to the page's script. The script does not run again for the sentence that it knows: its picture comes back. */
  giveUp() {
    this.typed = null;
    this.release();
    for (const drawing of this.drawings) {
      const { scripted } = drawing;
      if (!scripted || unpack(scripted).header.live.text !== this.box?.value) continue;
      drawing.root.classList.remove("behind");
      if (drawing.accept(scripted)) drawing.arrived();
    }
  }

  /** Draws live scenes, {name: {data, scene}}, all in the same frame: their parts must have been fetched. */
  draw(scenes) {
    const changed = [...this.drawings].filter(({ name, root }) => {
      root.classList.toggle("behind", !(name in scenes));
      return name in scenes;
    }).filter((drawing) => drawing.accept(scenes[drawing.name].data, { ...scenes[drawing.name].scene }));
    for (const act of ["arrived", "drawNow"]) for (const drawing of changed) drawing[act]();
  }

  /** True while a drawing shows what the page's script has not drawn. */
  get ahead() {
    return [...this.drawings].some(({ data, scripted }) => data !== scripted && !(scripted && sameBytes(data, scripted)));
  }
}

/** The page's live scenes. They are global because each drawing is a module of its own. */
const liveScenes = (globalThis.headlightLiveScenes ??= new LiveScenes());
