// Mounts the strips alone; the standalone page (page.js) has the atlas beside them.

export default (component) => mount(component, Strips);
