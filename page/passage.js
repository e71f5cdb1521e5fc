/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trust boundary without a word: scores become tokens, fall into a sealed box, noise is added, and only the noisy
 * sum passes the gate; a token that tries is turned back. With two brokers there are two boxes: each token comes apart
 * into a half for each, noise is added in each, and the two noisy halves become one sum before the gate. The picture is
 * a function of the time in its round alone, in two arrangements: beside each other, or below each other on a narrow
 * page.
 */
import { setAttr, svg } from "./dom.js";

const ROUND_MS = 11000;
const STILL_AT = 0.665; /* the moment that stands for all, where motion is unwanted */
const NARROW = 640;
const WHEN = {
  fall: [0.02, 0.3],
  apart: 0.05,
  noise: [0.36, 0.48],
  mix: [0.48, 0.54],
  bounce: [0.535, 0.645],
  pass: [0.6, 0.78],
  meet: [0.565, 0.645],
  fade: [0.94, 1],
};

const WIDE = {
  box: [0, 0, 960, 230],
  people: [
    [70, 48],
    [120, 115],
    [70, 182],
  ],
  safes: [{ safe: [478, 138], slot: [478, 62], dice: [478, 8] }],
  size: 1,
  meet: [478, 138],
  leak: [538, 108],
  gate: [692, 138],
  wall: [692, 0, 692, 230],
  rebound: [678, 62],
  chart: [826, 126],
  upright: true,
};
const TALL = {
  box: [0, 0, 340, 470],
  people: [
    [62, 40],
    [170, 40],
    [278, 40],
  ],
  safes: [{ safe: [170, 206], slot: [170, 126], dice: [312, 150] }],
  size: 1,
  meet: [170, 206],
  leak: [230, 236],
  gate: [170, 322],
  wall: [0, 322, 340, 322],
  rebound: [272, 308],
  chart: [170, 400],
  upright: false,
};
/* With two brokers: one box above the other, or beside it. */
const WIDE_TWO = {
  ...WIDE,
  box: [0, 0, 960, 276],
  people: [
    [70, 60],
    [120, 138],
    [70, 216],
  ],
  safes: [
    { safe: [460, 86], slot: [460, 32], dice: [560, 20] },
    { safe: [460, 220], slot: [460, 166], dice: [560, 154] },
  ],
  size: 0.74,
  meet: [612, 138],
  leak: [504, 70],
  wall: [692, 0, 692, 276],
};
const TALL_TWO = {
  ...TALL,
  safes: [
    { safe: [86, 196], slot: [86, 126], dice: [160, 126] },
    { safe: [254, 196], slot: [254, 126], dice: [328, 126] },
  ],
  size: 0.84,
  meet: [170, 276],
  leak: [290, 226],
  rebound: [300, 308],
};
const SCORES = [0.85, 0.45, 0.7];

const SAID =
  "Workers' scores become tokens and fall into a sealed box at the broker. Noise is added. Only the noisy sum passes" +
  " the gate to the third-party; a token that tries is turned back.";
const SAID_TWO =
  "Each worker's score becomes two shares, which tell nothing alone. One falls into a sealed box at the broker, one" +
  " into a sealed box at the co-broker. Each adds noise of its own. Their two halves become the noisy sum, and only" +
  " that passes the gate to the third-party; a share that tries is turned back.";
/* A disc's left and right half. */
const HALVES = ["M0-11A11 11 0 0 0 0 11Z", "M0-11A11 11 0 0 1 0 11Z"];
/* The noisy sum's upper and lower half. */
const UPPER = "M-30 0a13 13 0 0 1 13-13h34a13 13 0 0 1 13 13Z";
const LOWER = "M-30 0a13 13 0 0 0 13 13h34a13 13 0 0 0 13-13Z";
/* Its left and right half. */
const LEFT = "M0-13h-17a13 13 0 0 0 0 26h17Z";
const RIGHT = "M0-13h17a13 13 0 0 1 0 26h-17Z";

/** 0 before, 1 after, and in between a gentle way from one to the other. */
function ease(at, [from, to]) {
  const x = Math.max(0, Math.min(1, (at - from) / (to - from)));
  return x * x * (3 - 2 * x);
}

function between([x0, y0], [x1, y1], share) {
  return [x0 + (x1 - x0) * share, y0 + (y1 - y0) * share];
}

function place(node, [x, y], scale = 1) {
  setAttr(node, "transform", `translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${scale.toFixed(3)})`);
}

function fade(node, opacity) {
  setAttr(node, "opacity", opacity.toFixed(2));
}

export class Passage {
  constructor(root) {
    this.root = root;
    this.two = false;
    this.running = false;
    this.began = 0;
    this.arrange();
    new ResizeObserver(() => this.arrange()).observe(root);
  }

  /** With one broker or with two. */
  show(brokers) {
    this.two = brokers === 2;
    this.arrange();
  }

  /** Moves, or stands still; costs nothing while it stands. */
  run(moves) {
    if (moves === this.running) {
      return;
    }
    this.running = moves;
    if (moves) {
      this.began = performance.now();
      requestAnimationFrame((now) => this.tick(now));
    } else {
      this.stand();
    }
  }

  tick(now) {
    if (this.running) {
      this.draw((Math.max(0, now - this.began) % ROUND_MS) / ROUND_MS);
      requestAnimationFrame((next) => this.tick(next));
    }
  }

  arrange() {
    const narrow = this.root.clientWidth > 0 && this.root.clientWidth < NARROW;
    const shape = this.two ? (narrow ? TALL_TWO : WIDE_TWO) : narrow ? TALL : WIDE;
    if (shape === this.shape) {
      return;
    }
    this.shape = shape;
    this.bars = SCORES.map((height) => gauge(height));
    this.boxes = shape.safes.map((at, which) => ({
      ...at,
      tokens: SCORES.map((height) => (this.two ? half(which) : token(height))),
      drop: noiseDrop(),
      box: new Safe(),
      parcel: this.two ? halfParcel(which, shape.upright) : null,
    }));
    this.stray = this.two ? half(0) : token(0.7);
    this.flash = svg("circle", { class: "flash", r: 17 });
    this.parcel = parcel();
    this.chart = chart();
    this.doors = doors(shape);
    const picture = svg(
      "svg",
      { viewBox: shape.box.join(" "), role: "img", "aria-label": this.two ? SAID_TWO : SAID },
      ways(shape),
      ...shape.people.map((at) => person(at)),
      ...this.bars,
      wall(shape),
      ...this.doors.map(({ node }) => node),
      this.flash,
      ...this.boxes.flatMap(({ tokens }) => tokens),
      ...this.boxes.map(({ drop }) => drop),
      ...this.boxes.map(({ box }) => box.node),
      this.stray,
      this.chart.node,
      ...this.boxes.map((each) => each.parcel),
      this.parcel,
    );
    this.bars.forEach((bar, which) => place(bar, besides(shape.people[which])));
    this.boxes.forEach(({ box, safe }) => place(box.node, safe, shape.size));
    place(this.chart.node, shape.chart);
    place(this.flash, shape.rebound);
    this.root.replaceChildren(picture);
    this.stand();
  }

  /* One moment that stands for all: a token under way, noise above the box, the noisy sum at the gate. */
  stand() {
    const { shape } = this;
    this.draw(STILL_AT);
    this.boxes.forEach(({ tokens, drop, dice, safe, slot, box }) => {
      tokens.forEach((node, which) => {
        place(node, between(besides(shape.people[which]), slot, 0.3 + 0.2 * which));
        fade(node, 1);
      });
      place(drop, between(dice, safe, shape.upright ? 0.12 : 0.1), shape.size);
      fade(drop, 1);
      box.draw(1, 1, 0);
    });
  }

  draw(at) {
    const { shape } = this;
    const gone = 1 - ease(at, WHEN.fade);
    this.bars.forEach((bar, which) => {
      const start = WHEN.fall[0] + which * WHEN.apart;
      const sent = ease(at, [start, start + 0.04]);
      setAttr(bar.firstChild.nextSibling, "opacity", (1 - 0.75 * sent * gone).toFixed(2));
    });
    this.boxes.forEach((each) => this.fill(each, at));
    this.turnBack(at);
    const passed = ease(at, WHEN.pass);
    const goal = shape.upright ? [shape.chart[0] - 60, shape.gate[1]] : [shape.chart[0], shape.chart[1] - 40];
    place(
      this.parcel,
      passed < 0.5 ? between(shape.meet, shape.gate, passed * 2) : between(shape.gate, goal, passed * 2 - 1),
    );
    const whole = this.two ? WHEN.meet[1] : WHEN.pass[0];
    fade(this.parcel, at < whole ? 0 : 1 - ease(at, [WHEN.pass[1] - 0.01, WHEN.pass[1] + 0.03]));
    const open =
      ease(at, [WHEN.pass[0] - 0.03, WHEN.pass[0] + 0.04]) * (1 - ease(at, [WHEN.pass[1] - 0.06, WHEN.pass[1]]));
    this.doors.forEach((door) => door.draw(open));
    this.chart.draw(ease(at, [WHEN.pass[1], WHEN.pass[1] + 0.05]), ease(at, [WHEN.pass[1], 0.9]), gone);
  }

  /* What goes into one box, and out of it. */
  fill({ tokens, drop, box, parcel: out, safe, slot, dice }, at) {
    const { shape } = this;
    const leaves = this.two ? WHEN.meet[0] : WHEN.pass[0];
    let inside = 0;
    tokens.forEach((node, which) => {
      const [from, to] = WHEN.fall;
      const start = from + which * WHEN.apart;
      const moved = ease(at, [start + 0.04, start + to - from - WHEN.apart]);
      const fallen = ease(at, [start + to - from - WHEN.apart, start + to - from]);
      const path = moved < 1 ? between(besides(shape.people[which]), slot, moved) : between(slot, safe, fallen);
      place(node, path, 0.4 + 0.6 * ease(at, [start, start + 0.04]));
      fade(node, at < start || fallen >= 1 ? 0 : 1 - 0.9 * fallen);
      inside += fallen / 3;
    });
    place(drop, between(dice, safe, ease(at, WHEN.noise)), shape.size);
    fade(
      drop,
      at < WHEN.noise[0] - 0.05
        ? 0
        : (1 - ease(at, [WHEN.noise[1] - 0.03, WHEN.noise[1]])) * ease(at, [WHEN.noise[0] - 0.05, WHEN.noise[0]]),
    );
    const left = 1 - ease(at, [leaves - 0.02, leaves + 0.03]);
    box.draw(inside * left, ease(at, [WHEN.noise[1] - 0.03, WHEN.noise[1]]) * left, ease(at, WHEN.mix));
    if (out !== null) {
      place(out, between(safe, shape.meet, ease(at, WHEN.meet)));
      fade(out, at < WHEN.meet[0] || at >= WHEN.meet[1] ? 0 : 1);
    }
  }

  /* A bare token that leaves the broker's box for the wall, and bounces. */
  turnBack(at) {
    const { shape } = this;
    const [from, to] = WHEN.bounce;
    const half = (from + to) / 2;
    const out = ease(at, [from, half]);
    const back = ease(at, [half, to]);
    const home = shape.upright
      ? [shape.rebound[0] - 90, shape.rebound[1] + 40]
      : [shape.rebound[0] - 30, shape.rebound[1] - 60];
    place(this.stray, back > 0 ? between(shape.rebound, home, back) : between(shape.leak, shape.rebound, out), 1);
    fade(this.stray, at < from || at > to ? 0 : Math.min(1, out * 4) * (1 - back));
    fade(this.flash, at < half ? 0 : 1 - ease(at, [half, to]));
  }
}

function besides([x, y]) {
  return [x + 34, y];
}

/* Where things go, as faint lines. */
function ways({ people, safes, meet, gate, upright }) {
  const path = (from, to) => svg("line", { x1: from[0], y1: from[1], x2: to[0], y2: to[1] });
  return svg(
    "g",
    { class: "ways" },
    ...safes.flatMap(({ safe, slot }) => [
      ...people.map((at) => path(besides(at), slot)),
      path(slot, safe),
      ...(safes.length > 1 ? [path(safe, meet)] : []),
    ]),
    path(meet, gate),
    path(gate, upright ? [gate[0] + 60, gate[1]] : [gate[0], gate[1] + 22]),
  );
}

function person([x, y]) {
  return svg(
    "g",
    { class: "who", transform: `translate(${x} ${y})` },
    svg("circle", { cy: -10, r: 9 }),
    svg("path", { d: "M-17 21c0-14 7-19 17-19s17 5 17 19Z" }),
  );
}

/* A score: how full the bar is. */
function gauge(height) {
  const full = 38 * height;
  return svg(
    "g",
    { class: "score" },
    svg("rect", { class: "empty", x: -5, y: -19, width: 10, height: 38, rx: 3 }),
    svg("rect", { x: -5, y: 19 - full, width: 10, height: full, rx: 3 }),
  );
}

function token(height) {
  const full = 12 * height;
  return svg(
    "g",
    { class: "token" },
    svg("circle", { r: 11 }),
    svg("rect", { class: "in", x: -2.5, y: 6 - full, width: 5, height: full, rx: 1.5 }),
  );
}

/* One of the two shares of a token: nobody can read the score off it. */
function half(which) {
  return svg("g", { class: "token" }, svg("path", { d: HALVES[which] }));
}

function noiseDrop() {
  const points = [];
  for (let corner = 0; corner < 20; corner++) {
    const radius = corner % 2 === 0 ? 15 : 9 + (corner % 3);
    const angle = (corner * Math.PI) / 10;
    points.push(`${(radius * Math.cos(angle)).toFixed(1)},${(radius * Math.sin(angle)).toFixed(1)}`);
  }
  return svg("g", { class: "noise-drop" }, svg("polygon", { points: points.join(" ") }));
}

/* The noisy sum: a solid part in a hatched one, as in the intervals. */
function parcel() {
  return svg(
    "g",
    { class: "parcel" },
    svg("rect", { class: "outer", x: -30, y: -13, width: 60, height: 26, rx: 13 }),
    svg("rect", { class: "inner", x: -17, y: -7, width: 34, height: 14, rx: 7 }),
    svg("circle", { r: 3.5 }),
  );
}

/* What a broker gives: its half of the noisy sum. The two make one where they meet. */
function halfParcel(which, upright) {
  const shells = upright ? [UPPER, LOWER] : [LEFT, RIGHT];
  return svg("g", { class: "parcel" }, svg("path", { class: "outer", d: shells[which] }));
}

class Safe {
  constructor() {
    this.sum = svg("rect", { class: "sum", x: -36, width: 72, rx: 3 });
    this.noise = svg("rect", { class: "noise", x: -36, width: 72, rx: 3 });
    this.mouth = svg("path", { class: "mouth", d: "M-18-54h36" });
    this.lock = svg(
      "g",
      { class: "padlock" },
      svg("path", { d: "M-7 0v-6a7 7 0 0 1 14 0v6" }),
      svg("rect", { x: -11, y: -1, width: 22, height: 17, rx: 3 }),
    );
    this.node = svg(
      "g",
      { class: "safe" },
      svg("rect", { class: "body", x: -52, y: -54, width: 104, height: 108, rx: 12 }),
      svg("rect", { class: "room", x: -40, y: -42, width: 80, height: 84, rx: 6 }),
      this.sum,
      this.noise,
      this.mouth,
      this.lock,
    );
  }

  draw(full, noisy, mixed) {
    const sum = 46 * full;
    const noise = 26 * noisy;
    fade(this.mouth, 1 - mixed * noisy); /* shut from the noise on, until it is empty again */
    setAttr(this.sum, "y", (38 - sum).toFixed(1));
    setAttr(this.sum, "height", sum.toFixed(1));
    setAttr(this.noise, "y", (38 - sum - noise).toFixed(1));
    setAttr(this.noise, "height", (noise + mixed * sum * noisy).toFixed(1));
  }
}

function wall({ wall: [x1, y1, x2, y2], gate: [gx, gy], upright }) {
  const gap = 30;
  const line = (...ends) => svg("line", { x1: ends[0], y1: ends[1], x2: ends[2], y2: ends[3] });
  return svg(
    "g",
    { class: "wall" },
    ...(upright
      ? [line(x1, y1, gx, gy - gap), line(gx, gy + gap, x2, y2)]
      : [line(x1, y1, gx - gap - 14, gy), line(gx + gap + 14, gy, x2, y2)]),
  );
}

/* Two leaves that slide apart along the wall. */
function doors({ gate: [x, y], upright }) {
  return [-1, 1].map((side) => {
    const length = upright ? 30 : 44;
    const node = upright
      ? svg("rect", { class: "door", x: x - 3, y: side < 0 ? y - length : y, width: 6, height: length, rx: 2 })
      : svg("rect", { class: "door", x: side < 0 ? x - length : x, y: y - 3, width: length, height: 6, rx: 2 });
    const draw = (open) => {
      const by = side * open * (length - 4);
      setAttr(node, "transform", upright ? `translate(0 ${by.toFixed(1)})` : `translate(${by.toFixed(1)} 0)`);
    };
    return { node, draw };
  });
}

/* What the third-party draws from it: intervals, one of which has just become narrower. */
function chart() {
  const lines = [
    [-34, 60, 0.9],
    [0, 0, 0],
    [34, -10, 0.7],
  ];
  const groups = lines.map(([y, x, size]) => {
    const noise = svg("rect", { class: "outer", y: y - 8, height: 16, rx: 2 });
    const sampling = svg("rect", { class: "inner", y: y - 4.5, height: 9, rx: 1 });
    const mean = svg("circle", { cy: y, cx: x, r: 4 });
    const set = (half, at) => {
      setAttr(noise, "x", (at - half).toFixed(1));
      setAttr(noise, "width", (2 * half).toFixed(1));
      setAttr(sampling, "x", (at - half * 0.6).toFixed(1));
      setAttr(sampling, "width", (1.2 * half).toFixed(1));
      setAttr(mean, "cx", at.toFixed(1));
    };
    set(26 * size || 48, x * 0.6);
    return { node: svg("g", { class: "line" }, noise, sampling, mean), set };
  });
  const frame = svg("path", { class: "axis-line", d: "M-66-54V54H72" });
  return {
    node: svg("g", { class: "result" }, frame, ...groups.map(({ node }) => node)),
    draw(seen, narrower, gone) {
      const done = narrower * gone;
      groups[1].set(50 - 30 * done, 6 + 10 * done);
    },
  };
}
