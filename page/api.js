/* SPDX-License-Identifier: Apache-2.0 */
/* The server, as this page speaks to it. Every address is of the same origin. */

const AGAIN_MS = 2000;

async function get(address) {
  const answer = await fetch(address, { cache: "no-store" });
  if (!answer.ok) {
    const error = new Error((await answer.text()).trim() || `the server answered ${answer.status}`);
    error.status = answer.status;
    throw error;
  }
  return answer.json();
}

export function campaigns() {
  return get("api/campaigns");
}

export function campaign(id) {
  return get(`api/campaign?id=${id}`);
}

/** What the parties hold of an arm; null where this server cannot know it. */
export async function boundary(id, arm) {
  const answer = await fetch(`api/boundary?id=${id}&arm=${arm}`, { cache: "no-store" });
  return answer.ok ? answer.json() : null;
}

/**
 * Follows a campaign after the step `after`. `on` has step, state, live, link, and without argument reload, open and
 * lost; and refused, with the server's sentence. The browser connects again by itself; where it gives up, this tries
 * again after a while, unless the server refuses this page.
 * Returns a function that ends it.
 */
export function follow(id, after, on) {
  let source = null;
  let last = after;
  let timer = 0;
  let ended = false;
  const connect = () => {
    source = new EventSource(`api/events?id=${id}&after=${last}`);
    source.addEventListener("open", on.open);
    source.addEventListener("step", (event) => {
      const step = JSON.parse(event.data);
      last = Math.max(last, step.n);
      on.step(step);
    });
    source.addEventListener("state", (event) => on.state(JSON.parse(event.data)));
    source.addEventListener("live", (event) => on.live(JSON.parse(event.data)));
    source.addEventListener("link", (event) => on.link(JSON.parse(event.data)));
    source.addEventListener("reload", on.reload);
    source.addEventListener("error", () => {
      on.lost();
      if (source.readyState === EventSource.CLOSED) {
        campaigns().then(retry, (error) => (error.status === undefined ? retry() : on.refused(error.message)));
      }
    });
  };
  const retry = () => {
    timer = ended ? 0 : setTimeout(connect, AGAIN_MS);
  };
  connect();
  return () => {
    ended = true;
    clearTimeout(timer);
    source.close();
  };
}
