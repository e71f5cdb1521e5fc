/* SPDX-License-Identifier: Apache-2.0 */
/* "What would another epsilon have cost?" The dial goes from a tenth to ten times the campaign's epsilon. */
import { byId, el, setAttr, setText, show } from "./dom.js";
import { tokensFactors, unsure } from "./estimate.js";
import { count, epsilon, nameOf, rounded, settles } from "./words.js";

const NAMES = 6; /* so many items by name */

export class Epsilon {
  constructor(turned) {
    this.range = byId("epsilon-range");
    this.range.addEventListener("input", () => turned(this.factor()));
    byId("epsilon-reset").addEventListener("click", () => {
      this.range.value = "0";
      turned(1);
    });
    this.decisions = el("p", {});
    this.tokens = el("p", {});
    byId("epsilon-answers").append(this.decisions, this.tokens);
  }

  factor() {
    return 10 ** (-Number(this.range.value) / 100);
  }

  start(campaign) {
    show(byId("epsilon"), campaign.epsilon > 0);
    this.range.value = "0";
  }

  update(view) {
    const { campaign, factor, history, decided, rows } = view;
    if (campaign.epsilon <= 0) {
      return;
    }
    const value = factor === 1 ? epsilon(campaign.epsilon) : epsilon(rounded(campaign.epsilon / factor));
    setText(byId("epsilon-value"), value);
    setAttr(this.range, "aria-valuetext", `epsilon ${value}`);
    show(byId("epsilon-answers"), factor !== 1);
    byId("epsilon-reset").disabled = factor === 1;
    if (factor === 1) {
      return;
    }
    this.sayDecisions(campaign, history, decided, unsure(history, decided, factor));
    this.sayTokens(tokensFactors(rows, factor));
  }

  sayDecisions(campaign, history, decided, places) {
    show(this.decisions, decided > 0);
    if (places.size === 0) {
      setText(
        this.decisions,
        decided === 1 ? "The decision would stand." : `All ${count(decided)} decisions would stand.`,
      );
      return;
    }
    const list = [...places].map((place) => history.decisions[place]);
    const open = [...new Set(list.filter(settles).map((decision) => nameOf(campaign, decision[2])))];
    const more = open.length > NAMES ? ` and ${count(open.length - NAMES)} more` : "";
    const who = open.length > 0 ? ` Not settled: ${open.slice(0, NAMES).join(", ")}${more}.` : "";
    this.decisions.replaceChildren(
      el("b", {}, `${count(places.size)} of ${count(decided)}`),
      ` decisions would not be sure yet.${who}`,
    );
  }

  sayTokens(factors) {
    show(this.tokens, factors !== null);
    if (factors !== null) {
      this.tokens.replaceChildren(
        "For intervals of the same width: ",
        el("b", {}, `${times(factors.median)} the tokens`),
        ` (median item; ${times(factors.most)} at most).`,
      );
    }
  }
}

/* At least one decimal, two significant digits below one. */
function times(factor) {
  return `${factor < 1 ? factor.toPrecision(2) : factor < 100 ? factor.toFixed(1) : count(factor)} ×`;
}
