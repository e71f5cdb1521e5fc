/* SPDX-License-Identifier: Apache-2.0 */
/* Time series over the rounds, each with a table of the same numbers. */
import { el, setText } from "./dom.js";
import { paidOf, regretOf, rewardOf } from "./tiles.js";
import { count, hasNoise, known, money, score, short } from "./words.js";
import uPlot from "./vendor/uPlot.esm.js";

const HEIGHT = 200;
const TABLE_ROWS = 50;
const REDRAW_MS = 250;

export class Charts {
  constructor(root) {
    this.root = root;
    this.plots = [];
    new ResizeObserver(() => this.resize()).observe(root);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.rebuild());
  }

  start(campaign, history) {
    this.campaign = campaign;
    this.history = history;
    this.length = -1;
    this.rebuild();
  }

  rebuild() {
    if (this.campaign === undefined) {
      return;
    }
    this.plots = kinds(this.campaign).map((kind) => new Plot(kind, () => this.index));
    this.root.replaceChildren(...this.plots.map(({ node }) => node));
    this.length = -1;
    this.fill();
  }

  update({ history, index }) {
    const moved = this.index !== index;
    this.index = index;
    if (this.length !== history.length) {
      /* a burst of steps redraws a few times a second only */
      this.timer ??= setTimeout(() => this.fill(), REDRAW_MS);
    } else if (moved) {
      this.plots.forEach((plot) => plot.point());
    }
  }

  fill() {
    this.timer = undefined;
    this.length = this.history.length;
    const series = seriesOf(this.campaign, this.history);
    this.plots.forEach((plot) => plot.fill(series, this.root));
  }

  resize() {
    this.plots.forEach((plot) => plot.resize());
  }
}

/* What each kind of campaign shows: a title, a way to write a value, and the lines: [key, label, color, dash]. */
function kinds(campaign) {
  const noise = hasNoise(campaign) ? [["noise", "noise", "--noise-ink", [5, 4]]] : [];
  const graph = campaign.kind === "graph"; /* a play of an item shows its neighbours' scores, too */
  const all = [
    {
      title: graph ? "Plays and the scores they show" : "Tokens",
      write: short,
      lines: [
        ["tokens", graph ? "scores" : "released", "--data", null],
        ["asked", graph ? "plays" : "asked", "--soft", [5, 4]],
      ],
    },
  ];
  const widths = {
    title: "Width of the intervals (median item)",
    write: score,
    unit: "±",
    lines: [["sampling", "too few answers", "--data", null], ...noise],
  };
  switch (campaign.kind) {
    case "recruitment":
      return [
        { title: "Money paid", write: money, lines: [["paid", "paid", "--noise-ink", null]] },
        { title: "Reward", write: money, lines: [["reward", "reward", "--data", null]] },
        widths,
      ];
    case "bandit":
    case "graph":
      return [
        ...(campaign.truth && campaign.kind === "bandit"
          ? [{ title: "Regret", write: money, lines: [["regret", "regret", "--noise-ink", null]] }]
          : []),
        ...all,
        widths,
      ];
    default:
      return [
        { title: "Settled items", write: count, lines: [["settled", "settled", "--done", null, "steps"]] },
        widths,
        ...all,
      ];
  }
}

/* Columns by name, over the rounds; money, reward and regret follow from the standings. */
function seriesOf(campaign, history) {
  const { steps, widths, settled } = history;
  const series = {
    round: steps.map((step) => step.n),
    tokens: steps.map((step) => step.tokens),
    asked: steps.map((step) => step.asked),
    settled,
    sampling: widths.map((width) => width.sampling),
    noise: widths.map((width) => width.noise),
  };
  if (campaign.kind === "recruitment" || campaign.kind === "bandit") {
    const rows = new Array(history.arms).fill(null);
    const each = steps.map((step) => {
      step.s.forEach((row) => (rows[row[0]] = row));
      return { paid: paidOf(campaign, rows), reward: rewardOf(campaign, rows), regret: regretOf(campaign, rows) };
    });
    for (const key of ["paid", "reward", "regret"]) {
      series[key] = each.map((entry) => entry[key]);
    }
  }
  return series;
}

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function key(name, dash) {
  const mark = el("i", { class: `key line${dash ? " dashed" : ""}` });
  mark.style.color = `var(${name})`;
  return mark;
}

class Plot {
  constructor(kind, index) {
    this.kind = kind;
    this.index = index;
    this.box = el("div", { class: "plot" });
    this.needle = el("i", { class: "needle" });
    this.table = el("tbody", {});
    const details = el(
      "details",
      {},
      el("summary", {}, "As a table"),
      el(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": kind.title },
        el(
          "table",
          {},
          el(
            "thead",
            {},
            el(
              "tr",
              {},
              el("th", { scope: "col" }, "Round"),
              ...kind.lines.map(([, label]) => el("th", { scope: "col" }, label)),
            ),
          ),
          this.table,
        ),
      ),
    );
    details.addEventListener("toggle", () => this.tabulate());
    this.details = details;
    const keys =
      kind.lines.length < 2
        ? null
        : el(
            "ul",
            { class: "legend", "aria-hidden": "true" },
            ...kind.lines.map(([, label, name, dash]) => el("li", {}, key(name, dash), label)),
          );
    this.now = el("output", { class: "now" });
    this.node = el("figure", {}, el("figcaption", {}, el("span", {}, kind.title), this.now), this.box, keys, details);
  }

  fill(series) {
    this.series = series;
    const data = [series.round, ...this.kind.lines.map(([key]) => series[key])];
    if (this.chart) {
      this.chart.setData(data);
    } else {
      this.chart = new uPlot(
        options(this.kind, Math.max(200, this.box.clientWidth || 320), () => this.point()),
        data,
        this.box,
      );
      this.chart.root.setAttribute("aria-hidden", "true");
      this.chart.over.append(this.needle);
    }
    this.point();
    this.tabulate();
  }

  /** Shows the round that the rest of the page shows: a line over the curves, and their values there. */
  point() {
    const round = this.series?.round[this.index()];
    if (this.chart !== undefined && round !== undefined) {
      this.needle.style.transform = `translateX(${this.chart.valToPos(round, "x")}px)`;
    }
    this.say();
  }

  say() {
    const at = this.index();
    setText(
      this.now,
      this.kind.lines
        .map(([key]) => this.series?.[key][at])
        .filter(known)
        .map((value) => `${this.kind.unit ?? ""}${this.kind.write(value)}`)
        .join(" / "),
    );
  }

  resize() {
    if (this.chart && this.box.clientWidth > 0) {
      this.chart.setSize({ width: this.box.clientWidth, height: HEIGHT });
    }
  }

  /* Written only while it is open: at most some rows, evenly taken. */
  tabulate() {
    if (!this.details.open || !this.series) {
      return;
    }
    const { round } = this.series;
    const every = Math.max(1, Math.ceil(round.length / TABLE_ROWS));
    const rows = round.map((_, at) => at).filter((at) => at % every === 0 || at === round.length - 1);
    this.table.replaceChildren(
      ...rows.map((at) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, count(round[at])),
          ...this.kind.lines.map(([key]) =>
            el("td", {}, known(this.series[key][at]) ? this.kind.write(this.series[key][at]) : "–"),
          ),
        ),
      ),
    );
  }
}

/* `drawn` is called after each drawing: positions are right only then. */
function options(kind, width, drawn) {
  const axis = {
    stroke: color("--soft"),
    grid: { stroke: color("--line"), width: 1 },
    ticks: { show: false },
    font: `12px ${getComputedStyle(document.body).fontFamily}`,
  };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    padding: [8, 12, 0, 0],
    hooks: { draw: [drawn] },
    scales: { x: { time: false }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.05 : 1] } },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 28,
        space: 60,
        values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? short(tick) : "")),
      },
      { ...axis, size: 46, space: 36, values: (_, ticks) => ticks.map((tick) => label(kind, tick)) },
    ],
    series: [
      {},
      ...kind.lines.map(([, label, name, dash, steps], place) => ({
        label,
        stroke: color(name),
        width: 2,
        dash: dash ?? undefined,
        points: { show: false },
        paths: steps ? uPlot.paths.stepped({ align: 1 }) : undefined,
        fill: place === 0 ? `${color(name)}1f` : undefined,
      })),
    ],
  };
}

function label(kind, tick) {
  if (kind.write === count && !Number.isInteger(tick)) {
    return "";
  }
  return tick >= 1000 ? short(tick) : String(tick);
}
