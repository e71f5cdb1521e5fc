/* SPDX-License-Identifier: Apache-2.0 */
/* The head of the page: what this campaign is. */
import { byId, el, setText } from "./dom.js";
import { epsilon, purpose } from "./words.js";

export class Header {
  start(campaign) {
    document.title = `${campaign.name} – Crowdveil`;
    setText(byId("name"), campaign.name);
    setText(byId("purpose"), purpose(campaign));
    this.state = el("span", {});
    this.mark = el("dd", { class: "state" }, el("i", { "aria-hidden": "true" }), this.state);
    const privatized = campaign.privatizer !== "none";
    byId("facts").replaceChildren(
      fact("State", this.mark),
      fact("Policy", el("dd", { title: parameters(campaign) }, campaign.policy)),
      fact("Mechanism", el("dd", {}, campaign.mechanism)),
      ...(privatized ? [fact("Privatizer", el("dd", {}, campaign.privatizer))] : []),
      ...(campaign.epsilon > 0 ? [fact("Epsilon", el("dd", {}, epsilon(campaign.epsilon)))] : []),
    );
  }

  update({ campaign }) {
    setText(this.state, campaign.note ? `${campaign.state}: ${campaign.note}` : campaign.state);
    this.mark.dataset.state =
      campaign.state === "running" ? "running" : campaign.state === "complete" ? "done" : "ended";
  }
}

function fact(name, value) {
  return el("div", {}, el("dt", {}, name), value);
}

function parameters(campaign) {
  return Object.entries(campaign.parameters ?? {})
    .map(([key, value]) => `${key} ${value}`)
    .join(", ");
}
