/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The items, one row each, in their classes. It is a table for readers of text, and a chart for the eye: the column
 * with the intervals repeats the numbers beside it.
 */
import { byId, el, icon, setAttr, setText, show, still } from "./dom.js";
import { unsure } from "./estimate.js";
import { groupsOf, reachable } from "./groups.js";
import { Interval, percent } from "./interval.js";
import {
  contradicts,
  count,
  decided,
  epsilon,
  hasNoise,
  held,
  known,
  measured,
  nameOf,
  parking,
  plural,
  rounded,
  score,
  settles,
} from "./words.js";

/* With more items than this, a group shows its first ones and opens on demand. */
const ALL_ROWS = 200;
const FOLDED_ROWS = 25;
const UNFOLDED_ROWS = 200;
const SHARE_MOST = 75; /* percent of the column that the bar of the largest number takes */
const LOCKING = { duration: 1600, easing: "ease-out" };
const GLIDE = { duration: 520, easing: "cubic-bezier(.2, .7, .2, 1)" };

export class Items {
  constructor(root, choose) {
    this.root = root;
    this.choose = choose;
  }

  start(campaign, history) {
    this.campaign = campaign;
    this.limits = new Map(); /* rows that an opened group shows, by its key */
    this.rows = new Map(); /* by arm, of those that were ever shown */
    this.arms = history.arms;
    this.bodies = new Map();
    const counted = { bandit: "Pulls", recruitment: "Hires", graph: "Plays" }[campaign.kind] ?? "Tokens";
    this.table = el(
      "table",
      { class: "items", role: "table", "data-kind": campaign.kind },
      el("caption", { class: "unseen" }, "The items with their intervals and classes at the chosen round"),
      el(
        "thead",
        { role: "rowgroup" },
        el(
          "tr",
          { role: "row" },
          head(campaign.kind === "recruitment" ? "Worker" : "Item"),
          el("th", { scope: "col", role: "columnheader", class: "track" }, axis()),
          head("Score"),
          head(counted),
        ),
      ),
    );
    this.root.replaceChildren(this.table);
    setText(
      byId("classes-title"),
      { bandit: "Choices", recruitment: "Who is hired" }[campaign.kind] ?? "Classes as they form",
    );
    if (campaign.kind === "graph") {
      setText(byId("classes-title"), "Items");
    }
    legend(campaign);
  }

  update(view) {
    this.view = view;
    const { campaign, history, rows, decided, factor, jump } = view;
    const glide = !jump && !still() && rows.length <= ALL_ROWS;
    const focused = this.table.contains(document.activeElement) ? document.activeElement : null;
    const before = glide ? this.places() : null;
    this.table.classList.toggle("jump", !glide);
    const open = reachable(history, decided);
    const doubtful = new Set();
    for (const place of unsure(history, decided, factor)) {
      if (settles(history.decisions[place])) {
        doubtful.add(history.decisions[place][2]);
      }
    }
    const most = rows.reduce((sum, row) => Math.max(sum, row?.[2] ?? 0), 1);
    this.arrange(groupsOf(campaign, rows, open));
    for (const row of this.shown()) {
      row.draw(rows[row.arm], { factor, doubtful: doubtful.has(row.arm), most, glide });
    }
    focused?.focus({ preventScroll: true }); /* a row that moves in the document loses it */
    banner(campaign, factor);
    alarm(rows);
    if (glide) {
      this.glide(before);
    }
  }

  /* Puts each row into its group, touching only what is elsewhere. */
  arrange(groups) {
    for (const [key, body] of this.bodies) {
      if (!groups.some((group) => group.key === key)) {
        body.node.remove();
        this.bodies.delete(key);
      }
    }
    let at = this.table.tHead;
    for (const group of groups) {
      const body = this.bodies.get(group.key) ?? new Body(group.key, () => this.unfold(group.key));
      this.bodies.set(group.key, body);
      const limit = this.arms > ALL_ROWS ? (this.limits.get(group.key) ?? FOLDED_ROWS) : Infinity;
      body.draw(group, (arm) => this.row(arm), limit);
      if (at.nextSibling !== body.node) {
        at.after(body.node);
      }
      at = body.node;
    }
  }

  unfold(key) {
    this.limits.set(key, (this.limits.get(key) ?? FOLDED_ROWS) + UNFOLDED_ROWS);
    this.update({ ...this.view, jump: true });
  }

  row(arm) {
    if (!this.rows.has(arm)) {
      this.rows.set(arm, new Row(this.campaign, arm, this.choose));
    }
    return this.rows.get(arm);
  }

  shown() {
    return [...this.rows.values()].filter(({ node }) => node.isConnected);
  }

  places() {
    return new Map(this.shown().map((row) => [row, row.node.offsetTop]));
  }

  glide(before) {
    for (const [row, top] of before) {
      const by = row.node.isConnected ? top - row.node.offsetTop : 0;
      if (by !== 0) {
        row.node.animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], GLIDE);
      }
    }
  }
}

/* A group: its heading, its rows, and what unfolds the rest. */
class Body {
  constructor(key, unfold) {
    this.title = el("span", {});
    this.note = el("span", { class: "quiet" });
    this.more = el("button", { type: "button", class: "plain" });
    this.more.addEventListener("click", unfold);
    this.lock = icon("lock");
    this.head = el(
      "tr",
      { class: "group", role: "row" },
      el("th", { colspan: 4, scope: "rowgroup", role: "rowheader" }, this.lock, this.title, this.note),
    );
    this.foot = el("tr", { class: "more", role: "row" }, el("td", { colspan: 4, role: "cell" }, this.more));
    this.node = el("tbody", { role: "rowgroup", "data-class": key }, this.head, this.foot);
  }

  draw(group, row, limit) {
    setText(this.title, group.title);
    setText(this.note, group.note);
    show(this.lock, group.locked);
    const shown = group.arms.slice(0, limit);
    let at = this.head;
    for (const arm of shown) {
      const { node } = row(arm);
      if (at.nextSibling !== node) {
        at.after(node);
      }
      at = node;
    }
    while (at.nextSibling !== this.foot) {
      at.nextSibling.remove();
    }
    const folded = group.arms.length - shown.length;
    show(this.foot, folded > 0);
    setText(this.more, `Show ${count(Math.min(folded, UNFOLDED_ROWS))} more of ${count(group.arms.length)}`);
  }
}

class Row {
  constructor(campaign, arm, choose) {
    this.campaign = campaign;
    this.arm = arm;
    this.interval = new Interval();
    this.lock = icon("lock");
    this.doubt = icon("unsure", "would not be sure");
    this.note = el("small", {});
    const name = el(
      "button",
      { type: "button", class: "name", title: "Who knows what about it" },
      nameOf(campaign, arm),
    );
    name.addEventListener("click", () => choose(arm));
    this.mean = el("b", {});
    this.radius = el("span", { class: "radius" });
    this.tokens = el("span", {});
    this.share = el("i", { class: "share", "aria-hidden": "true" });
    this.node = el(
      "tr",
      { role: "row", "data-arm": arm },
      el(
        "th",
        { scope: "row", role: "rowheader" },
        el("span", { class: "mark" }, this.lock, this.doubt),
        name,
        this.note,
      ),
      el("td", { class: "track", role: "cell" }, this.interval.node),
      el("td", { class: "value", role: "cell" }, this.mean, this.radius),
      el("td", { class: "tokens", role: "cell" }, this.tokens, this.share),
    );
  }

  draw(row, { factor, doubtful, most, glide }) {
    const { campaign } = this;
    const ranks = campaign.kind === "ranking";
    const settled = ranks && decided(row);
    setAttr(this.lock, "visibility", settled && !doubtful ? "visible" : "hidden");
    setAttr(this.doubt, "visibility", doubtful ? "visible" : "hidden");
    setAttr(this.doubt, "aria-hidden", !doubtful);
    if (glide && settled && !this.node.classList.contains("settled")) {
      this.node.animate([{ background: "var(--done-soft)" }, { background: "transparent" }], LOCKING);
    }
    this.node.classList.toggle("settled", settled && !doubtful);
    const parked = ranks && Boolean(held(row));
    this.note.classList.toggle("parked", parked);
    setText(this.note, parked ? parking(row) : costOf(campaign, this.arm));
    const seen = measured(campaign, row);
    this.interval.draw(row, seen, factor, campaign.truth?.means[this.arm]);
    setText(this.mean, seen ? score(row[3]) : "–");
    const radius = seen && known(row[4]) ? row[4] - (row[5] ?? 0) * (1 - factor) : null;
    setText(this.radius, known(radius) ? ` ± ${score(radius)}` : "");
    setText(this.tokens, count(row?.[2] ?? 0));
    this.share.style.width = `${(SHARE_MOST * (row?.[2] ?? 0)) / most}%`;
  }
}

function costOf(campaign, arm) {
  return campaign.kind === "recruitment" && campaign.costs ? `costs ${count(campaign.costs[arm])}` : "";
}

function head(text) {
  return el("th", { scope: "col", role: "columnheader" }, text);
}

function axis() {
  const marks = [0, 0.25, 0.5, 0.75, 1].map((value) => {
    const mark = el("i", {}, String(value).replace("0.", "."));
    mark.style.left = `${percent(value)}%`;
    return mark;
  });
  return el("span", { class: "axis" }, el("span", { class: "unseen" }, "Interval"), ...marks);
}

function legend(campaign) {
  const entry = (name, text) => el("li", {}, el("i", { class: `key ${name}`, "aria-hidden": "true" }), text);
  byId("legend").replaceChildren(
    entry("mean", "estimate"),
    entry("sampling", "too few answers yet"),
    ...(hasNoise(campaign) ? [entry("noise", "noise that hides people")] : []),
    ...(campaign.truth ? [entry("truth", "truth (this is a simulation)")] : []),
  );
}

function alarm(rows) {
  const number = rows.filter(contradicts).length;
  show(byId("alarm"), number > 0);
  setText(byId("alarm"), `The answers contradict what the ranking assumes of them: ${plural(number, "item")}.`);
}

function banner(campaign, factor) {
  show(byId("banner"), factor !== 1);
  setText(
    byId("banner"),
    `Intervals as epsilon ${epsilon(rounded(campaign.epsilon / factor))} would have left them; frames: as they are.`,
  );
}
