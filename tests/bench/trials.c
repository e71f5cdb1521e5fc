/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bandits as in an experiment, one pull a plan: the policy's step, the score, the privatizer, the mechanism's release,
 * the policy again; and against an adversary all gains of the game, which are computed first.
 */
#include <string.h>

#include "lab/experiment/read.h"
#include "lab/result/dataset.h"
#include "lab/run/measure.h"
#include "lab/run/piece.h"
#include "tests/bench/bench.h"

struct pieces {
  struct cv_lab_experiment experiment;
  uint64_t count, seed;
};

static uint64_t run(void *arg) {
  struct pieces *pieces = arg;
  double values[8], sum = 0;
  struct cv_why why = {0};
  CV_REQUIRE(cv_lab_piece_values(&pieces->experiment) <= CV_COUNT(values));
  for (uint64_t i = 0; i < pieces->count; i++) {
    const struct cv_lab_piece piece = {.experiment = &pieces->experiment, .seed = ++pieces->seed};
    CV_REQUIRE(cv_lab_piece_run(&piece, values, &why) == CV_OK);
    sum += values[0];
  }
  return (uint64_t)sum;
}

static void measure(const char *what, const char *campaign, uint64_t pulls, uint64_t count) {
  struct pieces pieces = {.count = count};
  struct cv_why why = {0};
  char text[1024];
  (void)snprintf(text, sizeof(text),
                 "campaign: bench\n%slimits: {tokens: %llu}\nexperiment: {replicates: 1, metrics: [regret]}\n",
                 campaign, (unsigned long long)pulls);
  if (cv_lab_experiment_parse(what, text, strlen(text), NULL, &pieces.experiment, &why) != CV_OK) {
    (void)fprintf(stderr, "%s\n", why.text);
    exit(1);
  }
  cv_bench(what, "pulls", (double)(pulls * count), run, &pieces);
  cv_lab_experiment_fini(&pieces.experiment);
}

#define ADVERSARY(name) "items: {adversary: {name: " name ", count: 4}}\n"
#define TEN                                                                                             \
  "items: {list: [{name: a, mean: 0.6}, {name: b, mean: 0.57}, {name: c, mean: 0.54}, {name: d, mean: " \
  "0.51}, {name: e, mean: 0.48}, {name: f, mean: 0.45}, {name: g, mean: 0.42}, {name: h, mean: 0.39}, " \
  "{name: i, mean: 0.36}, {name: j, mean: 0.33}]}\n"
#define TRUSTED  "privacy: {mechanism: none, third_party: trusted}\n"
#define LAPLACE  "privacy: {mechanism: none, privatizer: {name: laplace, epsilon: 1}}\n"
#define RESPONSE "privacy: {mechanism: none, privatizer: {name: randomized-response, p00: 0.75, p11: 0.75}}\n"

int main(void) {
  const uint64_t horizon = 1 << 18;
  measure("exp3, deterministic, K = 4", ADVERSARY("deterministic") "policy: exp3\n" TRUSTED, horizon, 4);
  measure("exp3, stochastic", ADVERSARY("stochastic") "policy: exp3\n" TRUSTED, horizon, 4);
  measure("exp3, switching", ADVERSARY("switching") "policy: exp3\n" TRUSTED, horizon, 2);
  measure("exp3-tau, deterministic", ADVERSARY("deterministic") "policy: exp3-tau\n" TRUSTED, horizon, 4);
  measure("dp-exp3-lap, deterministic", ADVERSARY("deterministic") "policy: dp-exp3-lap\n" LAPLACE, horizon, 4);
  measure("tsallis-inf, deterministic", ADVERSARY("deterministic") "policy: tsallis-inf\n" LAPLACE, horizon, 4);
  measure("klucb-cf, K = 10, p = .75", TEN "policy: klucb-cf\n" RESPONSE, 10000, 20);
  measure("klucb-cf, K = 10, no privatizer", TEN "policy: klucb-cf\n" TRUSTED, 10000, 20);
  measure("kl-local, K = 10, p = .75", TEN "policy: kl-local\n" RESPONSE, 10000, 20);
  measure("ts-cf, K = 10, p = .75", TEN "policy: ts-cf\n" RESPONSE, 10000, 20);
  return 0;
}
