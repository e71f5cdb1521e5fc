// SPDX-License-Identifier: Apache-2.0
// The exact law of form/privatizer.js, from all random bits that it could draw: `node law.mjs PRIVATIZER.mjs` reads
// questions as JSON from standard input, and writes the answers.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const from = await import(pathToFileURL(process.argv[2]));

/** {value: probability} of a function of `draw`; `rest` is the probability of draws that were not followed. */
function law(run, least) {
  const found = {};
  let rest = 0;
  const follow = (path, mass) => {
    if (mass < least) {
      rest += mass;
      return;
    }
    let at = 0;
    const draw = (bits) => {
      if (at === path.length) {
        throw { bits };
      }
      return path[at++];
    };
    let value;
    try {
      value = String(run(draw));
    } catch (asked) {
      if (asked.bits === undefined) {
        throw asked;
      }
      for (let next = 0n; next < 1n << BigInt(asked.bits); next++) {
        follow([...path, next], mass / 2 ** asked.bits);
      }
      return;
    }
    found[value] = (found[value] ?? 0) + mass;
  };
  follow([], 1);
  return { found, rest };
}

/** How often each value came in so many draws of the browser's own bits. */
function count(run, draws) {
  const found = {};
  for (let i = 0; i < draws; i++) {
    const value = String(run(from.browserBits));
    found[value] = (found[value] ?? 0) + 1;
  }
  return found;
}

const big = (law) => Object.fromEntries(Object.entries(law).map(([key, value]) =>
  [key, typeof value === "boolean" ? value : Array.isArray(value) ? value.map(BigInt) : BigInt(value)]));
const runs = {
  below: ([bound]) => (draw) => from.below(draw, BigInt(bound)),
  expMinus: ([num, den]) => (draw) => from.expMinus(draw, BigInt(num), BigInt(den)),
  laplace: ([p, q]) => (draw) => from.discreteLaplace(draw, BigInt(p), BigInt(q)),
  privatize: ([law, score]) => (draw) => from.privatize(big(law), BigInt(score), draw),
  scoreOf: ([chosen, steps]) => () => from.scoreOf(BigInt(chosen), BigInt(steps)),
};
const { question, of, least, draws } = JSON.parse(readFileSync(0));
const run = runs[question](of);
process.stdout.write(JSON.stringify(draws ? count(run, draws) : law(run, least)));
