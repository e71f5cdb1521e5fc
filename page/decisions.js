/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions as they fall, the newest first, with the numbers behind them; the same read aloud, but not too often. */
import { byId, el, icon, setText, show } from "./dom.js";
import { comparison, count, nameOf, settles, verdict } from "./words.js";

const SHOWN = 60;
const SPOKEN_EVERY_MS = 5000;

export class Decisions {
  constructor(seek) {
    this.seek = seek;
    this.feed = byId("feed");
  }

  start(campaign, history) {
    const decides = campaign.kind === "ranking" || campaign.kind === "graph";
    show(byId("decisions"), decides);
    this.drawn = -1;
    this.said = history.decisions.length;
    this.feed.replaceChildren();
    const alpha = campaign.parameters?.alpha;
    setText(
      byId("decisions-about"),
      campaign.kind === "graph"
        ? "An item is dropped when the high end of its interval falls below the low end of the best."
        : "An item locks in when its low end reaches what any other could still have" +
            `${alpha === undefined ? "" : `, less ${alpha}`}. It moves down when its high end falls below the bar.`,
    );
  }

  update({ campaign, history, decided, following }) {
    if (this.drawn !== decided) {
      this.draw(campaign, history, decided);
    }
    if (following && history.decisions.length > this.said) {
      this.speak(campaign, history);
    }
  }

  draw(campaign, history, decided) {
    const fresh = this.drawn >= 0 && decided > this.drawn ? decided - this.drawn : 0;
    this.drawn = decided;
    const list = [];
    for (let place = decided - 1; place >= 0 && list.length < SHOWN; place--) {
      list.push(this.entry(campaign, history, place, place >= decided - fresh));
    }
    if (decided > SHOWN) {
      list.push(el("li", { class: "quiet rest" }, `and ${count(decided - SHOWN)} earlier ones: move back in time`));
    }
    if (decided === 0) {
      list.push(el("li", { class: "quiet rest" }, "None yet."));
    }
    this.feed.replaceChildren(...list);
  }

  entry(campaign, history, place, fresh) {
    const decision = history.decisions[place];
    const index = history.stepOfDecision(place);
    const row = history.rowOf(decision[2], index);
    const round = el(
      "button",
      { type: "button", class: "plain", title: "Go to this round" },
      `round ${count(history.steps[index].n)}`,
    );
    round.addEventListener("click", () => this.seek(index));
    const kind = settles(decision) ? "settle" : "remove";
    return el(
      "li",
      { class: fresh ? `${kind} fresh` : kind },
      icon(settles(decision) ? "lock" : "down"),
      el("p", {}, el("b", {}, nameOf(campaign, decision[2])), ` ${verdict(campaign, decision, row)}`),
      round,
      el("p", { class: "sum" }, comparison(decision)),
    );
  }

  /* At most one sentence in some seconds, whatever falls meanwhile. */
  speak(campaign, history) {
    if (this.waiting) {
      return;
    }
    this.waiting = true;
    setTimeout(() => {
      this.waiting = false;
      const news = history.decisions.slice(this.said);
      this.said = history.decisions.length;
      const told = news.slice(-3).map((decision) => {
        const row = history.rowOf(decision[2], history.last);
        return `${nameOf(campaign, decision[2])} ${verdict(campaign, decision, row)}`;
      });
      const more = news.length > told.length ? `${count(news.length)} decisions. Among them: ` : "";
      const line = el("p", {}, `${more}${told.join("; ")}.`);
      byId("spoken").replaceChildren(line);
    }, SPOKEN_EVERY_MS);
  }
}
