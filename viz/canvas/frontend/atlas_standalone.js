// The atlas of one run; the film (film.js) is an atlas of many.

export default (component) => mount(component, Atlas);
