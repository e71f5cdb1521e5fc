// SPDX-License-Identifier: Apache-2.0
// Replaces the score by a token before the form is sent. The score has no name in the form, so a browser never sends it.
import { privatize, scoreOf } from "./privatizer.js";

function lawOf({ bits, p00, p11, epsilon, delta, printed, low, high }) {
  if (bits === undefined) {
    return { epsilon: BigInt(epsilon), low: BigInt(low), high: BigInt(high) };
  }
  return p00 !== undefined
    ? { bits: true, kept: [BigInt(p00), BigInt(p11)] }
    : { bits: true, epsilon: BigInt(epsilon), delta: BigInt(delta), printed: printed !== undefined };
}

/** A token is drawn once for a question: a second draw for the same score would tell more about it. */
function tokenOf(form, score) {
  const key = `token ${form.elements.secret.value} ${form.elements.question.value}`;
  let token = sessionStorage.getItem(key);
  if (token === null) {
    token = String(privatize(lawOf(form.dataset), scoreOf(score, BigInt(form.dataset.steps))));
    sessionStorage.clear();
    sessionStorage.setItem(key, token);
  }
  return token;
}

const form = document.getElementById("local");
if (form !== null) {
  form.addEventListener("submit", (event) => {
    if (event.submitter?.name === "skip") {
      return;
    }
    const input = document.getElementById("score");
    const hidden = form.elements.token ?? form.appendChild(document.createElement("input"));
    Object.assign(hidden, { type: "hidden", name: "token", value: tokenOf(form, BigInt(input.value)) });
    input.value = ""; // nothing keeps it: neither the history nor the list of earlier inputs
    document.getElementById("send").disabled = true;
  });
  document.getElementById("send").disabled = false;
}
