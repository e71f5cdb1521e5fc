/* SPDX-License-Identifier: Apache-2.0 */
/* An audit must pass sound mechanisms and must catch others: each fault here is planted for it. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <math.h>
#include <string.h>

#include "common/base/grid.h"
#include "lab/audit/audit.h"
#include "lab/audit/discriminant.h"
#include "lab/audit/evidence.h"
#include "lab/audit/plan.h"
#include "lab/audit/subjects.h"
#include "lab/judge/share.h"
#include "tests/support/near.h"

/* The mechanism's own file compiled again, under another name, so that its noise can be changed. */
#define cv_mechanism_hybrid tampered_hybrid
#include "broker/mechanism/hybrid.c"
#undef cv_mechanism_hybrid

static const struct cv_audit_settings settings = {.runs = 100000, .seed = 7, .jobs = 2, .error = 1e-3};

static struct cv_audit_verdict verdict_on(const struct cv_audit_subject *subject) {
  struct cv_audit_verdict verdict;
  assert_int_equal(cv_audit_run(subject, 1, &settings, &verdict), CV_OK);
  return verdict;
}

static struct cv_audit_subject stream_of(const struct cv_mechanism_class *class, const struct cv_audit_stream *of) {
  struct cv_audit_subject subject;
  assert_int_equal(cv_audit_mechanism(class, 1000000, of, &subject), CV_OK);
  return subject;
}

static struct cv_audit_subject stream(const struct cv_mechanism_class *class, uint32_t items, uint32_t changed) {
  return stream_of(class, &(struct cv_audit_stream){.items = items, .changed = changed, .score = CV_GRID});
}

/* ---- the bounds ---- */

/* P(X >= k) of a binomial law, from logarithms of factorials. */
static double tail(uint64_t k, uint64_t n, double p) {
  double sum = 0;
  for (uint64_t i = k; i <= n; i++) {
    sum += exp(lgamma((double)n + 1) - lgamma((double)i + 1) - lgamma((double)(n - i) + 1) + (double)i * log(p) +
               (double)(n - i) * log1p(-p));
  }
  return sum;
}

static void test_bounds_are_those_of_the_binomial_law(void **state) {
  static const struct {
    uint64_t hits, runs;
  } cases[] = {{1, 10}, {5, 10}, {9, 10}, {3, 1000}, {500, 1000}, {12, 50000}};
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    uint64_t hits = cases[i].hits, runs = cases[i].runs;
    for (double error = 1e-6; error < .1; error *= 30) {
      double low = cv_lab_share_least(hits, runs, error), high = cv_lab_share_most(hits, runs, error);
      assert_near(tail(hits, runs, low) / error, 1, 1e-5);
      assert_near(1 - tail(hits + 1, runs, high), error, 1e-8);
      assert_true(low < (double)hits / (double)runs && high > (double)hits / (double)runs);
    }
  }
  assert_near(cv_lab_share_least(0, 100, 1e-3), 0, 0);
  assert_near(cv_lab_share_most(100, 100, 1e-3), 1, 0);
  assert_near(cv_lab_share_most(0, 100, 1e-3), 1 - pow(1e-3, .01), 1e-8);
  assert_near(cv_lab_share_least(100, 100, 1e-3), pow(1e-3, .01), 1e-8);
}

static void test_nothing_is_certified_from_nothing(void **state) {
  assert_true(isinf(cv_audit_certified(0, 0, 1000, 0, 1e-3)));
  assert_true(cv_audit_certified(500, 500, 1000, 0, 1e-3) < 0);
  double certified = cv_audit_certified(500, 50, 1000, 0, 1e-3);
  assert_true(certified > 1 && certified < log(10));
  assert_true(cv_audit_certified(500, 50, 1000, .3, 1e-3) < certified);
}

static void test_an_estimate_is_near_the_bound_and_not_above_it_where_little_was_seen(void **state) {
  static const uint64_t hits[][2] = {{900, 300}, {500, 250}, {400, 20}, {300, 0}, {50, 0}};
  for (size_t i = 0; i < CV_COUNT(hits); i++) {
    double exact = cv_audit_certified(hits[i][0], hits[i][1], 1000, 0, 2 * 1e-4);
    double estimate = cv_audit_estimate(hits[i][0], hits[i][1], 1000, 0, 3.719); /* exceeded with probability 1e-4 */
    assert_true(fabs(estimate - exact) < .7);
    assert_true(hits[i][1] > 0 || estimate < exact);
  }
}

/* ---- the discriminant ---- */

enum { ROWS = 500 };

/* Three numbers, two of which are noise and the third their sum; in the second sample one more. */
static void fill_rows(int64_t rows[2][3 * ROWS], int64_t blur) {
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, 3, CV_RNG_NOISE, 0, 0);
  for (int side = 0; side < 2; side++) {
    for (int64_t *row = rows[side]; row < rows[side] + 3 * ROWS; row += 3) {
      row[0] = (int64_t)cv_rng_below(&seeded.rng, 20 * CV_GRID);
      row[1] = (int64_t)cv_rng_below(&seeded.rng, 20 * CV_GRID);
      row[2] = row[0] + row[1] + side * CV_GRID + (int64_t)cv_rng_below(&seeded.rng, (uint64_t)blur);
    }
  }
}

static void test_a_sum_without_noise_is_found_exactly(void **state) {
  static int64_t rows[2][3 * ROWS];
  double weight[3];
  fill_rows(rows, 1);
  assert_int_equal(cv_audit_discriminant((const int64_t *const[2]){rows[0], rows[1]}, 3, ROWS, 3, weight), CV_OK);
  double sign = weight[2];
  assert_near(fabs(sign), 1, 0);
  assert_near(weight[0], -sign, 0);
  assert_near(weight[1], -sign, 0);
  fill_rows(rows, CV_GRID);
  assert_int_equal(cv_audit_discriminant((const int64_t *const[2]){rows[0], rows[1]}, 3, ROWS, 3, weight), CV_OK);
  assert_near(weight[0] / weight[2], -1, .05);
}

static void test_equal_samples_have_no_discriminant(void **state) {
  static int64_t rows[2][3 * ROWS];
  double weight[3] = {1, 1, 1};
  fill_rows(rows, CV_GRID);
  assert_int_equal(cv_audit_discriminant((const int64_t *const[2]){rows[0], rows[0]}, 3, ROWS, 3, weight), CV_OK);
  assert_near(fabs(weight[0]) + fabs(weight[1]) + fabs(weight[2]), 0, 0);
}

/* ---- the plan ---- */

static void test_the_plan_changes_each_item_of_a_long_stream_of_every_mechanism(void **state) {
  struct cv_audit_plan *plan;
  size_t count;
  assert_int_equal(cv_audit_plan_new(NULL, false, &plan, NULL), CV_OK);
  const struct cv_audit_subject *subject = cv_audit_plan_subjects(plan, &count);
  for (size_t m = 0; cv_mechanism_at(m) != NULL; m++) {
    const struct cv_mechanism_class *class = cv_mechanism_at(m);
    for (uint32_t item = 1; cv_mechanism_has_noise(class) && item <= 34; item++) {
      size_t found = 0;
      for (size_t i = 0; i < count; i++) {
        const struct cv_audit_stream *stream = &subject[i].stream;
        bool carries = stream->arity == 0 || stream->arity == 3;
        found += subject[i].thing == class && subject[i].is_sound && stream->items == 34 && stream->changed == item &&
                 carries;
      }
      assert_int_equal(found, 1);
    }
  }
  cv_audit_plan_free(plan);
}

/* ---- what is sound ---- */

static void test_a_sound_mechanism_passes_and_the_bound_is_near_the_truth(void **state) {
  struct cv_audit_subject subject = stream(cv_mechanism_find("hybrid"), 4, 3);
  struct cv_audit_verdict verdict = verdict_on(&subject);
  assert_false(cv_audit_exceeds(&subject, &verdict));
  assert_true(verdict.certified > .8); /* exactly 1 */
  subject = stream(cv_mechanism_find("hybrid"), 1, 1);
  verdict = verdict_on(&subject);
  assert_near(subject.epsilon, .5, 1e-9);
  assert_false(cv_audit_exceeds(&subject, &verdict));
  assert_true(verdict.certified > .4);
}

static void test_the_result_does_not_depend_on_the_number_of_threads(void **state) {
  struct cv_audit_subject subject[3];
  struct cv_audit_verdict one[3], many[3];
  struct cv_audit_settings how = settings;
  for (uint32_t i = 0; i < 3; i++) {
    subject[i] = stream(cv_mechanism_find("hybrid"), i + 2, i + 1);
  }
  how.runs = 5000;
  how.jobs = 1;
  assert_int_equal(cv_audit_run(subject, 3, &how, one), CV_OK);
  how.jobs = 3;
  assert_int_equal(cv_audit_run(subject, 3, &how, many), CV_OK);
  for (int i = 0; i < 3; i++) {
    assert_true(memcmp(one[i].hits, many[i].hits, sizeof(one[i].hits)) == 0);
    assert_near(one[i].certified, many[i].certified, 0);
  }
}

static struct cv_spec campaign(uint32_t rounds) {
  return (struct cv_spec){.name = "audit",
                          .arms = 2,
                          .policy.name = "ppar",
                          .mechanism.name = "hybrid",
                          .privatizer.name = "none",
                          .epsilon_micro = 1000000,
                          .tokens_per_worker = 1,
                          .tokens = 2 * (uint64_t)rounds};
}

static void test_a_whole_pipeline_passes(void **state) {
  struct cv_spec spec = campaign(4);
  struct cv_audit_subject subject;
  assert_int_equal(
      cv_audit_pipeline(&spec, &(struct cv_audit_stream){.items = 4, .changed = 3, .score = CV_GRID}, &subject), CV_OK);
  struct cv_audit_settings how = settings;
  struct cv_audit_verdict verdict;
  how.runs = 12000;
  assert_int_equal(cv_audit_run(&subject, 1, &how, &verdict), CV_OK);
  assert_false(cv_audit_exceeds(&subject, &verdict));
  assert_true(verdict.certified > .7);
}

/* Of a row, what the first campaign released first, and what the second did. */
static void test_a_pipeline_of_two_campaigns_draws_noise_for_each(void **state) {
  enum { RUNS = 3, WIDTH = 2 * 2 * 2 + 1 };
  struct cv_spec spec = campaign(2);
  struct cv_audit_stream stream = {.items = 2, .changed = 1, .score = CV_GRID, .campaigns = 2};
  struct cv_audit_subject subject;
  int64_t row[RUNS * WIDTH];
  assert_int_equal(cv_audit_pipeline(&spec, &stream, &subject), CV_OK);
  assert_int_equal(subject.width, WIDTH);
  assert_int_equal(subject.sample(&subject, false, 1, RUNS, row), CV_OK);
  for (int64_t *at = row; at < row + RUNS * WIDTH; at += WIDTH) {
    for (int i = 0; i < 4; i++) {
      assert_true(at[i] != 0 && at[4 + i] != 0 && at[i] != at[4 + i]);
    }
  }
}

/* Its epsilon of .1 holds except for a delta of .5; in a sum with noise more than that leaks for certain. */
static void test_a_privatizer_with_delta_is_charged_what_passes_the_noise(void **state) {
  struct cv_spec spec = campaign(1);
  (void)snprintf(spec.mechanism.name, sizeof(spec.mechanism.name), "batch");
  (void)snprintf(spec.privatizer.name, sizeof(spec.privatizer.name), "randomized-response");
  assert_int_equal(cv_params_set_number(&spec.privatizer.params, "epsilon", .1), CV_OK);
  assert_int_equal(cv_params_set_number(&spec.privatizer.params, "delta", .5), CV_OK);
  struct cv_audit_subject subject;
  assert_int_equal(
      cv_audit_pipeline(&spec, &(struct cv_audit_stream){.items = 1, .changed = 1, .score = CV_GRID}, &subject), CV_OK);
  struct cv_audit_settings how = settings;
  struct cv_audit_verdict verdict;
  how.runs = 15000;
  assert_int_equal(cv_audit_run(&subject, 1, &how, &verdict), CV_OK);
  assert_near(subject.delta, 0, 0);
  assert_false(cv_audit_exceeds(&subject, &verdict));
  subject.epsilon = .1;
  assert_true(cv_audit_exceeds(&subject, &verdict));
  assert_true(verdict.certified > .3);
}

/* ---- two brokers ---- */

static struct cv_audit_subject two_of(struct cv_spec *spec, const struct cv_audit_brokers *brokers, uint32_t items,
                                      uint32_t tau) {
  struct cv_audit_subject subject;
  *spec = campaign(items);
  (void)snprintf(spec->mechanism.name, sizeof(spec->mechanism.name), "segments");
  spec->tokens *= tau;
  spec->brokers = 2;
  spec->score_bits = CV_SPLIT_SCORE;
  assert_int_equal(cv_audit_two_brokers(spec, &(struct cv_audit_stream){.items = items, .changed = 1, .score = CV_GRID},
                                        brokers, &subject),
                   CV_OK);
  return subject;
}

enum { TWO_RUNS = 1500 };

/* Of a row of two items and two arms: sums with the other's noise, own noises, then the rest. */
static void test_the_other_brokers_noise_alone_keeps_the_claim(void **state) {
  for (int i = 0; i < 4; i++) {
    struct cv_spec spec;
    struct cv_audit_brokers brokers = {.is_cobroker = i % 2 == 1, .seeded = i >= 2};
    struct cv_audit_subject subject = two_of(&spec, &brokers, 2, 1);
    struct cv_audit_settings how = settings;
    struct cv_audit_verdict verdict;
    how.runs = 2000;
    assert_near(subject.epsilon, 1, 1e-9);
    assert_int_equal(cv_audit_run(&subject, 1, &how, &verdict), CV_OK);
    assert_false(cv_audit_exceeds(&subject, &verdict));
    assert_true(verdict.certified > .5); /* exactly 1: the other's noise, not the sum of both */
  }
}

/* What a broker subtracts is all that is its own: what is left is a score of the grid and noise of one law, which the
 * neighbours' means show. */
static void test_a_broker_is_left_with_the_sum_and_one_noise(void **state) {
  enum { RUNS = 1000, WIDTH = 12 };
  static int64_t row[2][RUNS * WIDTH];
  for (int i = 0; i < 2; i++) {
    struct cv_spec spec;
    struct cv_audit_brokers brokers = {.is_cobroker = i == 1};
    struct cv_audit_subject subject = two_of(&spec, &brokers, 2, 1);
    assert_int_equal(subject.width, WIDTH);
    assert_int_equal(subject.sample(&subject, false, 5, RUNS, row[0]), CV_OK);
    assert_int_equal(subject.sample(&subject, true, 5, RUNS, row[1]), CV_OK);
    double size = 0, own = 0;
    for (int run = 0; run < RUNS; run++) {
      const int64_t *zero = row[0] + run * WIDTH, *one = row[1] + run * WIDTH;
      assert_int_equal(one[0] - zero[0], CV_GRID); /* the same randomness: noise and all else are the same */
      assert_int_equal(one[1] - zero[1], 0);
      assert_int_equal(one[4], zero[4]);
      size += fabs((double)zero[0]) / CV_GRID / RUNS;
      own += fabs((double)zero[4]) / CV_GRID / RUNS;
    }
    assert_near(size, 1, .15); /* of one Laplace of scale 1; of two it would be 1.5 */
    assert_near(own, 1, .15);
  }
}

static void test_a_lie_to_an_honest_broker_shows_nothing_more(void **state) {
  for (enum cv_lie lie = CV_LIE_ARM; lie <= CV_LIE_KEY; lie++) {
    struct cv_spec spec;
    struct cv_audit_brokers brokers = {.lie = lie, .is_cobroker = lie == CV_LIE_KEY};
    struct cv_audit_subject subject = two_of(&spec, &brokers, 1, lie == CV_LIE_SHORT || lie == CV_LIE_AGAIN ? 2 : 1);
    struct cv_audit_settings how = settings;
    struct cv_audit_verdict verdict;
    how.runs = TWO_RUNS;
    spec.tokens_per_worker = lie == CV_LIE_AGAIN ? 2 : 1;
    assert_near(subject.epsilon, lie == CV_LIE_SLOT || lie == CV_LIE_AGAIN ? 1 : 0, 1e-9);
    assert_int_equal(cv_audit_run(&subject, 1, &how, &verdict), CV_OK); /* fails if the lie was not told */
    assert_false(cv_audit_exceeds(&subject, &verdict));
  }
}

static void test_a_share_under_two_keys_is_opened(void **state) {
  struct cv_audit_subject subject;
  struct cv_audit_verdict verdict;
  struct cv_audit_settings how = settings;
  char event[200];
  how.runs = TWO_RUNS;
  cv_audit_verify_key(false, &subject);
  assert_int_equal(cv_audit_run(&subject, 1, &how, &verdict), CV_OK);
  assert_false(cv_audit_exceeds(&subject, &verdict));
  cv_audit_verify_key(true, &subject);
  assert_int_equal(cv_audit_run(&subject, 1, &how, &verdict), CV_OK);
  assert_true(verdict.certified > 4);
  cv_audit_describe(&verdict.event, &subject, event, sizeof(event));
  assert_non_null(strstr(event, "opened"));
}

/* Its tokens must come through, too: an audit of none would pass anything. */
static void test_a_lie_to_a_gateway_shows_one_token(void **state) {
  for (size_t at = 0; at < cv_audit_gateways(); at++) {
    struct cv_audit_subject subject;
    assert_int_equal(cv_audit_gateway(at, &subject), CV_OK);
    struct cv_audit_verdict verdict = verdict_on(&subject);
    assert_int_equal(cv_audit_exceeds(&subject, &verdict), !subject.is_sound);
    assert_true(verdict.certified > subject.epsilon / 2);
  }
}

static void test_a_scale_of_the_files_own_tells_of_a_row(void **state) {
  for (int is_declared = 0; is_declared < 2; is_declared++) {
    struct cv_audit_subject subject;
    cv_audit_scale(is_declared, 1000000, &subject);
    struct cv_audit_verdict verdict = verdict_on(&subject);
    assert_true(verdict.certified > (is_declared ? .8 : 3)); /* exactly 1 and 4 */
    assert_int_equal(cv_audit_exceeds(&subject, &verdict), !is_declared);
  }
}

/* ---- what must be caught ---- */

static void half_draw(struct cv_mechanism *self, uint64_t n, struct cv_rng *rng) {
  int64_t before = self->node[0];
  draw(self, n, rng);
  self->node[0] = before + (self->node[0] - before) / 2;
  if (cv_power_past(n) != 0) {
    self->node[1 + __builtin_ctzll(cv_power_past(n))] /= 2;
  }
}

static void test_halved_noise_is_caught(void **state) {
  struct cv_mechanism_class halved = tampered_hybrid;
  halved.draw = half_draw;
  struct cv_audit_subject subject = stream(&halved, 4, 3);
  struct cv_audit_verdict verdict = verdict_on(&subject);
  assert_true(cv_audit_exceeds(&subject, &verdict));
  assert_true(verdict.certified > 1.5 && verdict.certified < 2); /* exactly 2 */
}

/* The node of the lowest level is kept when its digit falls from 1 to -1. */
static void kept_draw(struct cv_mechanism *self, uint64_t n, struct cv_rng *rng) {
  int64_t before = self->node[0];
  cv_mechanism_find("kary")->draw(self, n, rng);
  self->node[0] = n % 3 == 2 ? before : self->node[0];
}

static void test_a_node_kept_at_the_carry_is_caught(void **state) {
  struct cv_mechanism_class kept = *cv_mechanism_find("kary");
  struct cv_audit_stream items = {.items = 8, .changed = 6, .score = CV_GRID, .arity = 3};
  struct cv_audit_settings how = settings;
  struct cv_audit_verdict verdict;
  char event[200];
  how.runs = 4000;
  struct cv_audit_subject subject = stream_of(&kept, &items);
  assert_int_equal(cv_audit_run(&subject, 1, &how, &verdict), CV_OK);
  assert_false(cv_audit_exceeds(&subject, &verdict));
  kept.draw = kept_draw;
  assert_int_equal(cv_audit_run(&subject, 1, &how, &verdict), CV_OK);
  assert_true(verdict.certified > 4);
  cv_audit_describe(&verdict.event, &subject, event, sizeof(event));
  assert_non_null(strstr(event, " + ")); /* of three releases at least */
}

static void even_draw(struct cv_mechanism *self, uint64_t n, struct cv_rng *rng) {
  cv_mechanism_find("segments")->draw(self, n, rng);
  self->node[0] &= ~INT64_C(1);
}

static void test_noise_that_leaves_the_least_bit_is_caught(void **state) {
  struct cv_mechanism_class even = *cv_mechanism_find("segments");
  struct cv_audit_stream items = {.items = 3, .changed = 2, .base = CV_GRID, .score = CV_GRID - 1};
  struct cv_audit_settings how = settings;
  struct cv_audit_verdict verdict;
  how.runs = 4000;
  even.draw = even_draw;
  struct cv_audit_subject subject = stream_of(&even, &items);
  assert_int_equal(cv_audit_run(&subject, 1, &how, &verdict), CV_OK);
  assert_true(verdict.certified > 4);
}

static bool never_live(const struct cv_mechanism_law *law, uint64_t n, uint32_t node) {
  return node == 0 && n < 6;
}

static void test_noise_that_a_restart_forgets_is_caught(void **state) {
  struct cv_mechanism_class forgetful = *cv_mechanism_find("hybrid");
  struct cv_audit_stream items = {.items = 7, .changed = 6, .score = CV_GRID};
  struct cv_audit_settings how = settings;
  struct cv_audit_verdict verdict;
  how.runs = 4000;
  forgetful.is_live = never_live;
  struct cv_audit_subject subject = stream_of(&forgetful, &items);
  assert_int_equal(cv_audit_run(&subject, 1, &how, &verdict), CV_OK);
  assert_false(cv_audit_exceeds(&subject, &verdict));
  subject.stream.restarts = true;
  assert_int_equal(cv_audit_run(&subject, 1, &how, &verdict), CV_OK);
  assert_true(verdict.certified > 4);
}

static void skipping_draw(struct cv_mechanism *self, uint64_t n, struct cv_rng *rng) {
  int64_t before = self->node[0];
  draw(self, n, rng);
  if (n > 1) {
    self->node[0] = before;
  }
}

static void test_a_draw_skipped_at_powers_of_two_is_caught(void **state) {
  struct cv_mechanism_class skipping = tampered_hybrid;
  skipping.draw = skipping_draw;
  struct cv_audit_subject subject = stream(&skipping, 8, 5);
  struct cv_audit_verdict verdict = verdict_on(&subject);
  assert_true(cv_audit_exceeds(&subject, &verdict));
  assert_true(verdict.certified > 5);
}

/* Two arms; the adversary knows that the second one's scores are all 0. */
static enum cv_err two_arms(const struct cv_audit_subject *self, bool neighbour, uint64_t from, uint64_t runs,
                            int64_t *row, bool reused) {
  struct cv_rng_seeded seeded[2];
  struct cv_mechanism *arm[2];
  struct cv_mechanism_law law;
  CV_TRY(cv_mechanism_law_for(self->thing, NULL, self->epsilon_micro, self->stream.items, &law, NULL));
  for (uint64_t run = 0; run < runs; run++) {
    for (uint64_t i = 0; i < 2; i++) {
      cv_rng_seeded_init(&seeded[i], from, CV_RNG_NOISE, run, reused ? 0 : i);
      CV_TRY(cv_mechanism_new(&law, &arm[i]));
      for (uint32_t n = 1; n <= self->stream.items; n++, row++) {
        cv_mechanism_draw(arm[i], &seeded[i].rng);
        *row = cv_mechanism_release(arm[i], neighbour && i == 0 && n == self->stream.changed ? CV_GRID : 0);
      }
      cv_mechanism_free(arm[i]);
    }
  }
  return CV_OK;
}

static enum cv_err sample_apart(const struct cv_audit_subject *self, bool neighbour, uint64_t from, uint64_t runs,
                                int64_t *row) {
  return two_arms(self, neighbour, from, runs, row, false);
}

static enum cv_err sample_reused(const struct cv_audit_subject *self, bool neighbour, uint64_t from, uint64_t runs,
                                 int64_t *row) {
  return two_arms(self, neighbour, from, runs, row, true);
}

static void test_the_printed_hybrid_is_caught(void **state) {
  struct cv_audit_subject subject = stream(cv_mechanism_find("hybrid-printed"), 64, 1);
  struct cv_audit_verdict verdict = verdict_on(&subject);
  assert_true(cv_audit_exceeds(&subject, &verdict));
  assert_true(verdict.certified > 2); /* exactly 6; of a single event at powers of two 3.5 */
}

static void test_noise_reused_across_arms_is_caught(void **state) {
  struct cv_audit_subject subject = stream(cv_mechanism_find("hybrid"), 4, 3);
  subject.width = subject.series = subject.keys = 8;
  for (uint16_t i = 0; i < 8; i++) {
    subject.key[i] = i;
  }
  subject.sample = sample_apart;
  struct cv_audit_verdict verdict = verdict_on(&subject);
  assert_false(cv_audit_exceeds(&subject, &verdict));
  subject.sample = sample_reused;
  verdict = verdict_on(&subject);
  assert_true(cv_audit_exceeds(&subject, &verdict));
  assert_true(verdict.certified > 5);
}

static void test_least_bits_tell_in_doubles_and_not_on_the_grid(void **state) {
  struct cv_audit_subject subject;
  cv_audit_laplace(true, 1, &subject);
  struct cv_audit_verdict verdict = verdict_on(&subject);
  assert_true(verdict.certified > 5);
  cv_audit_laplace(false, 1, &subject);
  verdict = verdict_on(&subject);
  assert_false(cv_audit_exceeds(&subject, &verdict));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bounds_are_those_of_the_binomial_law),
      cmocka_unit_test(test_nothing_is_certified_from_nothing),
      cmocka_unit_test(test_an_estimate_is_near_the_bound_and_not_above_it_where_little_was_seen),
      cmocka_unit_test(test_a_sum_without_noise_is_found_exactly),
      cmocka_unit_test(test_equal_samples_have_no_discriminant),
      cmocka_unit_test(test_the_plan_changes_each_item_of_a_long_stream_of_every_mechanism),
      cmocka_unit_test(test_a_sound_mechanism_passes_and_the_bound_is_near_the_truth),
      cmocka_unit_test(test_the_result_does_not_depend_on_the_number_of_threads),
      cmocka_unit_test(test_a_whole_pipeline_passes),
      cmocka_unit_test(test_a_pipeline_of_two_campaigns_draws_noise_for_each),
      cmocka_unit_test(test_the_other_brokers_noise_alone_keeps_the_claim),
      cmocka_unit_test(test_a_broker_is_left_with_the_sum_and_one_noise),
      cmocka_unit_test(test_a_lie_to_an_honest_broker_shows_nothing_more),
      cmocka_unit_test(test_a_share_under_two_keys_is_opened),
      cmocka_unit_test(test_a_lie_to_a_gateway_shows_one_token),
      cmocka_unit_test(test_a_scale_of_the_files_own_tells_of_a_row),
      cmocka_unit_test(test_a_privatizer_with_delta_is_charged_what_passes_the_noise),
      cmocka_unit_test(test_halved_noise_is_caught),
      cmocka_unit_test(test_a_node_kept_at_the_carry_is_caught),
      cmocka_unit_test(test_noise_that_leaves_the_least_bit_is_caught),
      cmocka_unit_test(test_noise_that_a_restart_forgets_is_caught),
      cmocka_unit_test(test_a_draw_skipped_at_powers_of_two_is_caught),
      cmocka_unit_test(test_the_printed_hybrid_is_caught),
      cmocka_unit_test(test_noise_reused_across_arms_is_caught),
      cmocka_unit_test(test_least_bits_tell_in_doubles_and_not_on_the_grid),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
