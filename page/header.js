/* SPDX-License-Identifier: Apache-2.0 */
/* The head of the page: what this campaign is. */
import { byId, el, setText, show } from "./dom.js";
import { epsilon, isolated, purpose } from "./words.js";

export class Header {
  start(campaign) {
    document.title = `${isolated(campaign.name)} – Crowdveil`;
    setText(byId("name"), isolated(campaign.name));
    setText(byId("purpose"), purpose(campaign));
    this.state = el("span", {});
    this.mark = el("dd", { class: "state" }, el("i", { "aria-hidden": "true" }), this.state);
    this.link = el("span", {});
    this.linkMark = el("dd", { class: "state", id: "broker" }, el("i", { "aria-hidden": "true" }), this.link);
    this.linkFact = fact("Broker", this.linkMark);
    const privatized = campaign.privatizer !== "none";
    byId("facts").replaceChildren(
      fact("State", this.mark),
      fact("Policy", el("dd", { title: parameters(campaign) }, campaign.policy)),
      fact("Mechanism", el("dd", {}, campaign.mechanism)),
      ...(privatized ? [fact("Privatizer", el("dd", {}, campaign.privatizer))] : []),
      ...(campaign.epsilon > 0 ? [fact("Epsilon", el("dd", {}, epsilon(campaign.epsilon)))] : []),
      this.linkFact,
    );
  }

  update({ campaign }) {
    setText(this.state, campaign.note ? `${campaign.state}: ${campaign.note}` : campaign.state);
    this.mark.dataset.state =
      campaign.state === "running" ? "running" : campaign.state === "complete" ? "done" : "ended";
    this.updateLink(campaign);
  }

  /** The broker's connection matters as long as the campaign runs; null: this server does not know it. */
  updateLink({ link, state }) {
    const known = Boolean(link) && state === "running";
    show(this.linkFact, known);
    if (known) {
      setText(this.link, linkText(link));
      this.linkMark.dataset.state = link.connected ? "running" : "ended";
    }
  }
}

/** Only one of several brokers over one database has a term, and it is the active one. */
function linkText({ connected, term, since }) {
  const who = connected ? (term > 0 ? `active in term ${term}` : "connected") : "not connected";
  return `${who} since ${new Date(since).toLocaleTimeString()}`;
}

function fact(name, value) {
  return el("div", {}, el("dt", {}, name), value);
}

function parameters(campaign) {
  return Object.entries(campaign.parameters ?? {})
    .map(([key, value]) => `${key} ${value}`)
    .join(", ");
}
