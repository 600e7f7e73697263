// The strips alone; a page of its own (page.js) has the atlas beside them.

export default (component) => mount(component, Strips);
