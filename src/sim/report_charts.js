// Charts as inline SVG. They know numbers, axes and colors, nothing of simulations.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children (nodes or text); names are never parsed as HTML. */
function make(name, attributes = {}, ...children) {
  const svg = ["svg", "g", "path", "line", "text", "rect"].includes(name);
  const node = svg ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("--")) node.style.setProperty(key, value);
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

/** Seconds for people: 85 ms, 1.25 s, 120 s. */
function seconds(s) {
  if (s < 0.9995) return `${Number((s * 1000).toPrecision(3))} ms`;
  return `${Number(s.toPrecision(3))} s`;
}

/** An axis: `at(value)` is a pixel, `value(pixel)` its reverse. */
function axis(low, high, from, to, log = false) {
  const f = log ? Math.log : (x) => x, back = log ? Math.exp : (x) => x;
  const scale = (to - from) / (f(high) - f(low) || 1);
  const inside = (x) => clamp(x, Math.min(low, high), Math.max(low, high));
  return {
    low, high, log,
    at: (x) => from + (f(inside(x)) - f(low)) * scale,
    value: (pixel) => inside(back(f(low) + (pixel - from) / scale)),
  };
}

/** Round values of the axis, about `count` of them. */
function ticks({low, high, log}, count) {
  const found = [];
  if (log) {
    for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; ++power) {
      for (const digit of high / low > 10 ** (count / 2) ? [1] : [1, 2, 5]) {
        const x = Number((digit * 10 ** power).toPrecision(1));
        if (x >= low && x <= high) found.push(x);
      }
    }
    return found;
  }
  const rough = (high - low) / count, unit = 10 ** Math.floor(Math.log10(rough || 1));
  const step = unit * [1, 2, 5, 10].find((m) => m * unit >= rough);
  for (let i = Math.ceil(low / step); i * step <= high; ++i) found.push(i * step);
  return found;
}

/** A figure's drawing with its frame: axes, grid, labels. */
function frame(figure, {height, left = 48, top = 8, bottom = 38, x, y, label}) {
  figure.querySelectorAll("svg, .tip").forEach((old) => old.remove());
  const width = Math.max(figure.clientWidth, 240);
  const svg = make("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: 0, "aria-label": label});
  const area = {left, right: width - 12, top, bottom: height - bottom, width, height};
  const xs = axis(x.low, x.high, area.left, area.right, x.log);
  const ys = axis(y.low, y.high, area.bottom, area.top);
  for (const tick of ticks(xs, width / 90)) {
    const at = xs.at(tick), anchor = at > area.right - 14 ? "end" : "middle";
    if (x.grid !== false) svg.append(make("line", {class: "grid", x1: at, x2: at, y1: area.top, y2: area.bottom}));
    svg.append(make("text", {x: at, y: area.bottom + 16, "text-anchor": anchor}, x.format(tick)));
  }
  for (const tick of y.ticks ?? ticks(ys, 5)) {
    const at = ys.at(tick);
    if (y.grid !== false) svg.append(make("line", {class: "grid", x1: area.left, x2: area.right, y1: at, y2: at}));
    svg.append(make("text", {x: area.left - 6, y: at + 4, "text-anchor": "end"}, y.format(tick)));
  }
  svg.append(make("text", {x: (area.left + area.right) / 2, y: height - 4, "text-anchor": "middle"}, x.title));
  figure.append(svg);
  return {svg, area, xs, ys};
}

/** Shows `lines` ([{color, name, value}]) beside a point of the figure. */
function tip(figure, svg, x, y, title, lines) {
  figure.querySelector(".tip")?.remove();
  const box = make("div", {class: "tip", role: "status"}, make("b", {}, title));
  for (const {color, name, value} of lines) {
    const key = make("span", {}, ...(color ? [make("i", {style: `background:${color}`})] : []), name);
    box.append(make("div", {}, key, make("span", {}, value)));
  }
  figure.append(box);
  const scale = svg.clientWidth / svg.viewBox.baseVal.width, left = x * scale + 14;
  box.style.left = `${left + box.offsetWidth > svg.clientWidth ? Math.max(0, x * scale - box.offsetWidth - 14) : left}px`;
  box.style.top = `${svg.getBoundingClientRect().top - figure.getBoundingClientRect().top + clamp(y * scale - 20, 0, Math.max(0, svg.clientHeight - box.offsetHeight))}px`;
}

/** Calls `at(x, y)` as the pointer or the arrow keys move over the drawing, `leave()` when they go. */
function track(svg, {area, stepX, stepY = 0}, at, leave) {
  let x = (area.left + area.right) / 2, y = (area.top + area.bottom) / 2;
  const move = (toX, toY) => {
    x = clamp(toX, area.left, area.right - 0.01);
    y = clamp(toY, area.top, area.bottom - 0.01);
    at(x, y);
  };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect(), scale = area.width / box.width;
    move((event.clientX - box.left) * scale, (event.clientY - box.top) * scale);
  });
  svg.addEventListener("keydown", (event) => {
    const step = {ArrowLeft: [-stepX, 0], ArrowRight: [stepX, 0], ArrowUp: [0, -stepY], ArrowDown: [0, stepY]}[event.key];
    if (event.key === "Escape") leave();
    if (!step || (!step[0] && !step[1])) return;
    event.preventDefault();
    move(x + step[0], y + step[1]);
  });
  svg.addEventListener("focus", () => svg.matches(":focus-visible") && move(x, y));
  for (const gone of ["pointerleave", "blur"]) svg.addEventListener(gone, leave);
}

/** Lines over a common x. series: [{name, color, dash, first, points: [[x, y or null]]}];
    marks: [{x, what}]; `read(series, x)` is the text of a series at x, null for none. */
function lineChart(figure, {x, y, series, marks = [], label, read}) {
  const shown = marks.filter((mark) => mark.x >= x.low && mark.x <= x.high);
  const {svg, area, xs, ys} = frame(figure, {height: 320, top: 38, x, y, label});
  shown.forEach((mark, i) => {  // labels above the frame, on two lines by turns
    const at = xs.at(mark.x), end = at > (area.left + area.right) / 2, line = 28 - 14 * (i % 2);
    svg.append(make("line", {class: "mark", x1: at, x2: at, y1: line - 8, y2: area.bottom}));
    svg.append(make("text", {x: at + (end ? -4 : 4), y: line, "text-anchor": end ? "end" : "start"}, mark.what));
  });
  for (const {color, dash, first, points} of series) {
    let path = "", pen = "M";
    for (const [px, py] of points) {
      if (py === null) { pen = "M"; continue; }
      path += `${pen}${xs.at(px).toFixed(1)},${ys.at(py).toFixed(1)}`;
      pen = "L";
    }
    svg.append(make("path", {class: first ? "line first" : "line", d: path || "M0,0", stroke: color, "stroke-dasharray": dash}));
  }
  const cross = make("line", {class: "cross", y1: area.top, y2: area.bottom, visibility: "hidden"});
  svg.append(cross);
  track(svg, {area, stepX: (area.right - area.left) / 60}, (at, height) => {
    for (const key of ["x1", "x2"]) cross.setAttribute(key, at);
    cross.setAttribute("visibility", "visible");
    const value = xs.value(at);
    const lines = series.map((s) => ({color: s.color, name: s.name, value: read(s, value)}));
    tip(figure, svg, at, height, x.name(value), lines.filter((line) => line.value !== null));
  }, () => {
    cross.setAttribute("visibility", "hidden");
    figure.querySelector(".tip")?.remove();
  });
}

/** cells[column][row] in percent; `read(column, row)`: {title, lines} of a cell. */
function heatMap(figure, {cells, x, rowName, label, read}) {
  const rows = cells[0]?.length ?? 0;
  if (rows === 0) return figure.querySelectorAll("svg").forEach((old) => old.remove());
  const size = clamp(Math.floor(192 / rows), 4, 24);
  const every = Math.ceil(16 / size), shown = [...Array(rows).keys()].filter((r) => r % every === 0);
  const y = {low: rows, high: 0, grid: false, ticks: shown.map((r) => r + 0.5), format: (r) => rowName(r - 0.5)};
  const drawn = frame(figure, {height: size * rows + 46, x: {...x, grid: false}, y, label});
  const {svg, area} = drawn, map = make("g", {class: "heat"});
  const width = (area.right - area.left) / cells.length, height = (area.bottom - area.top) / rows;
  const steps = new Map();  // a path for all cells of a shade
  cells.forEach((column, c) => column.forEach((percent, r) => {
    const shade = clamp(Math.round(percent / 4) * 4, 0, 100);
    const at = `M${(area.left + c * width).toFixed(2)},${(area.top + r * height).toFixed(2)}`;
    steps.set(shade, (steps.get(shade) ?? "") + `${at}h${(width + 0.3).toFixed(2)}v${(height - 1).toFixed(2)}h${(-width - 0.3).toFixed(2)}z`);
  }));
  for (const [shade, path] of steps) map.append(make("path", {d: path, "--v": shade}));
  const cross = make("rect", {class: "cross cell", width, height: height - 1, visibility: "hidden"});
  svg.append(map, cross);
  track(svg, {area, stepX: width, stepY: height}, (atX, atY) => {
    const c = Math.floor((atX - area.left) / width), r = Math.floor((atY - area.top) / height);
    cross.setAttribute("x", area.left + c * width);
    cross.setAttribute("y", area.top + r * height);
    cross.setAttribute("visibility", "visible");
    const {title, lines} = read(c, r);
    tip(figure, svg, atX, atY, title, lines);
  }, () => {
    cross.setAttribute("visibility", "hidden");
    figure.querySelector(".tip")?.remove();
  });
}
