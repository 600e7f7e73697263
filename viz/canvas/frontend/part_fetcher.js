// Parts of scenes: fetched from the app's own server where they did not come along, and kept for every drawing of the page.

const SUPPLY_BYTES = 160 * 2 ** 20;
const [FIRST_WAIT_MS, LONGEST_WAIT_MS] = [250, 8000];
const MOST_RERUNS = 3; // that are asked for to get a part put back

class Supply {
  constructor() {
    this.kept = new Map(); // by address, what was used longest ago first
    this.bytes = 0;
  }

  /** The scene at an address, if it is here. */
  peek(address) {
    const found = this.kept.get(address);
    if (!found) return null;
    this.kept.delete(address);
    this.kept.set(address, found);
    return found.scene;
  }

  /** Takes in the bytes of a scene; what was used longest ago makes room. */
  put(address, data) {
    const scene = unpack(data);
    this.kept.set(address, { scene, size: data.length });
    this.bytes += data.length;
    for (const [old, { size }] of this.kept) {
      if (this.bytes <= SUPPLY_BYTES || old === address) break;
      this.kept.delete(old);
      this.bytes -= size;
    }
    return scene;
  }

  /**
   * Fetches what is at an address. A lost connection is tried again for as long as it takes. Where the server has made room, `gone()`
   * is called, which lets it put the part back; at most MOST_RERUNS times. True once it is here; false if `signal` ended it, or the
   * server does not have it.
   */
  async bring(address, gone, signal) {
    let reruns = 0;
    for (let wait = FIRST_WAIT_MS; !signal.aborted; wait = Math.min(3 * wait, LONGEST_WAIT_MS)) {
      try {
        const answer = await fetch(address, { signal });
        if (answer.ok) {
          if (!this.kept.has(address)) this.put(address, new Uint8Array(await answer.arrayBuffer()));
          return true;
        }
        if (answer.status === 404) {
          if (reruns++ === MOST_RERUNS) return false;
          gone();
        }
      } catch (error) {
        if (!(error instanceof TypeError || error.name === "AbortError")) throw error; // both say that nothing came
      }
      await new Promise((done) => setTimeout(done, wait));
    }
    return false;
  }
}

/** The parts that a drawing could not get, and the sentence under it that says so. */
class LostParts {
  /** `ask` fetches what is at an address once more. */
  constructor(ask) {
    this.ask = ask;
    this.addresses = new Set();
  }

  /** Shows the sentence, with a button that asks for the parts again; hides it where nothing is lost. */
  tell(root, { sentence, button }) {
    this.box?.remove();
    if (!this.addresses.size) return;
    const again = el("button", { type: "button", onclick: () => this.again() }, button);
    this.box = el("p", { class: "lost", role: "alert" }, sentence, " ", again);
    root.append(this.box);
  }

  again() {
    const addresses = [...this.addresses];
    this.addresses.clear();
    this.box.remove();
    addresses.forEach(this.ask);
  }
}

/** The supply of the page: drawings come as modules of their own, and share it. */
const supply = (globalThis.headlightSupply ??= new Supply());
