/* SPDX-License-Identifier: Apache-2.0 */
/* Which items stand together, and in which order. Pure. */
import { held, known, plural, settles } from "./words.js";

/**
 * Groups of a view: { key, title, note, locked, arms }, without empty ones, from the best down: each class, and after
 * the last one the items that are being decided and those that are known to be below. `open` is what reachable()
 * returns.
 */
export function groupsOf(campaign, rows, open) {
  const arms = rows.map((_, arm) => arm);
  if (campaign.kind === "bandit" || campaign.kind === "recruitment") {
    const title = campaign.kind === "bandit" ? "Most pulled first" : "Most hired first";
    arms.sort((a, b) => tokens(rows, b) - tokens(rows, a) || a - b);
    return [{ key: "all", title, note: "", locked: false, arms }];
  }
  const groups = new Map();
  for (const arm of arms) {
    const key = keyOf(campaign, rows[arm], open[arm]);
    groups.has(key) ? groups.get(key).push(arm) : groups.set(key, [arm]);
  }
  return [...groups.keys()]
    .sort((a, b) => a - b)
    .map((key) => {
      const members = groups.get(key).sort((a, b) => mean(rows, b) - mean(rows, a) || a - b);
      return { key: String(key), ...titleOf(campaign, key), note: plural(members.length, "item"), arms: members };
    });
}

/* Class l is l; behind its settled items come parked ones, as l + 1/4, and those that it is still open for, as l + 1/2. */
function keyOf(campaign, row, reach) {
  const rankClass = row?.[1] ?? 0;
  if (campaign.kind === "graph") {
    return rankClass === 2 ? 2 : 1;
  }
  return rankClass === 0 ? reach + 0.5 : held(row) ? rankClass + 0.25 : rankClass;
}

function titleOf(campaign, key) {
  if (campaign.kind === "graph") {
    return { title: key === 2 ? "Dropped" : "Still in the running", locked: false };
  }
  const whole = Number.isInteger(key);
  if (key % 1 === 0.25) {
    return { title: `Class ${Math.floor(key)} or below: nothing more is asked`, locked: false };
  }
  const open = key < 2 ? "Still open" : `Still open, below class ${Math.floor(key) - 1}`;
  return { title: whole ? `Class ${key}` : open, locked: whole };
}

function tokens(rows, arm) {
  return rows[arm]?.[2] ?? 0;
}

function mean(rows, arm) {
  return known(rows[arm]?.[3]) ? rows[arm][3] : -1e9;
}

/** The class that each open arm can still reach, after the first `count` decisions: 1 unless it was moved down. */
export function reachable(history, count) {
  const best = new Array(history.arms).fill(1);
  for (let place = 0; place < count; place++) {
    const decision = history.decisions[place];
    if (!settles(decision)) {
      best[decision[2]] = Math.max(best[decision[2]], decision[3] + 1);
    }
  }
  return best;
}
