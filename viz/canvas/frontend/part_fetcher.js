// Fetches the parts of scenes from the app's server, with an LRU cache that all drawings of the page share.

const FETCHED_BYTES = 160 * 2 ** 20;
const [FIRST_WAIT_MS, LONGEST_WAIT_MS] = [250, 8000];
const MOST_RERUNS = 3; // script runs requested to make the server recreate a part

class PartFetcher {
  constructor() {
    this.kept = new Map(); // by address, least recently used first
    this.bytes = 0;
  }

  /** The cached scene at an address, or null. */
  get(address) {
    const found = this.kept.get(address);
    if (!found) return null;
    this.kept.delete(address);
    this.kept.set(address, found);
    return found.scene;
  }

  /** Caches the bytes of a scene and evicts the least recently used ones. */
  put(address, data) {
    const scene = unpack(data);
    this.kept.set(address, { scene, size: data.length });
    this.bytes += data.length;
    for (const [old, { size }] of this.kept) {
      if (this.bytes <= FETCHED_BYTES || old === address) break;
      this.kept.delete(old);
      this.bytes -= size;
    }
    return scene;
  }

  /**
   * Fetches the scene at an address into the cache. Retries for as long as the connection is lost. If the server has evicted the
   * part, calls `gone()`, at most MOST_RERUNS times: that makes it recreate the part. Returns true once the scene is cached, false
   * if `signal` aborted or the server does not have the part.
   */
  async load(address, gone, signal) {
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
        if (!(error instanceof TypeError || error.name === "AbortError")) throw error; // both mean: no answer
      }
      await new Promise((done) => setTimeout(done, wait));
    }
    return false;
  }
}

/** The parts that a drawing failed to load, and the message below it that says so. */
class LostParts {
  /** `ask(address)` fetches a part again. */
  constructor(ask) {
    this.ask = ask;
    this.addresses = new Set();
  }

  /** Shows the message with a button that fetches the parts again; hides it if no part is missing. */
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

/** The page's fetcher. It is global because each drawing is a module of its own. */
const partFetcher = (globalThis.headlightPartFetcher ??= new PartFetcher());
