/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What another epsilon would have cost, from the same releases. Pure. `factor` is epsilon / other epsilon: noise grows
 * by it, and nothing else. It is an estimate: another run would have drawn other noise, and asked other items.
 */
import { median } from "./history.js";
import { known, settles } from "./words.js";

/** Both parts of an interval's half: what too few answers leave open, and what noise adds. */
export function parts(row, factor) {
  const noise = row[5] ?? 0;
  return { sampling: row[4] - noise, noise: noise * factor };
}

/**
 * How many times the tokens the same width needs. With f times the tokens the sampling part s shrinks to s/sqrt(f), and
 * the noise part, one noise in a sum of f times the tokens, to n factor/f. So x = 1/sqrt(f) solves
 * n factor x^2 + s x = s + n.
 */
export function tokensFactor(sampling, noise, factor) {
  if (noise <= 0) {
    return 1;
  }
  const square = noise * factor;
  const root = (-sampling + Math.sqrt(sampling * sampling + 4 * square * (sampling + noise))) / (2 * square);
  return 1 / (root * root);
}

/** Median and largest of the tokens' factors of all bounded intervals; null without one. */
export function tokensFactors(rows, factor) {
  const all = rows
    .filter((row) => row !== null && known(row[4]) && row[4] > 0)
    .map((row) => tokensFactor(row[4] - (row[5] ?? 0), row[5] ?? 0, factor));
  return all.length === 0 ? null : { median: median(all), most: all.reduce((a, b) => Math.max(a, b)) };
}

/**
 * True if the decision still follows with the other noise. Both intervals that were compared widen; the other one's
 * noise is taken to be as wide as this one's. `noise` is the noise part of the decision's radius.
 */
export function stillSure(decision, noise, factor) {
  const [, , , , , mean, radius, reference] = decision;
  if (!known(reference) || !known(mean) || !known(radius)) {
    return true;
  }
  const wider = noise * (factor - 1);
  return settles(decision) ? mean - radius - wider >= reference + wider : mean + radius + wider < reference - wider;
}

/** The decisions among the first `count` that would not be sure: a set of their places in the list. */
export function unsure(history, count, factor) {
  const places = new Set();
  for (let place = 0; place < count && factor > 1; place++) {
    const decision = history.decisions[place];
    if (!stillSure(decision, noiseOf(history, place), factor)) {
      places.add(place);
    }
  }
  return places;
}

/* The noise part of a decision's radius: the share that the arm's standing had after that step. */
function noiseOf(history, place) {
  const decision = history.decisions[place];
  const row = history.rowOf(decision[2], history.stepOfDecision(place));
  return row === null || !known(row[4]) || row[4] <= 0 ? 0 : (decision[6] * (row[5] ?? 0)) / row[4];
}
