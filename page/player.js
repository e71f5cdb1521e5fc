/* SPDX-License-Identifier: Apache-2.0 */
/* The time slider: any moment of the run, play, pause, and the newest. */
import { byId, icon, setAttr, setText, svg } from "./dom.js";
import { count, seconds, settles } from "./words.js";

const WHOLE_RUN_MS = 20000;
const STEP_MS_MAX = 500;
const GLIDE_MS = 150; /* faster steps than this jump */

export class Player {
  constructor({ seek, follow }) {
    this.seek = seek;
    this.follow = follow;
    this.slider = byId("time");
    this.timer = 0;
    byId("play").append(icon("play"), icon("pause"));
    byId("play").addEventListener("click", () => (this.timer === 0 ? this.play() : this.pause()));
    byId("live").addEventListener("click", () => {
      this.pause();
      this.follow();
    });
    this.slider.addEventListener("input", () => {
      this.pause();
      this.seek(Number(this.slider.value));
    });
  }

  start(campaign, history) {
    this.pause();
    this.history = history;
    this.marked = -1;
  }

  update({ campaign, history, index, step, following }) {
    const running = campaign.state === "running";
    setAttr(this.slider, "max", Math.max(0, history.last));
    this.slider.value = String(Math.max(0, index));
    this.slider.disabled = byId("play").disabled = history.length < 2;
    const text = step === null ? "Waiting for the first round" : `Round ${count(step.n)}`;
    setText(byId("time-text"), text);
    const of = history.length === 0 ? "" : ` of ${count(history.steps[history.last].n)}`;
    setText(byId("time-clock"), `${of}${step?.t > 0 ? ` · ${seconds(step.t)}` : ""}`);
    setAttr(this.slider, "aria-valuetext", `${text}${of}`);
    setText(byId("live"), running ? "Live" : "End");
    setAttr(byId("live"), "aria-pressed", following);
    byId("live").dataset.running = running;
    this.mark(history);
  }

  /* A tick on the rail for each step in which an item was settled. */
  mark(history) {
    if (this.marked === history.length) {
      return;
    }
    this.marked = history.length;
    const steps = new Set();
    history.decisions.forEach((decision, place) => {
      if (settles(decision)) {
        steps.add(history.stepOfDecision(place));
      }
    });
    const at = (index) => `${((100 * index) / Math.max(1, history.last)).toFixed(2)}%`;
    byId("ticks").replaceChildren(
      ...[...steps].slice(-400).map((index) => svg("line", { x1: at(index), x2: at(index), y1: 0, y2: "100%" })),
    );
  }

  play() {
    const { history } = this;
    let index = Number(this.slider.value);
    if (index >= history.last) {
      index = -1;
    }
    const pace = Math.min(STEP_MS_MAX, WHOLE_RUN_MS / history.length);
    const began = performance.now();
    const first = index + 1;
    setAttr(byId("play"), "aria-label", "Pause");
    byId("play").classList.add("playing");
    const next = () => {
      const at = first + Math.floor((performance.now() - began) / pace);
      if (at >= history.last) {
        this.pause();
        this.follow();
        return;
      }
      if (at > index) {
        index = at;
        this.seek(at, pace > GLIDE_MS);
      }
      this.timer = requestAnimationFrame(next);
    };
    this.timer = requestAnimationFrame(next);
  }

  pause() {
    cancelAnimationFrame(this.timer);
    this.timer = 0;
    setAttr(byId("play"), "aria-label", "Play");
    byId("play").classList.remove("playing");
  }
}
