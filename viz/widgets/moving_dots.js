// A picture with many dots is drawn by plotly through WebGL, all dots anew for each movement of the pointer: on a computer without a graphics card that takes a
// tenth of a second and more. So while somebody moves the picture, a copy of what is drawn moves, and plotly learns of the movement at its end.

if (!globalThis.headlightMovesDots) {
  globalThis.headlightMovesDots = true;
  const ours = new WeakSet(); // movements that are meant for plotly
  let drag = null; // { plot, from, to, target, copy } while a picture with dots is pressed

  // The copy lies where the dots are, in a box that cuts off what leaves the axes.
  const copied = (plot) => {
    const [canvas, area] = [plot.querySelector(".gl-canvas-context"), plot.querySelector(".nsewdrag")];
    const [all, inside] = [canvas.getBoundingClientRect(), area.getBoundingClientRect()];
    const box = document.createElement("div");
    box.className = "moving-dots";
    box.style = `position:absolute;overflow:hidden;left:${inside.left - all.left}px;top:${inside.top - all.top}px;width:${inside.width}px;height:${inside.height}px`;
    const copy = document.createElement("canvas");
    const ratio = canvas.width / all.width;
    [copy.width, copy.height] = [Math.round(inside.width * devicePixelRatio), Math.round(inside.height * devicePixelRatio)];
    copy.style = "position:absolute;inset:0;width:100%;height:100%;will-change:transform";
    const from = [(inside.left - all.left) * ratio, (inside.top - all.top) * ratio, inside.width * ratio, inside.height * ratio];
    copy.getContext("2d").drawImage(canvas, ...from, 0, 0, copy.width, copy.height);
    box.append(copy);
    const layers = plot.querySelector(".gl-container");
    layers.after(box);
    for (const each of [layers, plot.querySelector(".hoverlayer")]) each.style.visibility = "hidden";
    return box;
  };

  const along = (plot, across, down) => {
    for (const [axis, move] of [["x", across && `translateX(${across}px)`], ["y", down && `translateY(${down}px)`]]) {
      for (const each of plot.querySelectorAll(`.gridlayer .${axis}, .${axis}axislayer-above, .${axis}axislayer-below`)) each.style.transform = move || "";
    }
  };

  const end = () => {
    const { plot, to, target, copy } = drag;
    drag = null;
    if (!copy) return;
    const event = new MouseEvent("mousemove", { clientX: to[0], clientY: to[1], buttons: 1, bubbles: true, cancelable: true });
    ours.add(event);
    target.dispatchEvent(event); // plotly draws before this returns
    copy.remove();
    for (const each of plot.querySelectorAll(".gl-container, .hoverlayer")) each.style.visibility = "";
    along(plot, 0, 0);
  };

  addEventListener("mousedown", ({ target, button, clientX, clientY }) => {
    const plot = button ? null : target.closest?.(".nsewdrag")?.closest(".js-plotly-plot");
    drag = plot?._fullLayout?.dragmode === "pan" && plot.querySelector(".gl-canvas-context") ? { plot, from: [clientX, clientY], target, copy: null } : null;
  }, { capture: true });

  addEventListener("mousemove", (event) => {
    if (!drag || ours.has(event)) return;
    if (!(event.buttons & 1)) return end();
    event.stopImmediatePropagation();
    Object.assign(drag, { to: [event.clientX, event.clientY], target: event.target, copy: drag.copy ?? copied(drag.plot) });
    const [across, down] = drag.to.map((place, axis) => place - drag.from[axis]);
    drag.copy.firstChild.style.transform = `translate(${across}px, ${down}px)`;
    along(drag.plot, across, down);
  }, { capture: true });

  addEventListener("mouseup", () => { if (drag) end(); }, { capture: true });
}
