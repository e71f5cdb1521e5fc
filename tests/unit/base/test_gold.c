/* SPDX-License-Identifier: Apache-2.0 */
/* Gold items: whom the test finds, and how rarely an honest worker; which campaigns can have them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "common/base/gold.h"
#include "common/base/grid.h"
#include "tests/support/near.h"

static struct cv_gold_item known[] = {{.item = 1, .answer = CV_GRID}, {.item = 4, .answer = 0}};

static struct cv_gold make_gold(void) {
  return (struct cv_gold){.items = 2,
                          .item = known,
                          .tolerance = CV_GRID / 4,
                          .error_micro = 100000,
                          .level_micro = 10000,
                          .share_micro = 250000,
                          .epsilon_micro = 70000};
}

static struct cv_spec make_spec(void) {
  return (struct cv_spec){.name = "gold",
                          .arms = 4,
                          .policy = {.name = "ppar"},
                          .mechanism = {.name = "hybrid"},
                          .privatizer = {.name = "none"},
                          .epsilon_micro = 1000000,
                          .tokens_per_worker = 100,
                          .tokens = 1000};
}

static struct cv_local law_of(const char *name, double p00, double p11) {
  struct cv_choice choice = {0};
  struct cv_local law;
  struct cv_why why;
  (void)snprintf(choice.name, sizeof(choice.name), "%s", name);
  if (p00 > 0) {
    assert_int_equal(cv_params_set_number(&choice.params, "p00", p00), CV_OK);
    assert_int_equal(cv_params_set_number(&choice.params, "p11", p11), CV_OK);
  }
  assert_int_equal(cv_local_init(&choice, 4, &law, &why), CV_OK);
  return law;
}

/* The share of workers, each wrong with probability p, that are found within so many answers. */
static double found_share(double p, double error, double level, uint32_t answers) {
  enum { WORKERS = 20000, ANSWERS_MAX = 400 };
  uint32_t least[ANSWERS_MAX + 1]; /* wrong ones of n that are enough */
  assert_in_range(answers, 1, ANSWERS_MAX);
  for (uint32_t n = 1; n <= answers; n++) {
    for (least[n] = 0; least[n] <= n && !cv_gold_finds(error, level, n, least[n]);) {
      least[n]++;
    }
  }
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, 5, 1, 2, 3);
  uint32_t found = 0;
  for (uint32_t i = 0; i < WORKERS; i++) {
    uint32_t wrong = 0;
    bool is_found = false;
    for (uint32_t n = 1; n <= answers && !is_found; n++) {
      wrong += cv_rng_unit(&seeded.rng) < p;
      is_found = wrong >= least[n];
    }
    found += is_found;
  }
  return found / (double)WORKERS;
}

static void honest_workers_are_rarely_found_however_often_they_are_tested(void **state) {
  /* 20,000 workers: five standard deviations above the level at most. */
  assert_true(found_share(.1, .1, .05, 400) <= .05 + 5 * sqrt(.05 / 20000));
  assert_true(found_share(.1, .1, .01, 400) <= .01 + 5 * sqrt(.01 / 20000));
  assert_true(found_share(.3, .3, .05, 400) <= .05 + 5 * sqrt(.05 / 20000));
  /* The level is used: an honest worker is not simply never found. */
  assert_true(found_share(.1, .1, .05, 400) > .003);
}

static void workers_who_answer_wrong_are_found(void **state) {
  assert_true(found_share(1, .1, .001, 6) == 1);
  assert_true(found_share(.5, .1, .001, 60) > .99);
  assert_false(cv_gold_finds(.1, .001, 1, 1));
  assert_false(cv_gold_finds(.1, .001, 0, 0));
  /* Fewer wrong answers never make it worse for the worker. */
  for (uint32_t wrong = 0; wrong < 100; wrong++) {
    assert_true(!cv_gold_finds(.1, .01, 100, wrong) || cv_gold_finds(.1, .01, 100, wrong + 1));
  }
}

static void a_score_beyond_the_tolerance_is_wrong(void **state) {
  const struct cv_gold gold = make_gold();
  const struct cv_local law = law_of("none", 0, 0);
  assert_false(cv_gold_is_wrong(&gold, &law, 0, CV_GRID - CV_GRID / 4));
  assert_true(cv_gold_is_wrong(&gold, &law, 0, CV_GRID - CV_GRID / 4 - 1));
  assert_false(cv_gold_is_wrong(&gold, &law, 1, CV_GRID / 4));
  assert_true(cv_gold_is_wrong(&gold, &law, 1, CV_GRID / 4 + 1));
  assert_near(cv_gold_error(&gold, &law), .1, 1e-12);
}

/* The chance of a wrong bit for the worst honest worker: within the tolerance but for a tenth of its answers. */
static double worst_bit(const struct cv_local *law, double answer, double tolerance, double error) {
  struct cv_feedback feedback = cv_local_feedback(law, 0);
  bool one = feedback.offset + feedback.slope * answer >= .5;
  double near_most = 0, any_most = 0;
  for (int i = 0; i <= 1000; i++) {
    double score = i / 1000., p = feedback.offset + feedback.slope * score, wrong = one ? 1 - p : p;
    near_most = fabs(score - answer) <= tolerance && wrong > near_most ? wrong : near_most;
    any_most = wrong > any_most ? wrong : any_most;
  }
  return (1 - error) * near_most + error * any_most;
}

static void a_flipped_bit_of_an_honest_worker_is_allowed_for(void **state) {
  const struct cv_gold gold = make_gold();
  static const double matrix[][2] = {{.9, .9}, {.8, .95}, {.1, .2}};
  for (size_t i = 0; i < sizeof(matrix) / sizeof(matrix[0]); i++) {
    const struct cv_local law = law_of("randomized-response", matrix[i][0], matrix[i][1]);
    double expected = fmax(worst_bit(&law, 1, .25, .1), worst_bit(&law, 0, .25, .1));
    assert_near(cv_gold_error(&gold, &law), expected, 1e-9);
    bool inverts = matrix[i][0] + matrix[i][1] < 1;
    assert_int_equal(cv_gold_is_wrong(&gold, &law, 0, CV_GRID), inverts);
    assert_int_equal(cv_gold_is_wrong(&gold, &law, 0, 0), !inverts);
    assert_int_equal(cv_gold_is_wrong(&gold, &law, 1, 0), inverts);
  }
}

static void so_many_assignments_are_about_gold_items_on_average(void **state) {
  struct cv_gold gold = {.items = 10, .share_micro = 500000};
  assert_near(cv_gold_expected(&gold, 0), 0, 0);
  assert_near(cv_gold_expected(&gold, 4), 2, 1e-9);
  gold.items = 1;
  assert_near(cv_gold_expected(&gold, 4), 15. / 16, 1e-9);
  assert_near(cv_gold_expected(&gold, CV_GOLD_TOKENS_MAX), 1, 1e-9);
  gold.items = 0;
  assert_near(cv_gold_expected(&gold, 4), 0, 0);
}

static void a_neutral_token_is_that_of_one_half(void **state) {
  enum { DRAWS = 100000 };
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, 9, 1, 2, 3);
  const struct cv_local none = law_of("none", 0, 0), bits = law_of("randomized-response", .7, .95);
  assert_int_equal(cv_gold_neutral(&none, &seeded.rng), CV_GRID / 2);
  double ones = 0;
  for (int i = 0; i < DRAWS; i++) {
    int64_t token = cv_gold_neutral(&bits, &seeded.rng);
    assert_true(token == 0 || token == CV_GRID);
    ones += token != 0;
  }
  struct cv_feedback feedback = cv_local_feedback(&bits, 0);
  assert_near(ones / DRAWS, feedback.offset + feedback.slope / 2, 5 * .5 / sqrt(DRAWS));
}

static void refused(const struct cv_gold *gold, const struct cv_spec *spec, const char *text) {
  struct cv_why why = {0};
  assert_int_equal(cv_gold_check_new(gold, spec, &why), CV_ERR_INVALID);
  if (strstr(why.text, text) == NULL) {
    fail_msg("\"%s\" lacks \"%s\"", why.text, text);
  }
}

static void a_campaign_that_cannot_have_gold_items_is_refused(void **state) {
  struct cv_gold gold = make_gold();
  struct cv_spec spec = make_spec();
  struct cv_why why = {0};
  assert_int_equal(cv_gold_check(&gold, &spec, &why), CV_OK);
  struct cv_gold_item twice[] = {known[0], known[0]}, beyond[] = {known[0], {.item = 6}};
  gold.item = twice;
  refused(&gold, &spec, "gold item 2 after 2");
  gold.item = beyond;
  refused(&gold, &spec, "gold item 7 does not exist");
  struct cv_gold_item above[] = {known[0], {.item = 4, .answer = CV_GRID + 1}};
  gold.item = above;
  refused(&gold, &spec, "known score of item 5");
  gold = make_gold();
  gold.tolerance = CV_GRID;
  refused(&gold, &spec, "tolerance");
  gold = make_gold();
  gold.share_micro = 600000;
  refused(&gold, &spec, "among the assignments is 0.6");
  gold = make_gold();
  gold.error_micro = 0;
  refused(&gold, &spec, "wrong honest answers");
  gold = make_gold();
  uint64_t costs[] = {1, 1, 1, 1};
  spec.cost_micro = costs;
  refused(&gold, &spec, "in a recruitment");
  spec = make_spec();
  spec.edges = 1;
  refused(&gold, &spec, "in a feedback graph");
  spec = make_spec();
  spec.tokens_per_worker = CV_GOLD_TOKENS_MAX + 1;
  refused(&gold, &spec, "expected at most 32767");
  spec = make_spec();
  gold.epsilon_micro = CV_GOLD_EPSILON_MAX + 1;
  refused(&gold, &spec, "epsilon of the numbers of neutral tokens is 20");
  gold = make_gold();
  (void)snprintf(spec.privatizer.name, sizeof(spec.privatizer.name), "laplace");
  assert_int_equal(cv_params_set_number(&spec.privatizer.params, "epsilon", 1), CV_OK);
  refused(&gold, &spec, "privatizer laplace");
  spec = make_spec();
  (void)snprintf(spec.privatizer.name, sizeof(spec.privatizer.name), "randomized-response");
  assert_int_equal(cv_params_set_number(&spec.privatizer.params, "epsilon", 1), CV_OK);
  assert_int_equal(cv_gold_check(&gold, &spec, &why), CV_OK);
  struct cv_gold_item middle[] = {known[0], {.item = 4, .answer = CV_GRID / 2}};
  gold.item = middle;
  refused(&gold, &spec, "nearer to 0 or 1");
}

/* The advice is one that helps: more tokens, one for each item at most, a larger share, both, or more items. */
static void what_gets_a_worker_enough_gold_items_is_said(void **state) {
  struct cv_gold_item three[] = {known[0], known[1], {.item = 5, .answer = CV_GRID}};
  static const struct {
    uint32_t arms, tokens, share_micro;
    const char *says;
    uint32_t then_arms, then_tokens, then_share_micro;
  } each[] = {
      {20, 8, 250000, "a worker: 12 tokens of a worker, or a share of gold items of 0.375", 20, 12, 250000},
      {20, 8, 250000, "a share of gold items of 0.375", 20, 8, 375000},
      {20, 5, 250000, "a worker: 12 tokens of a worker", 20, 12, 250000},
      {5, 7, 250000, "a worker: a share of gold items of 0.429", 5, 7, 429000},
      {5, 4, 250000, "a worker: 8 tokens of a worker, one for each item, and a share of gold items of 0.375", 5, 8,
       375000},
      {2, 5, 500000, "a worker: 6 items or more, of which there are 5, and a share of gold items of 0.5", 3, 6, 500000},
  };
  for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
    struct cv_gold gold = make_gold();
    struct cv_spec spec = make_spec();
    struct cv_why why = {0};
    gold.items = 3;
    gold.item = three;
    for (uint32_t item = 0; item < 3; item++) { /* the last items of all */
      three[item].item = each[i].arms + item;
    }
    spec.arms = each[i].arms;
    spec.tokens_per_worker = each[i].tokens;
    gold.share_micro = each[i].share_micro;
    refused(&gold, &spec, each[i].says);
    for (uint32_t item = 0; item < 3; item++) {
      three[item].item = each[i].then_arms + item;
    }
    spec.arms = each[i].then_arms;
    spec.tokens_per_worker = each[i].then_tokens;
    gold.share_micro = each[i].then_share_micro;
    assert_int_equal(cv_gold_check_new(&gold, &spec, &why), CV_OK);
    assert_int_equal(cv_spec_check_questions(&spec, gold.items, &why), CV_OK);
  }
}

/* An honest worker is wrong with probability .1 and found with .01: two wrong answers do not find it, three do. */
static void a_new_campaign_asks_enough_of_a_worker_to_find_it(void **state) {
  struct cv_gold_item three[] = {known[0], known[1], {.item = 5, .answer = CV_GRID}};
  struct cv_gold gold = make_gold();
  struct cv_spec spec = make_spec();
  refused(&gold, &spec, "2 gold items; expected at least 3");
  assert_int_equal(cv_gold_check(&gold, &spec, NULL), CV_OK); /* one that runs goes on */
  gold.items = 3;
  gold.item = three;
  assert_int_equal(cv_gold_check_new(&gold, &spec, NULL), CV_OK);
  spec.tokens_per_worker = 11;
  refused(&gold, &spec, "tokens_per_worker is 11, of which 2.75 ask a gold item on average; expected at least 3");
  spec.tokens_per_worker = 12;
  assert_int_equal(cv_gold_check_new(&gold, &spec, NULL), CV_OK);
  spec.repeat = true;
  refused(&gold, &spec, "expected privacy.repeat: false");
  gold.items = 0;
  assert_int_equal(cv_gold_check_new(&gold, &spec, NULL), CV_OK);
}

static void what_is_stored_is_read_again_and_nothing_else(void **state) {
  struct cv_gold gold = make_gold(), back;
  struct cv_buf bytes = {0};
  cv_gold_encode(&gold, &bytes);
  struct cv_reader in = cv_reader_over(bytes.data, bytes.len);
  assert_int_equal(cv_gold_decode(&in, &back), CV_OK);
  assert_true(cv_reader_done(&in));
  assert_int_equal(back.items, 2);
  assert_int_equal(back.item[1].item, 4);
  assert_int_equal(back.item[0].answer, CV_GRID);
  assert_int_equal(back.tolerance, gold.tolerance);
  assert_int_equal(back.error_micro, gold.error_micro);
  assert_int_equal(back.level_micro, gold.level_micro);
  assert_int_equal(back.share_micro, gold.share_micro);
  assert_int_equal(back.epsilon_micro, gold.epsilon_micro);
  cv_gold_fini(&back);
  size_t before = bytes.len - 4; /* rows of before neutral tokens were counted end here */
  for (size_t n = 0; n < bytes.len; n++) {
    in = cv_reader_over(bytes.data, n);
    assert_int_equal(cv_gold_decode(&in, &back), n == before ? CV_OK : CV_ERR_FORMAT);
    if (n == before) {
      assert_int_equal(back.epsilon_micro, 0);
      cv_gold_fini(&back);
    }
  }
  cv_buf_fini(&bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(honest_workers_are_rarely_found_however_often_they_are_tested),
      cmocka_unit_test(workers_who_answer_wrong_are_found),
      cmocka_unit_test(a_score_beyond_the_tolerance_is_wrong),
      cmocka_unit_test(a_flipped_bit_of_an_honest_worker_is_allowed_for),
      cmocka_unit_test(so_many_assignments_are_about_gold_items_on_average),
      cmocka_unit_test(a_neutral_token_is_that_of_one_half),
      cmocka_unit_test(a_campaign_that_cannot_have_gold_items_is_refused),
      cmocka_unit_test(a_new_campaign_asks_enough_of_a_worker_to_find_it),
      cmocka_unit_test(what_gets_a_worker_enough_gold_items_is_said),
      cmocka_unit_test(what_is_stored_is_read_again_and_nothing_else),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
