// SPDX-License-Identifier: Apache-2.0
// The privatizers of worker/privatizer, in the browser: the same laws, drawn exactly. Integers only (BigInt), so no
// probability is rounded; random bits come from the browser's own generator.

export const GRID = 1n << 20n;
const MICRO = 1000000n, PICO = 1000000000000n;

/** Random bits, `bits` of them (a multiple of 8 is drawn, the rest discarded). */
export function browserBits(bits) {
  const bytes = crypto.getRandomValues(new Uint8Array((bits + 7) >> 3));
  let value = 0n;
  for (const byte of bytes) {
    value = (value << 8n) | BigInt(byte);
  }
  return value & ((1n << BigInt(bits)) - 1n);
}

/** Uniform in [0, bound): draws of as many bits as the bound needs, until one lies below it. */
export function below(draw, bound) {
  const bits = (bound - 1n).toString(2).length;
  for (;;) {
    const value = bound === 1n ? 0n : draw(bits);
    if (value < bound) {
      return value;
    }
  }
}

/** True with probability num/den. */
const happens = (draw, num, den) => below(draw, den) < num;

/** True with probability exp(-num/den), 0 <= num <= den: the first k at which a chance of num/(den k) fails is odd. */
function expMinusPart(draw, num, den) {
  let k = 1n;
  while (happens(draw, num, den * k)) {
    k++;
  }
  return k % 2n === 1n;
}

/** True with probability exp(-num/den). */
export function expMinus(draw, num, den) {
  for (let whole = num / den; whole > 0n; whole--) {
    if (!expMinusPart(draw, 1n, 1n)) {
      return false;
    }
  }
  return expMinusPart(draw, num % den, den);
}

/** Discrete Laplace: P(x) proportional to exp(-|x| q/p) (Canonne, Kamath and Steinke 2020, Algorithm 2). */
export function discreteLaplace(draw, p, q) {
  for (;;) {
    const u = below(draw, p);
    if (!expMinusPart(draw, u, p)) {
      continue;
    }
    let v = 0n;
    while (v < 1023n && expMinusPart(draw, 1n, 1n)) {
      v++;
    }
    const size = (u + p * v) / q;
    const negative = draw(1) === 1n;
    if (!(negative && size === 0n)) { // zero would come twice as often
      return negative ? -size : size;
    }
  }
}

/** True with probability (e^epsilon + delta)/(1 + e^epsilon). */
function keeps(draw, law) {
  if (law.delta > 0n && happens(draw, law.delta, PICO)) {
    return true;
  }
  for (;;) {
    if (draw(1) === 0n) {
      return true;
    }
    if (expMinus(draw, law.epsilon, MICRO)) {
      return false;
    }
  }
}

/** True with probability (e^epsilon + delta)/(1 + e^epsilon + delta). */
function keepsAsPrinted(draw, law) {
  for (;;) {
    const proposal = below(draw, 3n);
    if (proposal === 0n) {
      return true;
    }
    const granted = expMinus(draw, law.epsilon, MICRO);
    if (proposal === 1n && granted && happens(draw, law.delta, PICO)) {
      return true;
    }
    if (proposal === 2n && granted) {
      return false;
    }
  }
}

function respond(draw, law, score) {
  const bit = happens(draw, score, GRID);
  let kept;
  if (law.kept !== undefined) {
    kept = happens(draw, law.kept[bit ? 1 : 0], MICRO);
  } else {
    kept = law.printed ? keepsAsPrinted(draw, law) : keeps(draw, law);
  }
  return bit === kept ? GRID : 0n;
}

function addNoise(draw, law, score) {
  let [p, q] = [GRID * MICRO, law.epsilon];
  for (let [a, b] = [p, q]; ;) {
    if (b === 0n) {
      [p, q] = [p / a, q / a];
      break;
    }
    [a, b] = [b, a % b];
  }
  const value = score + discreteLaplace(draw, p, q);
  return value < law.low ? law.low : value > law.high ? law.high : value;
}

/**
 * The token of a score in [0, GRID]. `law`: {bits: true, kept: [p00, p11] in millionths}, or {bits: true, epsilon,
 * delta, printed}, or {epsilon, low, high}; epsilon in 10^-6, delta in 10^-12; all numbers BigInt.
 */
export const privatize = (law, score, draw = browserBits) =>
  (law.bits ? respond : addNoise)(draw, law, score);

/** The score of `steps` equal steps that a person chose; as the gateway computes it (worker/form_post.c). */
export const scoreOf = (chosen, steps) => (2n * chosen * GRID + steps) / (2n * steps);
