/* SPDX-License-Identifier: Apache-2.0 */
/* The few numbers that say how far the campaign is. */
import { el, setText, show, svg, setAttr } from "./dom.js";
import { count, decided, epsilon, hasNoise, known, money, nameOf, parked, plural, seconds } from "./words.js";

export class Tiles {
  constructor(root) {
    this.root = root;
  }

  start(campaign) {
    this.tiles = tilesOf(campaign).map((fill) => ({ fill, ...tile() }));
    this.root.replaceChildren(...this.tiles.map(({ node }) => node));
  }

  update(view) {
    for (const { fill, name, value, about, bar, spent, asked } of this.tiles) {
      const told = fill(view);
      setText(name, told.name);
      setText(value, told.value);
      setText(about, told.about ?? "");
      show(bar, told.of > 0);
      if (told.of > 0) {
        const end = part(told.spent, told.of);
        setAttr(spent, "width", `${end}%`);
        setAttr(asked, "x", `${end}%`);
        setAttr(asked, "width", `${part(told.asked ?? 0, told.of)}%`);
      }
    }
  }
}

function part(some, all) {
  return Math.max(0, Math.min(100, (100 * some) / all)).toFixed(2);
}

function tile() {
  const name = el("p", { class: "tile-name" });
  const value = el("p", { class: "figure" });
  const about = el("p", { class: "quiet" });
  const spent = svg("rect", { class: "spent", height: "100%" });
  const asked = svg("rect", { class: "asked", height: "100%" });
  const bar = svg("svg", { class: "meter", "aria-hidden": "true" }, spent, asked);
  return { node: el("div", { class: "tile" }, name, value, bar, about), name, value, about, bar, spent, asked };
}

function tilesOf(campaign) {
  switch (campaign.kind) {
    case "recruitment":
      return [paid, hires, reward, rate, ...(campaign.epsilon > 0 ? [privacy] : []), rounds];
    case "bandit":
      return [tokens, regret, best, rate, ...(campaign.epsilon > 0 ? [privacy] : []), rounds];
    case "graph":
      return [settled, plays, regret, rate, ...(campaign.epsilon > 0 ? [privacy] : []), rounds, edges];
    default:
      return [settled, tokens, rate, ...(campaign.epsilon > 0 ? [privacy] : []), rounds];
  }
}

function settled({ campaign, rows }) {
  if (campaign.kind === "graph") {
    const left = rows.filter((row) => row === null || row[1] < 2).length;
    return {
      name: "Still in the running",
      value: `${left} of ${campaign.arms}`,
      about: "",
      spent: campaign.arms - left,
      of: campaign.arms,
    };
  }
  const done = rows.filter(decided);
  const still = rows.filter(parked).length;
  const classes = done.reduce((most, row) => Math.max(most, row[1]), 0);
  return {
    name: "Settled",
    value: `${done.length} of ${campaign.arms}`,
    about: (classes === 0 ? "no class yet" : plural(classes, "class", "classes")) + (still ? `, ${still} parked` : ""),
    spent: done.length,
    of: campaign.arms,
  };
}

/* A play is asked once, and shows an item and its neighbours; the limit counts plays. */
function plays({ campaign, step }) {
  const asked = step?.asked ?? 0;
  return {
    name: "Plays",
    value: count(asked),
    about: `${count(step?.tokens ?? 0)} scores, ${count(Math.max(0, campaign.token_limit - asked))} plays left`,
    spent: asked,
    of: campaign.token_limit,
  };
}

function tokens({ campaign, step }) {
  const spent = step?.tokens ?? 0;
  const asked = Math.max(0, (step?.asked ?? 0) - spent);
  const left = Math.max(0, campaign.token_limit - spent - asked);
  return {
    name: campaign.kind === "bandit" ? "Pulls" : "Tokens",
    value: count(spent),
    spent,
    asked,
    of: campaign.token_limit,
    about: `${asked > 0 ? `${count(asked)} asked, ` : ""}${count(left)} left`,
  };
}

function rate({ campaign, history, index, live, following, step }) {
  const running = campaign.state === "running";
  if (following && running && known(live?.rate)) {
    return { name: "Tokens a second", value: count(live.rate), about: `${count(live.workers)} connected` };
  }
  const whole = following && !running;
  const value = index < 0 ? null : whole ? history.meanRate(index) : history.rate(index);
  return {
    name: "Tokens a second",
    value: count(value),
    about: !known(value) ? "not known" : whole ? `on average, ${seconds(step.t)} in all` : "at this moment",
  };
}

function privacy({ campaign, live, step }) {
  if (known(live?.spent)) {
    return {
      name: "Epsilon spent",
      value: epsilon(live.spent),
      about: `of ${epsilon(campaign.epsilon)} on each answer`,
      spent: live.spent,
      of: Math.max(live.spent, campaign.epsilon),
    };
  }
  return {
    name: "Epsilon",
    value: epsilon(campaign.epsilon),
    about: "of each answer, as the campaign asks",
    spent: step === null ? 0 : 1,
    of: 0,
  };
}

function rounds({ campaign, step }) {
  return {
    name: "Rounds",
    value: count(step?.n ?? 0),
    about: plural(step?.releases ?? 0, hasNoise(campaign) ? "noisy sum" : "sum"),
  };
}

function edges({ campaign }) {
  return { name: "Neighbours", value: count(campaign.edges?.length ?? 0), about: "pairs of items" };
}

export function paidOf(campaign, rows) {
  return rows.reduce((sum, row, arm) => sum + (row === null ? 0 : row[2] * (campaign.costs?.[arm] ?? 0)), 0);
}

function paid({ campaign, rows }) {
  const spent = paidOf(campaign, rows);
  return {
    name: "Money paid",
    value: money(spent),
    about: `${money(campaign.budget - spent)} of ${money(campaign.budget)} left`,
    spent,
    of: campaign.budget,
  };
}

function hires({ step }) {
  const asked = Math.max(0, (step?.asked ?? 0) - (step?.tokens ?? 0));
  return { name: "Hires", value: count(step?.tokens ?? 0), about: asked > 0 ? `${count(asked)} more asked` : "" };
}

/** What the hires have earned: by the true qualities where these are known, else by the noisy means. */
export function rewardOf(campaign, rows) {
  return rows.reduce((sum, row, arm) => {
    const mean = campaign.truth?.means[arm] ?? row?.[3];
    return sum + (row === null || !known(mean) ? 0 : row[2] * mean);
  }, 0);
}

function reward({ campaign, rows, live }) {
  const value = known(live?.reward) ? live.reward : rewardOf(campaign, rows);
  return {
    name: "Reward",
    value: money(value),
    about: campaign.truth || known(live?.reward) ? "by the true qualities" : "by the noisy means",
  };
}

/** Reward lost against always choosing the best; null without the truth. */
export function regretOf(campaign, rows) {
  if (!campaign.truth || campaign.kind === "graph") {
    return null;
  }
  const best = campaign.truth.means.reduce((a, b) => Math.max(a, b));
  return rows.reduce((sum, row, arm) => sum + (row === null ? 0 : row[2] * (best - campaign.truth.means[arm])), 0);
}

function regret({ campaign, rows, live }) {
  const value = known(live?.regret) ? live.regret : regretOf(campaign, rows);
  return {
    name: "Regret",
    value: money(value),
    about: known(value) ? "lost against always the best" : "not known here",
  };
}

function best({ campaign, rows }) {
  const all = rows.reduce((sum, row) => sum + (row?.[2] ?? 0), 0);
  const most = rows.reduce((found, row) => (row !== null && row[2] > (found?.[2] ?? 0) ? row : found), null);
  if (most === null) {
    return { name: "Most pulled", value: "–", about: "" };
  }
  return {
    name: "Most pulled",
    value: nameOf(campaign, most[0]),
    about: `${((100 * most[2]) / all).toFixed(0)} % of all pulls`,
    spent: most[2],
    of: all,
  };
}
