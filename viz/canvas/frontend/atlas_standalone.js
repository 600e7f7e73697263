// Mounts the atlas of one run; film.js mounts the atlas of many snapshots.

export default (component) => mount(component, Atlas);
