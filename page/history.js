/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole run, step by step, and the state at any of them. Pure. A step holds only the standings that changed, so
 * each arm has a list of its own, which is searched by halves.
 *
 * A standing is [arm, class, tokens, mean, radius, noise], of an arm without a class also the last class and why, of
 * one that contradicts also true; a decision [number, kind, arm, class, tokens, mean, radius, reference].
 */

import { decided } from "./words.js";

/* More steps than this are too many for one page: the server is asked again, which thins them. */
export const STEPS_MAX = 4000;
const SAMPLE_MAX = 500;

export class History {
  constructor(campaign) {
    this.arms = campaign.arms;
    this.steps = [];
    this.decisions = [];
    this.decided = []; /* decisions up to and with each step */
    this.widths = []; /* median sampling and noise part of the intervals after each step */
    this.settled = [];
    this.changes = Array.from({ length: campaign.arms }, () => ({ at: [], row: [] }));
    for (const step of campaign.steps) {
      this.add(step);
    }
  }

  get length() {
    return this.steps.length;
  }

  get last() {
    return this.steps.length - 1;
  }

  /** False for a step that is here already. */
  add(step) {
    if (this.length > 0 && step.n <= this.steps[this.last].n) {
      return false;
    }
    const index = this.steps.push(step) - 1;
    let settled = index === 0 ? 0 : this.settled[index - 1];
    for (const row of step.s) {
      const change = this.changes[row[0]];
      settled += decided(row) - decided(change.row.at(-1));
      change.at.push(index);
      change.row.push(row);
    }
    this.decisions.push(...step.d);
    this.decided.push(this.decisions.length);
    this.widths.push(this.medians());
    this.settled.push(settled);
    return true;
  }

  /** The standing of each arm after the step with this index; null for one that has none yet. */
  rows(index) {
    return this.changes.map((change, arm) => this.rowOf(arm, index));
  }

  rowOf(arm, index) {
    const change = this.changes[arm];
    const at = lastNotAfter(change.at, index);
    return at < 0 ? null : change.row[at];
  }

  decisionsUntil(index) {
    return index < 0 ? 0 : this.decided[index];
  }

  /** The step in which the decision at this place of the list fell. */
  stepOfDecision(place) {
    return lastNotAfter(this.decided, place) + 1;
  }

  /* The median parts of the newest intervals; of many arms some hundreds stand for all. */
  medians() {
    const every = Math.ceil(this.arms / SAMPLE_MAX);
    const bounded = [];
    for (let arm = 0; arm < this.arms; arm += every) {
      const row = this.changes[arm].row.at(-1);
      if (row !== undefined && Number.isFinite(row[4]) && (row[2] > 0 || row[4] < 0.5)) {
        bounded.push(row);
      }
    }
    return {
      sampling: median(bounded.map((row) => row[4] - (row[5] ?? 0))),
      noise: median(bounded.map((row) => row[5] ?? 0)),
    };
  }

  /** Tokens a second around a step: over the last two seconds, or ten steps if these took longer; null if unknown. */
  rate(index) {
    const now = this.steps[index];
    let first = index;
    while (first > 0 && (index - first < 10 || now.t - this.steps[first].t < 2000)) {
      first--;
    }
    return perSecond(this.steps[first], now);
  }

  /** Tokens a second over the whole run up to a step. */
  meanRate(index) {
    return perSecond(this.steps[0], this.steps[index]);
  }
}

function perSecond(from, to) {
  if (from === undefined || to === undefined || from.t === null || to.t === null || to.t <= from.t) {
    return null;
  }
  return ((to.tokens - from.tokens) * 1000) / (to.t - from.t);
}

/** Index of the last number that is at most `limit`; -1 if there is none. */
function lastNotAfter(sorted, limit) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= limit) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low - 1;
}

export function median(numbers) {
  if (numbers.length === 0) {
    return null;
  }
  const sorted = [...numbers].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}
