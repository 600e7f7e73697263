// A page that is opened appears when its first script run is over and nothing moves any more: until then its parts push each other about.

const MOVES = "headlightMoves";
const STILL_MS = 150;
const STILL_FRAMES = 6; // on a busy machine a frame takes long, and little happens in 150 ms
const LONGEST_MS = globalThis.headlightPatience ?? 1500; // what takes longer is shown as it comes
const PARTS = ".stSidebar, .stMain .stElementContainer, .stMain [data-testid=stLayoutWrapper]";

const UNFINISHED = "[data-testid=stSkeleton], .stMain [class*=st-key-waiting]"; // a gray box in the place of what is loaded; what waits for a run

const { dataset } = document.documentElement;
let [places, since, frames] = ["", 0, 0];

/** Whether a script run is over, and all is there that the window shows. */
function isBuilt() {
  const app = document.querySelector("[data-testid=stApp]");
  const unfinished = [...document.querySelectorAll(UNFINISHED)];
  return app?.dataset.testScriptState === "notRunning" && !unfinished.some((box) => box.getBoundingClientRect().top < innerHeight);
}

/** Looks in each frame whether the page stands still, and shows it then. */
function look() {
  const [now, before] = [performance.now(), places];
  places = JSON.stringify([...document.querySelectorAll(PARTS)].map((part) => part.getBoundingClientRect()));
  if (places !== before || !isBuilt()) [since, frames] = [now, 0];
  const isStill = now - since > STILL_MS && frames++ > STILL_FRAMES;
  if (!isStill && now < LONGEST_MS) requestAnimationFrame(look);
  else delete dataset[MOVES];
}

dataset[MOVES] = "";
look();
