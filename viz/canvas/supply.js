// Parts of scenes: fetched from the app's own server where they did not come along, and kept for every drawing of the page.

const SUPPLY_BYTES = 160 * 2 ** 20;
const [FIRST_WAIT_MS, LONGEST_WAIT_MS] = [250, 8000];

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
   * Fetches what is at an address, as often as it takes: a connection may be lost, or the server may have made room. Then `gone()`
   * is called, which lets the server put it back. True once it is here; false if `signal` ended it.
   */
  async bring(address, gone, signal) {
    for (let wait = FIRST_WAIT_MS; !signal.aborted; wait = Math.min(2 * wait, LONGEST_WAIT_MS)) {
      try {
        const answer = await fetch(address, { signal });
        if (answer.ok) {
          if (!this.kept.has(address)) this.put(address, new Uint8Array(await answer.arrayBuffer()));
          return true;
        }
        if (answer.status === 404) gone();
      } catch (error) {
        if (!(error instanceof TypeError || error.name === "AbortError")) throw error; // both say that nothing came
      }
      await new Promise((done) => setTimeout(done, wait));
    }
    return false;
  }
}

/** The supply of the page: drawings come as modules of their own, and share it. */
const supply = (globalThis.headlightSupply ??= new Supply());
