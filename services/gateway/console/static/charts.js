// Draws each figure's own table. The table is the truth, and stays there for whoever cannot see the picture.
"use strict";
(() => {
  const HEIGHT = 190;
  const TALL = 290;
  const DAY_S = 86400;
  const drawn = new Set();

  const inks = () => {
    const style = getComputedStyle(document.documentElement);
    return (name) => style.getPropertyValue("--" + name).trim();
  };

  const value = (cell) => {
    const said = cell.dataset.v ?? cell.textContent;
    return said === "" || said === "None" ? null : Number(said);
  };

  // Columns of the table that are drawn, with x first. Rows of one x (a day of two judges) are summed for stacks, and the larger stands for lines.
  const read = (table) => {
    const heads = [...table.tHead.rows[0].cells];
    const at = heads.findIndex((head) => head.dataset.x);
    const time = heads[at].dataset.x === "day";
    const series = heads.map((head, i) => ({ i, label: head.textContent, draw: head.dataset.draw, ink: head.dataset.ink })).filter((s) => s.draw);
    const rows = new Map();
    for (const row of table.tBodies[0].rows) {
      const cell = row.cells[at];
      const x = time ? Date.parse(cell.dataset.v + "T00:00:00Z") / 1000 : value(cell);
      const have = rows.get(x);
      const said = series.map((s) => value(row.cells[s.i]));
      rows.set(x, have ? have.map((v, k) => (series[k].draw === "stack" ? (v ?? 0) + (said[k] ?? 0) : Math.max(v ?? 0, said[k] ?? 0))) : said);
    }
    if (time) fill(rows, series);
    else if (series.some((s) => s.draw === "step") && rows.size && !rows.has(0)) rows.set(0, rows.values().next().value);
    const xs = [...rows.keys()].sort((a, b) => a - b);
    return { time, series, xs, columns: series.map((_, k) => xs.map((x) => rows.get(x)[k])) };
  };
  // Two weeks are two weeks, also where most of their days had nothing.
  const fill = (rows, series) => {
    const last = Math.max(...rows.keys());
    const first = Math.min(Math.min(...rows.keys()), last - 13 * DAY_S);
    for (let x = first; x < last; x += DAY_S) if (!rows.has(x)) rows.set(x, series.map((s) => (s.draw === "stack" ? 0 : null)));
  };

  const stacked = (data) => {
    const sums = data.xs.map(() => 0);
    return data.columns.map((column, k) => (data.series[k].draw === "stack" ? column.map((v, i) => ((sums[i] += v ?? 0), v ? sums[i] : null)) : column));
  };

  const chart = (figure) => {
    const data = read(figure.querySelector("table"));
    const plot = figure.querySelector(".plot");
    const ink = inks();
    const columns = stacked(data);
    const both = data.series.some((s) => s.draw === "stack") && data.series.some((s) => s.draw === "line");
    const share = figure.dataset.y === "share";
    const font = "12px system-ui, sans-serif";
    const axis = { stroke: ink("soft"), grid: { stroke: ink("rule"), width: 1 }, ticks: { show: false }, font };
    // The tallest part of a stack is drawn first, or it would cover the others.
    const order = data.series.map((_, k) => k).sort((a, b) => (data.series[a].draw === "stack" && data.series[b].draw === "stack" ? b - a : 0));
    const options = {
      width: plot.clientWidth,
      height: figure.classList.contains("tall") ? TALL : HEIGHT,
      tzDate: (s) => uPlot.tzDate(new Date(s * 1000), "UTC"),
      legend: { live: false },
      cursor: { drag: { x: true, y: false } },
      scales: {
        x: { time: data.time, ...(data.time ? { range: (_, low, high) => [low - DAY_S * 0.6, high + DAY_S * 0.6] } : {}) },
        y: share ? { range: [0, 1] } : { range: (_, low, high) => (data.time ? [0, Math.max(1, high * 1.08)] : padded(low, high)) },
        ...(both ? { right: { range: (_, __, high) => [0, Math.max(1, high * 1.15)] } } : {}),
      },
      axes: [
        { ...axis, size: 28, ...named(figure.dataset.xName, font, 20), ...(data.time ? { values: "{MM}-{DD}", space: 52, incrs: [1, 2, 7].map((d) => d * DAY_S) } : {}) },
        { ...axis, size: 48, ...named(figure.dataset.yName, font, 18), ...(share ? { values: (_, all) => all.map((v) => Math.round(100 * v) + " %") } : {}) },
        ...(both ? [{ ...axis, scale: "right", side: 1, size: 52, ...named(figure.dataset.rightName, font, 18), grid: { show: false } }] : []),
      ],
      series: [{ label: data.time ? "day" : "unit" }, ...order.map((k) => line(data.series[k], ink, both, data.time))],
      hooks: { drawClear: [(u) => shade(u, figure, ink)] },
    };
    plot.replaceChildren();
    const made = new uPlot(options, [data.xs, ...order.map((k) => columns[k])], plot);
    drawn.add({ figure, made });
  };

  const named = (label, font, size) => (label ? { label, labelFont: font, labelSize: size, labelGap: 0 } : {});
  const padded = (low, high) => {
    const room = Math.max(0.05, (high - low) * 0.08);
    return [low - room, high + room];
  };

  const line = (series, ink, both, time) => {
    const colour = ink(series.ink);
    const bars = series.draw === "stack";
    return {
      label: series.label,
      stroke: bars ? ink("paper") : colour,
      fill: bars ? colour : undefined,
      width: bars ? 1 : series.draw === "level" ? 1 : 2,
      dash: series.draw === "level" ? [6, 4] : series.draw === "dash" ? [2, 3] : undefined,
      scale: both && series.draw === "line" ? "right" : "y",
      paths: bars ? uPlot.paths.bars({ size: [0.7, 40] }) : series.draw === "step" ? uPlot.paths.stepped({ align: -1 }) : undefined,
      points: { show: series.draw === "line" && time, size: 5, fill: colour },
      spanGaps: true,
    };
  };

  // Where the change likely lies, and where the stream alarmed.
  const shade = (u, figure, ink) => {
    const { from, to, alarm } = figure.dataset;
    const { ctx, bbox } = u;
    ctx.save();
    if (from && to) {
      const a = u.valToPos(Number(from), "x", true);
      ctx.fillStyle = ink("pruned-wash");
      ctx.fillRect(a, bbox.top, Math.max(2, u.valToPos(Number(to), "x", true) - a), bbox.height);
    }
    if (alarm) {
      ctx.fillStyle = ink("pruned");
      ctx.fillRect(u.valToPos(Number(alarm), "x", true) - 1, bbox.top, 2, bbox.height);
    }
    ctx.restore();
  };

  const draw = (root) => root.querySelectorAll("figure[data-chart]").forEach(chart);
  const again = () => {
    const old = [...drawn];
    drawn.clear();
    for (const one of old) {
      one.made.destroy();
      if (one.figure.isConnected) chart(one.figure);
    }
  };
  draw(document);
  document.addEventListener("winnow:put", (event) => {
    for (const one of drawn) if (!one.figure.isConnected) (one.made.destroy(), drawn.delete(one));
    draw(event.detail);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    again();
  });
})();
