// The page in the place of a download that is being made: asks how far it is, then starts the download.

const AGAIN_MS = 1000;

const { texts } = JSON.parse(document.getElementById("page").textContent);
const state = document.getElementById("state");
const progress = document.getElementById("progress");
const filled = (text, gaps) => text.replace(/\{(\w+)\}/g, (_, name) => gaps[name]);

async function look() {
  const response = await fetch(location.href, { headers: { Accept: "application/json" }, credentials: "same-origin" }).catch(() => null);
  const told = await response?.json().catch(() => null);
  if (response?.status === 202 && told) {
    progress.value = told.prepared;
    state.textContent = told.prepared < told.steps ? filled(texts.preparing, told) : texts.packing;
  } else if (response?.status === 200) {
    progress.remove();
    state.textContent = texts.begun;
    return location.replace(location.href); // an attachment: this page stays
  } else if (response && response.status !== 429) {
    progress.remove();
    return void (state.textContent = told?.sentence ?? texts.failed);
  }
  setTimeout(look, AGAIN_MS);
}

look();
