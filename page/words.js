/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and sentences as a person reads them. Pure. */

const whole = new Intl.NumberFormat("en");
const brief = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const amount = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });

/** 12,345; a dash for what is not known. */
export function count(number) {
  return known(number) ? whole.format(Math.round(number)) : "–";
}

/** 1.2M */
export function short(number) {
  return known(number) ? brief.format(number) : "–";
}

/** A score or its radius with three decimals and a true minus sign. */
export function score(number, digits = 3) {
  return known(number)
    ? number
        .toFixed(digits)
        .replace(/^-(0\.0+)$/, "$1")
        .replace("-", "−")
    : "–";
}

/** Money, epsilon: at most two decimals. */
export function money(number) {
  return known(number) ? amount.format(number).replace("-", "−") : "–";
}

/** Epsilon with as many decimals as it has, three significant at most. */
export function epsilon(number) {
  return known(number) ? String(Number(number.toPrecision(3))) : "–";
}

/** Two significant digits, enough for a dial. */
export function rounded(number) {
  return Number(number.toPrecision(2));
}

export function seconds(milliseconds) {
  if (!known(milliseconds)) {
    return "";
  }
  const all = milliseconds / 1000;
  if (all < 60) {
    return `${all.toFixed(1)} s`;
  }
  const minutes = Math.floor(all / 60);
  return minutes < 60
    ? `${minutes} min ${Math.floor(all % 60)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** "1 item", "20 items" */
export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

export function known(number) {
  return typeof number === "number" && Number.isFinite(number);
}

/** Whether a standing rests on scores: an item of a graph can have been seen at its neighbours only. */
export function measured(campaign, row) {
  return row !== null && known(row[3]) && (row[2] > 0 || (campaign.kind === "graph" && row[4] < 0.5));
}

/** Where noise enters: at the broker, at each worker, at both or nowhere. */
export function noiseAt(campaign) {
  return { broker: campaign.epsilon > 0, worker: campaign.privatizer !== "none" };
}

export function hasNoise(campaign) {
  const { broker, worker } = noiseAt(campaign);
  return broker || worker;
}

/** What the arms of a campaign are called, one of them and many. */
export function noun(campaign) {
  return campaign.kind === "recruitment" ? "worker" : "item";
}

const FROM_RIGHT = /[\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** A name within other text: isolated if it runs from right to left, so that the numbers beside it stay in their places. */
export function isolated(name) {
  return FROM_RIGHT.test(name) ? `\u2068${name}\u2069` : name;
}

export function nameOf(campaign, arm) {
  return campaign.names?.[arm] === undefined ? `${noun(campaign)} ${arm + 1}` : isolated(campaign.names[arm]);
}

/** What the campaign does, in one sentence without terms of the trade. */
export function purpose(campaign) {
  const many = plural(campaign.arms, noun(campaign));
  switch (campaign.kind) {
    case "recruitment":
      return `${many} can be hired; a budget of ${money(campaign.budget)} is spent where it earns the most.`;
    case "bandit":
      return `${many} to choose from: the best one has to be found while every choice already counts.`;
    case "graph":
      return `${many}, and an answer about one also tells about its neighbours: which one is the best?`;
    default:
      return `${many} to be sorted into classes, from the best down, by what people answer.`;
  }
}

/** Whether a standing has a class of its own: it is not open and not held. */
export function decided(row) {
  return row?.[1] > 0 && !held(row);
}

/** Why a standing has no class of its own; null: it has one, or is open. */
export function held(row) {
  return row?.[7] ?? null;
}

/** "3", "3 or 4" */
export function classOf(row) {
  return held(row) && row[6] > row[1] ? `${row[1]} ${row[6] === row[1] + 1 ? "or" : "to"} ${row[6]}` : String(row[1]);
}

const WHY = { boundary: "on a boundary", "used up": "no more answers", undecided: "undecided" };

/** "class 3 or 4, on a boundary" */
export function parking(row) {
  return `class ${classOf(row)}, ${WHY[held(row)] ?? held(row)}`;
}

/** Whether no plan asks about it any more although it has no class. */
export function parked(row) {
  return held(row) === "boundary" || held(row) === "used up";
}

/** Whether the limits of its mean contradict each other. */
export function contradicts(row) {
  return row?.[8] === true;
}

export function settles(decision) {
  return decision[1] === "settle";
}

/** "locks into class 1"; `row` is the item's standing after it: with items that were given up it may still be open. */
export function verdict(campaign, decision, row) {
  if (campaign.kind === "graph") {
    return settles(decision) ? "is the best" : "is dropped";
  }
  const rest = held(row) ? " of the items that are left" : "";
  return settles(decision) ? `locks into class ${decision[3]}${rest}` : `is below class ${decision[3]}`;
}

/* So many decimals that two different numbers look different, at least three; three if six are not enough. */
function digitsApart(a, b) {
  let digits = 3;
  while (digits < 6 && a.toFixed(digits) === b.toFixed(digits)) {
    digits++;
  }
  return digits < 6 ? digits : 3;
}

/** The comparison behind a decision: "0.910 − 0.040 = 0.870 ≥ 0.830"; a lone arm needs none. */
export function comparison(decision) {
  const [, , , , , mean, radius, reference] = decision;
  if (!known(mean) || !known(radius)) {
    return "";
  }
  const end = settles(decision) ? mean - radius : mean + radius;
  const alone = !known(reference) || Math.abs(reference) > 1e6;
  const digits = alone ? 3 : digitsApart(end, reference);
  const sign = settles(decision) ? "−" : "+";
  const sum = `${score(mean, digits)} ${sign} ${score(radius, digits)} = ${score(end, digits)}`;
  return alone ? `${sum}, no other is left` : `${sum} ${settles(decision) ? "≥" : "<"} ${score(reference, digits)}`;
}
