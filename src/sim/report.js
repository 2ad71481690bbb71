// The page: what is chosen, and what of the data goes into which chart.

const {meta, runs} = JSON.parse(document.getElementById("data").textContent);
const get = (id) => document.getElementById(id);
const PERCENTS = [...Array(100).keys(), 99.5, 99.9, 100];  // of `ttft`
const DASHES = ["", "7 3", "2 3", "9 3 2 3"];
const TTFT_GOAL = 1;  // seconds: the service level of goodput

// Columns of the table: [title, key, unit, factor, digits, what it means].
const COLUMNS = [
  ["requests", "requests", "", 1, 0], ["errors", "errors", "", 1, 0],
  ["hit", "hit_ratio", "%", 100, 1, "prompt tokens found in a KV cache, by the engines’ word"],
  ["hit bound", "hit_ratio_bound", "%", 100, 1, "what no router can pass with this memory"],
  ["believed", "hit_ratio_believed", "%", 100, 1, "hit ratio as the router expected it"],
  ["TTFT p50", "ttft_p50_s", "s", 1, 3], ["TTFT p99", "ttft_p99_s", "s", 1, 3],
  ["burst bound", "makespan_bound_s", "s", 1, 3, "first prefills of a cold burst, balanced over the fleet"],
  ["in line", "admission_wait_mean_s", "s", 1, 2], ["in line p99", "admission_wait_p99_s", "s", 1, 2],
  ["TPOT p50", "tpot_p50_s", "ms", 1000, 1],
  ["static", "static_prefill_share", "%", 100, 1, "engine time spent on static prompts"],
  ["again", "recompute_share", "%", 100, 1, "engine time spent on static tokens that the same engine had before"],
  ["good/s", "goodput_rps", "", 1, 1, "requests a second with TTFT ≤ 1 s and TPOT ≤ 50 ms"],
  ["requests/s", "requests_per_s", "", 1, 1],
  ["imbalance", "load_imbalance", "", 1, 2, "prefill work of the busiest replica over the mean"],
  ["homes", "mean_homes", "", 1, 1, "replicas that served a prefix"],
  ["refreshes", "refresh_share", "%", 100, 1, "requests of the gateways' own, to keep prefixes cached, of all that were sent"],
  ["back after", "recovery_s", "s", 1, 0, "until the hit ratio is back at 95 % after the fleet changed"],
];

runs.forEach((run) => {
  const {row} = run;
  run.group = `${row.fleet}\n${row.phase}`;
  run.single = row.gateways === 1 && row.working_set === "off";
  run.name = row.policy + (row.gateways > 1 ? `, ${row.gateways} gateways, deltas ${row.deltas}` : "") +
             (row.working_set === "on" ? ", admission" : "") +
             (row.keep_warm === "on" ? ", kept warm" : "");
});
const unique = (values) => [...new Set(values)];
// A policy looks the same in every chart; `prefix` comes first, then those it is compared with.
const names = unique(["prefix", "round_robin", ...unique(runs.map((run) => run.name)).sort(
    (a, b) => a.includes(",") - b.includes(","))]);
const lookOf = (name) => {
  const i = names.indexOf(name);
  return {color: `var(--line${i % 9})`, dash: name.includes(",") ? DASHES[1 + i % 3] : DASHES[Math.floor(i / 3) % 4], first: i === 0};
};

const hidden = new Set(names.filter((name) => runs.every((run) => run.name !== name || !run.single)));
const inGroup = () => runs.filter((run) => run.group === `${get("fleet").value}\n${get("phase").value}`);
const withDetail = (run) => run.ttft !== undefined;

function fill(select, values, keep) {
  const old = keep ?? select.value;
  select.replaceChildren(...values.map((value) => make("option", {value}, value)));
  if (values.includes(old)) select.value = old;
}

const cell = (row, [, key, , factor, digits]) => {
  if (row[key] === null || row[key] === undefined) return "–";
  const half = row.half_width?.[key];
  return (row[key] * factor).toFixed(digits) + (half ? ` ±${(half * factor).toFixed(digits)}` : "");
};

function drawText(group) {
  const {row} = group[0];
  const say = (run) => run && `${run.name}: hit ratio ${(run.row.hit_ratio * 100).toFixed(1)} %, TTFT p99 ` +
                               `${seconds(run.row.ttft_p99_s)}, ${run.row.requests_per_s.toFixed(1)} requests/s`;
  const find = (name) => group.find((run) => run.name === name);
  const said = [say(find("prefix")), say(find("round_robin"))].filter(Boolean);
  get("finding").textContent = `${row.fleet}, ${row.phase}. ${(said.length ? said : [say(group[0])]).join("; ")}.`;
}

function drawLegend(group) {
  const legend = get("legend");
  legend.querySelectorAll("label").forEach((old) => old.remove());
  for (const {name} of group.filter(withDetail)) {
    const box = make("input", {type: "checkbox"}), {color, dash} = lookOf(name);
    box.checked = !hidden.has(name);
    box.addEventListener("change", () => {
      box.checked ? hidden.delete(name) : hidden.add(name);
      drawLines(inGroup());
    });
    const swatch = make("svg", {viewBox: "0 0 26 10", "aria-hidden": "true"},
                        make("line", {x1: 0, x2: 26, y1: 5, y2: 5, stroke: color, "stroke-width": 3, "stroke-dasharray": dash}));
    legend.append(make("label", {}, box, swatch, name));
  }
}

/** The share of requests within x seconds, from the run's percentiles. */
function shareWithin(ttft, x) {
  const over = ttft.findIndex((value) => value > x);
  return over < 0 ? 100 : over === 0 ? 0 : PERCENTS[over - 1];
}

function drawLines(group) {
  const shown = group.filter((run) => withDetail(run) && !hidden.has(run.name));
  const lineOf = (run, points) => ({...lookOf(run.name), name: run.name, run, points});
  const percent = {low: 0, high: 100, format: (value) => `${value} %`};
  const all = shown.flatMap((run) => run.ttft).filter((value) => value > 0);
  const high = all.length ? Math.max(...all) * 1.1 : 1, low = all.length ? Math.min(...all) * 0.9 : 0.1;
  lineChart(get("ttft"), {
    x: {low, high, log: true, format: seconds, title: "time to first token", name: (x) => `within ${seconds(x)}`},
    y: percent, label: "Distribution of time to first token; arrow keys read values",
    series: shown.map((run) => lineOf(run, run.ttft.map((value, i) => [value || low, PERCENTS[i]]))),
    marks: [{x: TTFT_GOAL, what: "goal 1 s"}],
    read: ({run}, x) => `${shareWithin(run.ttft, x)} %`,
  });
  const end = Math.max(1, ...shown.map((run) => run.hit.length * run.hit_step_s));
  const at = (run, x) => run.hit[Math.floor(x / run.hit_step_s)];
  lineChart(get("hit"), {
    x: {low: 0, high: end, format: (x) => `${x} s`, title: "virtual time", name: (x) => `at ${Math.floor(x)} s`},
    y: percent, label: "Hit ratio over time; arrow keys read values",
    series: shown.map((run) => lineOf(run, run.hit.map((hit, i) => [(i + 0.5) * run.hit_step_s, hit === null ? null : hit * 100]))),
    marks: (shown[0]?.events ?? []).map(({t, what}) => ({x: t, what})),
    read: ({run}, x) => at(run, x) == null ? null : `${(at(run, x) * 100).toFixed(1)} %`,
  });
}

function drawMemory(run) {
  const rows = run.held[0]?.length ?? 0, each = Math.ceil(run.replicas / Math.max(rows, 1));
  const rowName = (row) => `${row * each}`;
  const x = {low: 0, high: Math.max(run.held.length * run.step_s, 1), format: (s) => `${s} s`, title: "virtual time; a row is " +
             (each > 1 ? `${each} replicas` : "a replica")};
  for (const what of ["held", "cached", "assigned"]) {
    const placed = what !== "assigned" || run.assigned.some((column) => column.some((share) => share > 0));
    get(what).classList.toggle("empty", !placed);
    heatMap(get(what), {
      cells: run[what].filter((column) => column.length > 0), x, rowName, label: `Share ${what} by replica and time; arrow keys read values`,
      read: (c, r) => ({
        title: `replica ${rowName(r)}, ${Math.round(c * run.step_s)} s`,
        lines: [["held", run.held], ["cached", run.cached], ["placed", run.assigned]].map(
            ([name, cells]) => ({name, value: `${cells[c]?.[r] ?? 0} %`})),
      }),
    });
  }
}

function drawTable() {
  const used = COLUMNS.filter(([, key]) => runs.some(({row}) => row[key] !== null && (row[key] !== 0 || key === "hit_ratio")));
  get("columns").textContent = used.filter((column) => column[5]).map(([title, , , , , what]) => `${title}: ${what}`).join("; ") + ".";
  const head = make("tr", {}, make("th", {class: "name", scope: "col"}, "policy"),
                    ...used.map(([title, , unit]) => make("th", {scope: "col"}, title, make("small", {}, unit || " "))));
  const body = make("tbody");
  unique(runs.map((run) => run.group)).forEach((group) => {
    body.append(make("tr", {class: "group"}, make("th", {class: "name", scope: "rowgroup", colspan: used.length + 1}, group.replace("\n", ", "))));
    runs.filter((run) => run.group === group).forEach((run) => {
      const name = make("button", {type: "button"}, run.name);
      name.addEventListener("click", () => show(run));
      run.line = make("tr", {}, make("th", {class: "name", scope: "row"}, name), ...used.map((column) => make("td", {}, cell(run.row, column))));
      body.append(run.line);
    });
  });
  get("rows").replaceChildren(make("thead", {}, head), body);
}

function draw() {
  const group = inGroup(), detailed = group.filter(withDetail);
  if (group.length === 0) return;
  drawText(group);
  drawLegend(group);
  drawLines(group);
  fill(get("run"), detailed.map((run) => run.name));
  const run = detailed.find(({name}) => name === get("run").value);
  if (run) drawMemory(run);
  runs.forEach((other) => other.line.classList.toggle("shown", other.group === group[0].group));
}

function fillPhases(keep) {
  fill(get("phase"), unique(runs.filter(({row}) => row.fleet === get("fleet").value).map(({row}) => row.phase)), keep);
}

function show(run) {
  get("fleet").value = run.row.fleet;
  fillPhases(run.row.phase);
  hidden.delete(run.name);
  fill(get("run"), inGroup().filter(withDetail).map(({name}) => name), run.name);
  draw();
  get("choice").scrollIntoView();
  get("fleet").focus({preventScroll: true});
}

const scenarios = unique(runs.map(({row}) => row.scenario)).join(", ");
document.title = get("title").textContent = `Simulated cluster, ${scenarios}`;
get("about").replaceChildren(
    `What each routing policy does with the same requests on the same simulated replicas: time to first token, hit ratio and KV memory of ${runs.length} runs in virtual time. Made by `,
    make("code", {}, meta.command ?? "hidane sim --html"));
get("made").textContent = `hidane ${meta.version ?? ""} ${meta.commit ?? ""}, seed ${meta.seed ?? ""}. Charts show the first seed where there are several; TTFT is without waiting in the admission line.`;
fill(get("fleet"), unique(runs.map(({row}) => row.fleet)));
fillPhases("sustained");
fill(get("run"), inGroup().filter(withDetail).map(({name}) => name), "prefix");
drawTable();
draw();
get("fleet").addEventListener("change", () => { fillPhases(); draw(); });
get("phase").addEventListener("change", draw);
get("run").addEventListener("change", draw);
let width = innerWidth;
addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; draw(); } });
