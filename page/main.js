/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page: asks the server for a campaign's history, follows it, and gives each part of the page the same view of one
 * step. A view is { campaign, history, index, step, rows, decided, live, factor, jump }; `jump` is true if the reader
 * moved in time, so that nothing has to glide.
 */
import * as api from "./api.js";
import { Boundary } from "./boundary.js";
import { Charts } from "./charts.js";
import { Decisions } from "./decisions.js";
import { byId, el, setText, show } from "./dom.js";
import { Epsilon } from "./epsilon.js";
import { Header } from "./header.js";
import { History, STEPS_MAX } from "./history.js";
import { Items } from "./items.js";
import { Player } from "./player.js";
import { Tiles } from "./tiles.js";
import { isolated } from "./words.js";

const EMPTY_AGAIN_MS = 500;
const LIST_AGAIN_MS = 15000;

const page = {
  campaign: null,
  history: null,
  index: -1,
  following: true,
  factor: 1,
  lives: [],
  drawn: false /* a frame is asked for */,
  jump: true,
  end: () => {} /* of the stream of events */,
};

const boundary = new Boundary(byId("boundary"));
const player = new Player({ seek, follow });
const parts = [
  new Header(),
  new Tiles(byId("tiles")),
  new Items(byId("items"), (arm) => boundary.choose(arm, true)),
  new Epsilon((factor) => {
    page.factor = factor;
    draw(true);
  }),
  new Decisions(seek),
  boundary,
  new Charts(byId("plots")),
  player,
];

/** Shows the step with this index; the page no longer follows the newest. Rows glide to their places if it `glides`. */
function seek(index, glides = false) {
  page.following = false;
  page.index = Math.max(0, Math.min(index, page.history.last));
  draw(!glides);
}

function follow() {
  page.following = true;
  page.index = page.history.last;
  draw(true);
}

/** Asks for one frame, however many steps arrive before it. */
function draw(jump) {
  page.jump ||= jump;
  if (!page.drawn) {
    page.drawn = true;
    requestAnimationFrame(frame);
  }
}

function frame() {
  page.drawn = false;
  const { campaign, history, index, jump, factor, following } = page;
  page.jump = false;
  const step = index < 0 ? null : history.steps[index];
  const view = {
    campaign,
    history,
    index,
    step,
    rows: history.rows(index),
    decided: history.decisionsUntil(index),
    live: liveAt(step),
    factor,
    following,
    jump,
  };
  for (const part of parts) {
    part.update(view);
  }
}

/** The broker's progress at that time; null where this server does not know it. */
function liveAt(step) {
  const { lives, following } = page;
  if (lives.length === 0 || following || step === null || step.t === null) {
    return following ? (lives.at(-1) ?? null) : null;
  }
  return lives.findLast((live) => live.t <= step.t) ?? null;
}

async function open(id) {
  page.end();
  const campaign = await api.campaign(id);
  page.campaign = campaign;
  page.history = new History(campaign);
  page.index = page.history.last;
  page.following = true;
  page.factor = 1;
  page.lives = campaign.live ? [campaign.live] : [];
  show(byId("notice"), false);
  for (const part of parts) {
    part.start(campaign, page.history);
  }
  draw(true);
  page.end = api.follow(id, page.history.length > 0 ? page.history.steps[page.history.last].n : 0, {
    open: () => link("live"),
    lost: () => link("lost"),
    refused: (text) => refuse(text),
    reload: () => again(id),
    step: (step) => take(id, step),
    state: ({ state, note }) => {
      Object.assign(campaign, { state, note });
      draw(false);
    },
    link: (broker) => {
      campaign.link = broker;
      draw(false);
    },
    live: (live) => {
      page.lives.push(live);
      page.lives.splice(0, page.lives.length - STEPS_MAX);
      draw(false);
    },
  });
}

function take(id, step) {
  if (page.history.add(step)) {
    if (page.history.length > STEPS_MAX) {
      again(id);
    }
    if (page.following) {
      page.index = page.history.last;
    }
    draw(false);
  }
}

/** Opens a campaign, and says in one line why that is not possible. */
async function again(id) {
  try {
    await open(id);
  } catch (error) {
    refuse(error.message);
  }
}

function link(state) {
  byId("link").dataset.state = state;
  setText(byId("link-text"), { live: "Connected", lost: "Connecting again" }[state]);
}

function refuse(text) {
  link("lost");
  setText(byId("notice"), text);
  show(byId("notice"), true);
}

/** Reads the list of campaigns, newest first, into the choice at the top; returns it. */
async function list() {
  const { party, campaigns } = await api.campaigns();
  boundary.alone = party === "third-party"; /* that server never shows what others hold */
  const pick = byId("campaign");
  const options = campaigns.map(({ id, name, broker, number, state }) =>
    el("option", { value: id }, `${isolated(name)} (${broker} ${number}, ${state})`),
  );
  if (pick.textContent !== options.map((option) => option.textContent).join("")) {
    pick.replaceChildren(...options);
    pick.value = String(page.campaign?.id ?? campaigns[0]?.id ?? "");
  }
  show(byId("campaign-pick"), campaigns.length > 1);
  return campaigns;
}

async function start() {
  try {
    const campaigns = await list();
    if (campaigns.length > 0) {
      await open(campaigns[0].id);
      return;
    }
    link("live");
    setText(byId("name"), "No campaign yet");
    setText(byId("purpose"), "The first one appears here as soon as it is submitted.");
    setTimeout(start, EMPTY_AGAIN_MS);
  } catch (error) {
    refuse(error.message);
  }
}

byId("campaign").addEventListener("change", (event) => again(Number(event.target.value)));
setInterval(() => {
  if (!document.hidden && page.campaign !== null) {
    list().catch(() => {}); /* a lost connection is told by the events */
  }
}, LIST_AGAIN_MS);
start();
