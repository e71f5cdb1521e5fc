// SPDX-License-Identifier: Apache-2.0
// Replaces the score by a token before the form is sent. The score has no name in the form, or is in no form, so a browser
// never sends it.
import { privatize, scoreOf } from "./privatizer.js";

function lawOf({ bits, p00, p11, epsilon, delta, printed, low, high }) {
  if (bits === undefined) {
    return { epsilon: BigInt(epsilon), low: BigInt(low), high: BigInt(high) };
  }
  return p00 !== undefined
    ? { bits: true, kept: [BigInt(p00), BigInt(p11)] }
    : { bits: true, epsilon: BigInt(epsilon), delta: BigInt(delta), printed: printed !== undefined };
}

/**
 * A token is drawn once for an item, or two to compare, also where the question comes again after its time: a second draw
 * about the same opinion would tell more of it.
 */
function tokenOf(form, score) {
  const key = JSON.stringify(["token", form.elements.secret.value, Object.entries(form.dataset)]);
  let token = sessionStorage.getItem(key);
  if (token === null) {
    token = String(privatize(lawOf(form.dataset), scoreOf(score, BigInt(form.dataset.steps))));
    sessionStorage.setItem(key, token);
  }
  return token;
}

/** What the person chose: a number, or one of two items; null if neither item is chosen. */
function chosen() {
  return document.getElementById("score") ?? document.querySelector("input[name=choice]:checked");
}

const form = document.getElementById("local");
if (form !== null) {
  form.addEventListener("submit", (event) => {
    if (event.submitter?.name === "skip") {
      return;
    }
    const input = chosen();
    if (input === null) {
      event.preventDefault();
      return;
    }
    const hidden = form.elements.token ?? form.appendChild(document.createElement("input"));
    Object.assign(hidden, { type: "hidden", name: "token", value: tokenOf(form, BigInt(input.value)) });
    input.type === "radio" ? (input.checked = false) : (input.value = ""); // nothing keeps it: neither the history nor the list of earlier inputs
    document.getElementById("send").disabled = true;
  });
  document.getElementById("send").disabled = false;
}
