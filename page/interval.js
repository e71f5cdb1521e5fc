/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One interval on the scale of scores: what too few answers leave open as a solid bar, what noise adds as a hatched one
 * around it, the mean as a point, the truth as a triangle below. Lengths are percent of the track, so no resize needs
 * script.
 */
import { setAttr, svg } from "./dom.js";
import { parts } from "./estimate.js";
import { known } from "./words.js";

/* The part of the scale that is shown: noise can move a mean beyond 0 and 1. */
export const LOW = -0.06;
export const HIGH = 1.06;

export function percent(score) {
  return (100 * (Math.max(LOW, Math.min(HIGH, score)) - LOW)) / (HIGH - LOW);
}

export class Interval {
  constructor() {
    this.noise = svg("rect", { class: "noise", y: 4, height: 14, rx: 2 });
    this.sampling = svg("rect", { class: "sampling", y: 7, height: 8, rx: 1 });
    this.before = svg("rect", { class: "before", y: 2, height: 18, rx: 2 });
    this.mean = svg("circle", { class: "mean", cy: 11, r: 4 });
    this.truth = svg(
      "svg",
      { class: "truth", width: 10, height: 26, y: 0, overflow: "visible" },
      svg("path", { d: "M0 18.5 4 25h-8Z" }),
    );
    this.node = svg(
      "svg",
      { class: "interval", height: 26, "aria-hidden": "true" },
      this.before,
      this.noise,
      this.sampling,
      this.mean,
      this.truth,
    );
  }

  /** A standing, null before the first step; whether it rests on any score; the true mean, null where unknown. */
  draw(row, seen, factor, truth) {
    const bounded = row !== null && known(row[3]) && known(row[4]);
    for (const node of [this.noise, this.sampling]) {
      setAttr(node, "visibility", bounded ? "visible" : "hidden");
    }
    if (bounded) {
      const { sampling, noise } = parts(row, factor);
      span(this.noise, row[3], sampling + noise);
      span(this.sampling, row[3], sampling);
      span(this.before, row[3], row[4]);
    }
    setAttr(this.before, "visibility", bounded && factor !== 1 ? "visible" : "hidden");
    setAttr(this.mean, "visibility", seen ? "visible" : "hidden");
    if (seen) {
      setAttr(this.mean, "cx", `${percent(row[3]).toFixed(2)}%`);
    }
    setAttr(this.truth, "visibility", known(truth) ? "visible" : "hidden");
    if (known(truth)) {
      setAttr(this.truth, "x", `${percent(truth).toFixed(2)}%`);
    }
  }
}

function span(node, mean, half) {
  const low = percent(mean - half);
  setAttr(node, "x", `${low.toFixed(2)}%`);
  setAttr(node, "width", `${(percent(mean + half) - low).toFixed(2)}%`);
}
