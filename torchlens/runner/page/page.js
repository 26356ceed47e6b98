"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const { axes, figures, texts, grid } = JSON.parse(byId("data").textContent);
  // Text goes into the page as text only: labels come from models and files, and may hold anything.
  const make = (tag, className, text) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const lower = texts.map((text) => text.toLowerCase());
  const chosen = new Set(); // indexes of the figures to compare, in the order they were marked
  const filters = new Map(); // axis -> the one value shown
  let query = "";
  let hits = figures.map(() => []); // per figure, indexes of the boxes found

  // -- the overview
  const title = (figure) => {
    const parts = axes.map(({ key }) => `${key}=${figure.values[key]}`);
    return parts.length ? parts.join(" \u00b7 ") : figure.name;
  };
  const facts = (figure) => Object.entries(figure.chosen).map(([group, name]) => `${group}=${name}`).join("\n");

  function card(index) {
    const figure = figures[index];
    const element = make("figure");
    element.dataset.index = index;
    element.title = facts(figure);
    if (figure.shown) {
      const button = make("button", "show");
      button.type = "button";
      button.setAttribute("aria-label", `Open ${title(figure)}`);
      button.addEventListener("click", () => open([index]));
      const frame = make("span", "frame");
      place(frame, figure);
      const image = make("img");
      image.loading = "lazy";
      image.alt = title(figure);
      image.src = figure.shown;
      if (!figure.width) image.addEventListener("load", () => {
        figure.width = image.naturalWidth;
        figure.height = image.naturalHeight;
        place(frame, figure);
      });
      frame.append(image);
      button.append(frame);
      element.append(button);
    } else {
      element.append(make("div", "none", figure.text || (figure.files.length ? "no picture that a browser shows" : figure.status)));
    }
    const caption = make("figcaption");
    caption.append(make("span", "name", caption_text(figure)));
    if (!["ok", "kept"].includes(figure.status)) caption.append(make("span", "status", figure.status));
    if (figure.shown) {
      const label = make("label");
      const box = make("input");
      box.type = "checkbox";
      box.checked = chosen.has(index);
      box.addEventListener("change", () => mark(index, box.checked));
      label.append(box, "compare");
      caption.append(label);
    }
    for (const file of figure.files) {
      const link = make("a", "", file.format);
      link.href = file.href;
      link.target = "_blank";
      link.rel = "noopener";
      caption.append(link);
    }
    caption.append(make("span", "number"));
    element.append(caption);
    return element;
  }

  // In a table the row says the rest.
  const caption_text = (figure) => (axes.length > 1 ? columns().map(({ key }) => figure.values[key]).join(" \u00b7 ") : title(figure)) || figure.name;

  // Where a picture lies in a box of 4 to 3: as large as it fits, in the middle.
  function place(frame, figure) {
    const ratio = (figure.width || 4) / (figure.height || 3);
    const wide = ratio > 4 / 3;
    const width = wide ? 100 : (100 * ratio * 3) / 4;
    const height = wide ? ((100 / ratio) * 4) / 3 : 100;
    frame.style.cssText = `width:${width}%;height:${height}%;left:${(100 - width) / 2}%;top:${(100 - height) / 2}%`;
  }

  const visible = () => figures.map((_, index) => index).filter((index) => axes.every(({ key }) => !filters.has(key) || filters.get(key) === figures[index].values[key]));

  function draw() {
    const shown = visible();
    const main = byId("figures");
    main.replaceChildren();
    if (axes.length < 2) {
      const flow = make("div", "flow");
      flow.append(...shown.map(card));
      main.append(flow);
    } else {
      main.append(table(shown, columns()));
    }
    byId("count").textContent = `${shown.length} of ${figures.length} figures`;
    search();
  }

  // The axes side by side: one, or two together.
  const columns = () => JSON.parse(byId("columns").value).map((position) => axes[position]);
  const values_of = (figure, some) => JSON.stringify(some.map(({ key }) => figure.values[key]));

  function table(shown, across) {
    const others = axes.filter((axis) => !across.includes(axis));
    const rows = new Map();
    for (const index of shown) {
      const values = others.map(({ key }) => figures[index].values[key]);
      const name = JSON.stringify(values);
      if (!rows.has(name)) rows.set(name, { values, cells: new Map() });
      rows.get(name).cells.set(values_of(figures[index], across), index);
    }
    const present = new Set(shown.map((index) => values_of(figures[index], across)));
    const all = across.reduce((lists, { values }) => lists.flatMap((list) => values.map((value) => [...list, value])), [[]]);
    const named = all.map((list) => JSON.stringify(list)).filter((name) => present.has(name));
    const element = make("table");
    const head = element.createTHead().insertRow();
    head.append(make("th"));
    for (const name of named) {
      const cell = make("th");
      cell.scope = "col";
      JSON.parse(name).forEach((value, position) => cell.append(make("div", "", across[position].key), value));
      head.append(cell);
    }
    const body = element.createTBody();
    for (const { values, cells } of rows.values()) {
      const row = body.insertRow();
      const name = make("th");
      name.scope = "row";
      others.forEach(({ key }, position) => {
        name.append(make("div", "", key), values[position]);
      });
      row.append(name);
      for (const column of named) {
        const cell = row.insertCell();
        if (cells.has(column)) cell.append(card(cells.get(column)));
      }
    }
    return element;
  }

  function mark(index, on) {
    if (on) chosen.add(index);
    else chosen.delete(index);
    while (chosen.size > 2) chosen.delete(chosen.values().next().value); // the two marked last
    for (const element of document.querySelectorAll("figure")) {
      const box = element.querySelector("input");
      if (box) box.checked = chosen.has(Number(element.dataset.index));
    }
    byId("compare").disabled = chosen.size !== 2;
    byId("compare").textContent = chosen.size === 1 ? "Compare (mark one more)" : "Compare";
  }

  // -- search
  function search() {
    query = byId("search").value.trim().toLowerCase();
    const matching = query ? new Set(lower.map((text, position) => (text.includes(query) ? position : -1)).filter((position) => position >= 0)) : new Set();
    hits = figures.map(({ boxes }) => boxes.map((box, position) => (matching.has(box[0]) || matching.has(box[1]) ? position : -1)).filter((position) => position >= 0));
    let total = 0;
    let where = 0;
    for (const element of document.querySelectorAll("main figure")) {
      const index = Number(element.dataset.index);
      const count = hits[index].length;
      total += count;
      where += count > 0;
      element.classList.toggle("miss", Boolean(query) && count === 0);
      element.classList.remove("at");
      element.querySelector(".number").textContent = query && count ? `${count} found` : "";
      const frame = element.querySelector(".frame");
      if (frame) highlight(frame, index, -1);
    }
    byId("hits").textContent = query ? (total ? `${total} found in ${where} figure${where === 1 ? "" : "s, Enter goes on"}` : "nothing found") : "";
  }

  // Scroll to the next figure with hits; -1: to the one before.
  function nextFigure(by) {
    const found = [...document.querySelectorAll("main figure:not(.miss)")];
    if (!query || !found.length) return;
    const position = found.findIndex((element) => element.classList.contains("at"));
    const next = found[(position < 0 && by < 0 ? found.length - 1 : position + by + found.length) % found.length];
    for (const element of found) element.classList.toggle("at", element === next);
    next.scrollIntoView({ block: "center", inline: "nearest" });
  }

  function highlight(frame, index, now) {
    for (const old of frame.querySelectorAll(".mark")) old.remove();
    hits[index].forEach((position, number) => {
      const [, , left, top, width, height] = figures[index].boxes[position];
      const box = make("span", number === now ? "mark now" : "mark");
      box.style.cssText = `left:${(100 * left) / grid}%;top:${(100 * top) / grid}%;width:${(100 * width) / grid}%;height:${(100 * height) / grid}%`;
      frame.append(box);
    });
  }

  // -- one figure, or two side by side
  const viewer = byId("viewer");
  // One state for all panes: zoom over the whole figure, and the point of it in the middle, as parts of its sides.
  const state = { zoom: 1, x: 0.5, y: 0.5 };
  let panes = [];
  let now = -1;
  let opener = null;

  function open(indexes) {
    opener = document.activeElement;
    show(indexes);
    if (!viewer.open) viewer.showModal();
    whole();
    panes[0].stage.focus();
  }

  function show(indexes) {
    now = -1;
    panes = indexes.map((index) => {
      const figure = figures[index];
      const element = make("section", "pane");
      const heading = make("h2", "", title(figure));
      const link = make("a", "", "full size");
      link.href = figure.shown;
      link.target = "_blank";
      link.rel = "noopener";
      heading.append(link);
      const stage = make("div", "stage");
      stage.tabIndex = 0;
      stage.setAttribute("role", "group");
      stage.setAttribute("aria-label", `${title(figure)}: arrows move it, plus and minus zoom, Enter goes to the next hit`);
      const frame = make("div", "frame");
      const image = make("img");
      image.alt = title(figure);
      image.draggable = false;
      image.addEventListener("load", () => {
        if (!figure.width) [figure.width, figure.height] = [image.naturalWidth, image.naturalHeight];
        render();
      });
      image.src = figure.shown;
      frame.append(image);
      stage.append(frame);
      element.append(heading, stage);
      hold(stage);
      return { index, element, stage, frame };
    });
    byId("panes").replaceChildren(...panes.map(({ element }) => element));
    for (const id of ["previous", "next"]) byId(id).hidden = panes.length > 1;
    const count = panes.reduce((sum, { index }) => sum + hits[index].length, 0);
    byId("found").textContent = query ? `${count} found` : "";
    byId("hit").hidden = !count;
    for (const { frame, index } of panes) highlight(frame, index, now);
  }

  function fitted({ index, stage }) {
    const width = figures[index].width || 400;
    const height = figures[index].height || 300;
    return { width, height, scale: Math.min((stage.clientWidth - 16) / width, (stage.clientHeight - 16) / height) };
  }

  function render() {
    for (const pane of panes) {
      const { width, height, scale } = fitted(pane);
      const size = [width * scale * state.zoom, height * scale * state.zoom];
      const { style } = pane.frame;
      style.width = `${size[0]}px`;
      style.height = `${size[1]}px`;
      style.left = `${pane.stage.clientWidth / 2 - state.x * size[0]}px`;
      style.top = `${pane.stage.clientHeight / 2 - state.y * size[1]}px`;
    }
    byId("zoom").textContent = `${Math.round(100 * state.zoom)} %`;
  }

  function whole() {
    Object.assign(state, { zoom: 1, x: 0.5, y: 0.5 });
    render();
  }

  const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

  // Zoom by a factor; the point of the figure under (x, y) of a pane stays where it is.
  function zoom(factor, pane, x, y) {
    const before = state.zoom;
    state.zoom = clamp(before * factor, 0.2, 200);
    if (pane) {
      const { width, height, scale } = fitted(pane);
      const change = 1 / before - 1 / state.zoom;
      state.x += ((x - pane.stage.clientWidth / 2) / (width * scale)) * change;
      state.y += ((y - pane.stage.clientHeight / 2) / (height * scale)) * change;
    }
    settle();
  }

  function pan(dx, dy, pane) {
    const { width, height, scale } = fitted(pane || panes[0]);
    state.x -= dx / (width * scale * state.zoom);
    state.y -= dy / (height * scale * state.zoom);
    settle();
  }

  function settle() {
    state.x = clamp(state.x, 0, 1);
    state.y = clamp(state.y, 0, 1);
    render();
  }

  function hold(stage) {
    const find = () => panes.find((pane) => pane.stage === stage);
    let last = null;
    stage.addEventListener("pointerdown", (event) => {
      last = [event.clientX, event.clientY];
      stage.setPointerCapture(event.pointerId);
      stage.classList.add("held");
    });
    stage.addEventListener("pointermove", (event) => {
      if (!last) return;
      pan(event.clientX - last[0], event.clientY - last[1], find());
      last = [event.clientX, event.clientY];
    });
    for (const name of ["pointerup", "pointercancel"]) stage.addEventListener(name, () => {
      last = null;
      stage.classList.remove("held");
    });
    stage.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = stage.getBoundingClientRect();
      zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), find(), event.clientX - box.left, event.clientY - box.top);
    }, { passive: false });
    stage.addEventListener("dblclick", (event) => {
      const box = stage.getBoundingClientRect();
      zoom(2, find(), event.clientX - box.left, event.clientY - box.top);
    });
  }

  function step(by) {
    if (panes.length !== 1) return;
    const shown = visible().filter((index) => figures[index].shown);
    const position = shown.indexOf(panes[0].index);
    show([shown[(position + by + shown.length) % shown.length]]);
    whole();
    panes[0].stage.focus();
  }

  // Go to the next box that was found, first in the left pane.
  function nextHit(by) {
    const pane = panes.find(({ index }) => hits[index].length);
    if (!pane) return;
    const found = hits[pane.index];
    now = (now + by + found.length) % found.length;
    const [, , left, top, width, height] = figures[pane.index].boxes[found[now]];
    Object.assign(state, { x: (left + width / 2) / grid, y: (top + height / 2) / grid });
    const whole = fitted(pane);
    const wide = ((whole.width * width) / grid) * whole.scale; // pixels of the box in the whole figure
    if (wide * state.zoom < 200) state.zoom = clamp(300 / wide, 1, 60);
    settle();
    for (const { frame, index } of panes) highlight(frame, index, index === pane.index ? now : -1);
    byId("found").textContent = `${now + 1} of ${found.length}: ${texts[figures[pane.index].boxes[found[now]][0]]}`;
  }

  // -- hands and keys
  byId("search").addEventListener("input", search);
  byId("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") nextFigure(event.shiftKey ? -1 : 1);
  });
  byId("columns").addEventListener("change", draw);
  byId("size").addEventListener("input", (event) => document.documentElement.style.setProperty("--size", `${event.target.value}px`));
  byId("compare").addEventListener("click", () => open([...chosen].sort((a, b) => a - b)));
  byId("close").addEventListener("click", () => viewer.close());
  byId("previous").addEventListener("click", () => step(-1));
  byId("next").addEventListener("click", () => step(1));
  byId("in").addEventListener("click", () => zoom(1.25));
  byId("out").addEventListener("click", () => zoom(0.8));
  byId("fit").addEventListener("click", whole);
  byId("hit").addEventListener("click", () => nextHit(1));
  viewer.addEventListener("close", () => {
    byId("panes").replaceChildren();
    panes = [];
    if (opener && opener.isConnected) opener.focus();
  });
  addEventListener("resize", render);

  const schemes = ["auto", "light", "dark"];
  const words = { auto: ["Auto", "as the system"], light: ["Light", "light"], dark: ["Dark", "dark"] };
  byId("scheme").addEventListener("click", () => {
    const root = document.documentElement;
    const scheme = schemes[(schemes.indexOf(root.dataset.scheme || "auto") + 1) % schemes.length];
    if (scheme === "auto") delete root.dataset.scheme;
    else root.dataset.scheme = scheme;
    byId("scheme").textContent = words[scheme][0];
    byId("scheme").setAttribute("aria-label", `Colours: ${words[scheme][1]}`);
  });

  const far = 80;
  const keys = {
    "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: whole, n: () => step(1), p: () => step(-1),
    ArrowLeft: () => pan(far, 0), ArrowRight: () => pan(-far, 0), ArrowUp: () => pan(0, far), ArrowDown: () => pan(0, -far),
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (viewer.open) {
      if (event.key === "Enter" && event.target.tagName !== "BUTTON" && event.target.tagName !== "A") nextHit(event.shiftKey ? -1 : 1);
      else if (keys[event.key]) {
        keys[event.key]();
        event.preventDefault();
      }
    } else if (event.key === "/" && !typing) {
      byId("search").focus();
      byId("search").select();
      event.preventDefault();
    }
  });

  // -- start
  // Columns may be one axis or two; at first as many as a window holds, of the axes named last.
  const most = 6;
  const choices = [...axes.keys()].map((position) => [position]);
  for (const first of axes.keys()) for (const second of axes.keys()) if (first < second) choices.push([first, second]);
  const width = (choice) => choice.reduce((product, position) => product * axes[position].values.length, 1);
  for (const choice of choices) {
    if (choice.length > 1 && width(choice) > 24) continue;
    const option = make("option", "", choice.map((position) => axes[position].key).join(" + "));
    option.value = JSON.stringify(choice);
    byId("columns").append(option);
  }
  const fitting = choices.filter((choice) => choice.length < axes.length && width(choice) <= most);
  if (axes.length) byId("columns").value = JSON.stringify(fitting.reduce((best, choice) => (width(choice) >= width(best) ? choice : best), fitting[0] || [axes.length - 1]));
  byId("columns-label").hidden = axes.length < 2;
  for (const { key, values } of axes.length > 1 || figures.length > 12 ? axes : []) {
    if (values.length < 2 || key === "figure") continue;
    const group = make("fieldset");
    group.append(make("legend", "", key));
    for (const value of values) {
      const button = make("button", "", value);
      button.type = "button";
      button.setAttribute("aria-pressed", "false");
      button.addEventListener("click", () => {
        const on = filters.get(key) !== value;
        if (on) filters.set(key, value);
        else filters.delete(key);
        for (const other of group.querySelectorAll("button")) other.setAttribute("aria-pressed", String(on && other === button));
        draw();
      });
      group.append(button);
    }
    byId("filters").append(group);
  }
  // As large as the columns leave room for beside the heads of the rows.
  if (axes.length > 1) {
    const count = columns().reduce((product, { values }) => product * values.length, 1);
    const room = Math.floor(((window.innerWidth - 220) / count - 12) / 20) * 20;
    byId("size").value = Math.max(160, Math.min(240, room));
    byId("size").dispatchEvent(new Event("input"));
  }
  draw();
  byId("figures").focus({ preventScroll: true }); // so that the keys that scroll do
})();
