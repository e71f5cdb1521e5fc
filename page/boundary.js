/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What worker, broker and third-party hold of one item, and with two brokers the co-broker. The server says it, where it
 * can know: the third-party's own server knows only its own part, which is then taken from the history.
 */
import * as api from "./api.js";
import { byId, el, icon, setText, still } from "./dom.js";
import { Interval } from "./interval.js";
import { Passage } from "./passage.js";
import { classOf, comparison, count, epsilon, known, measured, nameOf, noiseAt, noun, score, verdict } from "./words.js";

const ASK_EVERY_MS = 1000;
const HEALTH = { ok: "ok", alone: "waits for the broker", away: "no answer" };
const AWAY = "Until it is back, nothing is assigned and nothing is released.";
const FORGOTTEN = "The campaign has ended: the co-broker has deleted its shares and open places.";
const OFFERED = 2000; /* items in the list to choose from; any other is chosen in the table */

export class Boundary {
  constructor(root) {
    this.root = root;
    this.seen = false;
    this.alone = false; /* true: this server never knows the others' part */
    this.passage = new Passage(byId("scene"));
    this.arm = byId("boundary-arm");
    this.arm.addEventListener("change", () => this.choose(Number(this.arm.value), false));
    new IntersectionObserver(([entry]) => {
      this.seen = entry.isIntersecting;
      this.passage.run(this.seen && !still());
      this.ask();
    }).observe(root);
    document.addEventListener("visibilitychange", () => this.ask());
    byId("party-worker").querySelector("h3").prepend(icon("person"));
    byId("party-broker").querySelector("h3").prepend(icon("lock"));
    byId("party-third").querySelector("h3").prepend(icon("chart"));
  }

  start(campaign) {
    this.campaign = campaign;
    const { broker, worker } = noiseAt(campaign);
    Object.assign(byId("scene").dataset, { broker: broker ? "noise" : "plain", worker: worker ? "noise" : "plain" });
    this.two = campaign.brokers === 2;
    this.passage.show(campaign.brokers);
    this.fourth();
    this.told = undefined;
    this.asked = 0;
    this.state = "";
    setText(byId("boundary-noun"), noun(campaign) === "item" ? "Item" : "Worker");
    this.arm.replaceChildren(
      ...Array.from({ length: Math.min(campaign.arms, OFFERED) }, (_, arm) =>
        el("option", { value: arm }, nameOf(campaign, arm)),
      ),
    );
    this.chosen = 0;
  }

  /* The co-broker's column, if there is one. */
  fourth() {
    byId("party-co")?.remove();
    if (this.two) {
      const title = el("h3", {}, icon("lock"), el("span", {}, "Co-broker"));
      byId("party-third").before(
        el("article", { class: "party", id: "party-co" }, title, el("div", { class: "holds" })),
      );
    }
  }

  update(view) {
    this.view = view;
    this.ask();
    this.draw();
  }

  choose(arm, scroll) {
    this.chosen = arm;
    this.told = undefined;
    this.asked = 0;
    if (arm >= OFFERED && !this.arm.querySelector(`[value="${arm}"]`)) {
      this.arm.append(el("option", { value: arm }, nameOf(this.campaign, arm)));
    }
    this.arm.value = String(arm);
    if (scroll) {
      this.root.scrollIntoView({ behavior: still() ? "auto" : "smooth", block: "start" });
      this.arm.focus({ preventScroll: true });
    }
    this.ask();
    this.draw();
  }

  /* Asks once a second at most, and only while a reader can see the answer. */
  ask() {
    if (!this.seen || document.hidden || this.campaign === undefined || this.timer !== undefined || this.alone) {
      return;
    }
    const key = `${this.chosen} ${this.view?.history.length} ${this.view?.campaign.state}`;
    if (this.state === key && this.campaign.state !== "running") {
      return;
    }
    const wait = Math.max(0, this.asked + ASK_EVERY_MS - performance.now());
    this.timer = setTimeout(async () => {
      this.state = key;
      this.asked = performance.now();
      await this.fetch();
      this.timer = undefined;
      this.ask();
    }, wait);
  }

  async fetch() {
    const { campaign, chosen } = this;
    try {
      const told = await api.boundary(campaign.id, chosen);
      if (campaign === this.campaign && chosen === this.chosen) {
        this.told = told;
        this.draw();
      }
    } catch {
      /* the connection is lost: the events say so, and come back */
    }
  }

  draw() {
    if (this.view === undefined) {
      return;
    }
    const told = this.alone ? null : this.told;
    fill("party-worker", this.workerHolds(told));
    fill("party-broker", this.brokerHolds(told));
    if (this.two) {
      fill("party-co", this.cobrokerHolds(told));
    }
    fill("party-third", this.thirdPartyHolds(told));
  }

  workerHolds(told) {
    if (told === undefined) {
      return [quiet("…")];
    }
    if (told === null) {
      return hidden("This server belongs to the third-party. A score never comes here: that is the point.");
    }
    const { worker } = told;
    if (worker === null) {
      return hidden(
        this.two
          ? "A score leaves its worker as two shares, one for each broker, and neither tells it. To watch one simulated" +
              " worker, start with "
          : "A score stays with its worker. To watch one simulated worker, start with ",
        el("code", {}, "--unsafe-show-worker"),
        ".",
      );
    }
    return [
      facts(
        ...(known(worker.arm)
          ? [[`the ${noun(this.campaign)} it was asked about`, nameOf(this.campaign, worker.arm)]]
          : []),
        ["its score", gauge(worker.score)],
        ...this.sends(worker),
        ["its answer", worker.state],
      ),
      quiet(`One simulated worker, number ${worker.worker}. Only this page shows it.`),
    ];
  }

  sends({ privatizer, token, shares }) {
    const value = known(token) ? gauge(token) : token;
    if (!this.two) {
      return [[privatizer === "none" ? "what it sends" : `what it sends (${privatizer})`, value]];
    }
    return [
      ...(privatizer === "none" ? [] : [[`its token (${privatizer})`, value]]),
      ["its share for the broker", digits(shares?.[0])],
      ["its share for the co-broker", digits(shares?.[1])],
    ];
  }

  brokerHolds(told) {
    if (told === undefined) {
      return [quiet("…")];
    }
    if (told === null) {
      return hidden(
        this.two
          ? "Its share of the sum and its noise are sealed at the broker. Only the noisy sum of both brokers comes here."
          : noiseAt(this.campaign).broker
            ? "The sum and its noise are sealed at the broker. Only their total, the noisy sum, comes here."
            : "The broker sums the tokens. No single one comes here, only their sum.",
      );
    }
    const { broker } = told;
    if (!known(broker.tokens)) {
      const deleted = this.two ? "shares" : "partial sums";
      return [quiet(`The campaign has ended: the broker has deleted its ${deleted} and open places.`)];
    }
    return [
      counted(broker, "noisy sums released"),
      quiet(
        this.two
          ? "One share of each score, and noise of its own. It never sees the other share."
          : `It counts${noiseAt(this.campaign).broker ? ", sums and adds noise" : " and sums"}. It decides nothing.`,
      ),
    ];
  }

  cobrokerHolds(told) {
    if (told === undefined) {
      return [quiet("…")];
    }
    if (told === null) {
      return hidden(
        "The other share of the sum and other noise are sealed at the co-broker. It has no way to this server.",
      );
    }
    const { cobroker, cobroker_health: state } = told;
    const health = ["health", HEALTH[state] ?? state];
    if (!known(cobroker.tokens)) {
      return [facts(health), quiet(state === "away" ? AWAY : FORGOTTEN)];
    }
    return [
      counted(cobroker, "halves given", health),
      quiet("The other share of each score, and noise of its own. It checks each proof."),
    ];
  }

  /* From the server's answer at the newest step; at any other, and without one, from the history. */
  thirdPartyHolds(told) {
    const { campaign, history, rows, decided, following } = this.view;
    const row = rows[this.chosen];
    if (!measured(campaign, row)) {
      return [quiet("Nothing yet: no noisy sum has arrived.")];
    }
    const there = following ? told?.thirdparty : undefined;
    const interval = new Interval();
    interval.draw(row, true, 1, null);
    const last = history.decisions.slice(0, decided).findLast((decision) => decision[2] === this.chosen);
    const noise = (there?.noise ?? []).map(
      ([scale, times]) => `${times > 1 ? `${times} × ` : ""}Laplace ${epsilon(scale)}/ε`,
    );
    return [
      facts(
        ["noisy mean", score(there?.release?.[3] ?? row[3])],
        ...(campaign.kind === "graph" ? [] : [["of so many tokens", count(there?.release?.[2] ?? row[2])]]),
        ...(there?.release ? [["noisy sum number", count(there.release[0])]] : []),
        ...(noise.length > 0 ? [["noise in it", noise.join(", ")]] : []),
        ["interval", known(row[4]) ? `${score(row[3])} ± ${score(row[4])}` : "none"],
        ...(campaign.kind === "ranking" ? [["class", row[1] > 0 ? classOf(row) : "still open"]] : []),
      ),
      el("div", { class: "small-interval" }, interval.node),
      last === undefined
        ? quiet("No decision about it yet.")
        : el(
            "p",
            { class: "quiet" },
            `${nameOf(campaign, this.chosen)} ${verdict(campaign, last, row)}: ${comparison(last)}`,
          ),
    ];
  }
}

function fill(id, nodes) {
  const holds = byId(id).querySelector(".holds");
  const text = nodes.map((node) => node.outerHTML).join("");
  if (holds.dataset.text !== text) {
    holds.dataset.text = text;
    holds.replaceChildren(...nodes);
  }
}

function facts(...entries) {
  return el("dl", {}, ...entries.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

/* The kinds and counts that a broker tells, and what it calls its releases. */
function counted(broker, releases, ...more) {
  const holds = (broker.holds ?? []).map(([what, value]) => [what, value === "sealed" ? sealed() : countOf(value)]);
  const summed = holds.some(([what]) => /^(tokens|shares) /.test(what));
  return facts(
    ...holds,
    ...(summed ? [] : [["tokens summed", count(broker.tokens)]]),
    ["places open", count(broker.places_open)],
    [releases, count(broker.releases)],
    ["epsilon spent", epsilon(broker.spent)],
    ...more,
  );
}

function hidden(...text) {
  return [el("p", { class: "hidden-from-here" }, icon("eye"), el("span", {}, ...text))];
}

function quiet(text) {
  return el("p", { class: "quiet" }, text);
}

function sealed() {
  return el("span", { class: "sealed" }, icon("lock"), "sealed");
}

function countOf(value) {
  return typeof value === "number" ? count(value) : value;
}

/* The beginning of a share, in groups of four digits. */
function digits(share) {
  return share === undefined ? "–" : el("code", {}, `${share.match(/.{1,4}/g).join(" ")} …`);
}

/* A score as a small bar beside its number. */
function gauge(value) {
  const fillBar = el("i", {});
  fillBar.style.width = `${100 * Math.max(0, Math.min(1, value))}%`;
  return el(
    "span",
    { class: "gauge" },
    el("span", { class: "gauge-track", "aria-hidden": "true" }, fillBar),
    score(value),
  );
}
