/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/spec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *names[3] = {"Roma", "Golden Wok", "caf\xc3\xa9"};

static uint64_t costs[3] = {1500000, 1, CV_COST_MAX_MICRO}, workers[3] = {17, 1, UINT64_C(1) << 40};
static struct cv_edge edges[2] = {{0, 1}, {0, 2}};

static struct cv_spec sample(void) {
  struct cv_spec spec = {.name = "demo",
                         .arms = 3,
                         .names = names,
                         .policy = {.name = "ppar"},
                         .mechanism = {.name = "hybrid"},
                         .privatizer = {.name = "none"},
                         .epsilon_micro = 250000,
                         .tokens_per_worker = 2,
                         .thirdparty_trusted = true,
                         .tokens = 5000000,
                         .deadline_ms = 3600000,
                         .idle_ms = 30000,
                         .cost_micro = costs,
                         .worker = workers,
                         .budget_micro = 10000000,
                         .edges = 2,
                         .edge = edges,
                         .scale = {.low = -0.5, .high = 5}};
  assert_int_equal(cv_params_set_number(&spec.policy.params, "alpha", 0.1), CV_OK);
  assert_int_equal(cv_params_set_text(&spec.policy.params, "radius", "sound"), CV_OK);
  assert_int_equal(cv_params_set_number(&spec.privatizer.params, "epsilon", 1.5), CV_OK);
  return spec;
}

static void assert_same_bytes(const struct cv_spec *a, const struct cv_spec *b) {
  struct cv_buf first = {0}, second = {0};
  cv_spec_encode(a, &first);
  cv_spec_encode(b, &second);
  assert_int_equal(first.len, second.len);
  assert_memory_equal(first.data, second.data, first.len);
  cv_buf_fini(&first);
  cv_buf_fini(&second);
}

static void every_field_is_stored(void **state) {
  struct cv_spec spec = sample(), back;
  struct cv_buf bytes = {0};
  cv_spec_encode(&spec, &bytes);
  struct cv_reader reader = cv_reader_over(bytes.data, bytes.len);
  assert_int_equal(cv_spec_decode(&reader, &back), CV_OK);
  assert_true(cv_reader_done(&reader));
  assert_string_equal(back.name, "demo");
  assert_int_equal(back.arms, 3);
  for (uint32_t i = 0; i < 3; i++) {
    assert_string_equal(back.names[i], names[i]);
  }
  assert_string_equal(back.policy.name, "ppar");
  assert_int_equal(back.policy.params.count, 2);
  assert_true(cv_params_number(&back.policy.params, "alpha") == 0.1);
  assert_string_equal(cv_params_text(&back.policy.params, "radius"), "sound");
  assert_string_equal(back.mechanism.name, "hybrid");
  assert_int_equal(back.mechanism.params.count, 0);
  assert_string_equal(back.privatizer.name, "none");
  assert_true(cv_params_number(&back.privatizer.params, "epsilon") == 1.5);
  assert_int_equal(back.epsilon_micro, 250000);
  assert_int_equal(back.tokens_per_worker, 2);
  assert_true(back.thirdparty_trusted);
  assert_int_equal(back.tokens, 5000000);
  assert_int_equal(back.deadline_ms, 3600000);
  assert_int_equal(back.idle_ms, 30000);
  assert_memory_equal(back.cost_micro, costs, sizeof(costs));
  assert_memory_equal(back.worker, workers, sizeof(workers));
  assert_int_equal(back.budget_micro, 10000000);
  assert_int_equal(back.edges, 2);
  assert_memory_equal(back.edge, edges, sizeof(edges));
  assert_true(back.scale.low == -0.5 && back.scale.high == 5);
  assert_same_bytes(&spec, &back);
  cv_spec_fini(&back);
  cv_buf_fini(&bytes);
}

static struct cv_spec sample_of_pairs(void) {
  struct cv_spec spec = sample();
  spec.cost_micro = spec.worker = NULL;
  spec.budget_micro = spec.edges = 0;
  spec.edge = NULL;
  spec.pairs = true;
  return spec;
}

static void a_spec_of_pairs_is_stored(void **state) {
  struct cv_spec spec = sample_of_pairs(), back;
  struct cv_buf bytes = {0};
  cv_spec_encode(&spec, &bytes);
  struct cv_reader reader = cv_reader_over(bytes.data, bytes.len);
  assert_int_equal(cv_spec_decode(&reader, &back), CV_OK);
  assert_true(back.pairs);
  assert_same_bytes(&spec, &back);
  cv_spec_fini(&back);
  cv_buf_fini(&bytes);
}

/* Stored campaigns, and the digests that name them, stay what they were; two brokers have a form of their own. */
static void two_brokers_are_stored_in_a_form_of_their_own(void **state) {
  struct cv_spec spec = sample_of_pairs(), back;
  struct cv_buf one = {0}, two = {0};
  cv_spec_encode(&spec, &one);
  assert_int_equal(one.data[0], 2);
  spec.brokers = 2;
  spec.score_bits = 1;
  cv_spec_encode(&spec, &two);
  assert_int_equal(two.data[0], 3);
  /* The rest is as before, and the new fields are at the end. */
  static const uint8_t end[] = {2, 0, 0, 0, 1, 0, 0, 0};
  assert_int_equal(two.len, one.len + sizeof(end));
  assert_memory_equal(two.data + 1, one.data + 1, one.len - 1);
  assert_memory_equal(two.data + one.len, end, sizeof(end));
  struct cv_reader reader = cv_reader_over(two.data, two.len);
  assert_int_equal(cv_spec_decode(&reader, &back), CV_OK);
  assert_true(cv_reader_done(&reader));
  assert_int_equal(back.brokers, 2);
  assert_int_equal(back.score_bits, 1);
  cv_spec_fini(&back);
  two.data[one.len] = 0; /* one spec has one form */
  reader = cv_reader_over(two.data, two.len);
  assert_int_equal(cv_spec_decode(&reader, &back), CV_ERR_FORMAT);
  cv_buf_fini(&one);
  cv_buf_fini(&two);
}

/* Pairs with anything else that gives a token another meaning. */
static void pairs_go_with_nothing_else(void **state) {
  struct cv_why why;
  struct cv_spec spec = sample_of_pairs();
  assert_int_equal(cv_spec_check(&spec, &why), CV_OK);
  spec.edges = 2;
  spec.edge = edges;
  assert_int_equal(cv_spec_check(&spec, &why), CV_ERR_INVALID);
  assert_non_null(strstr(why.text, "a campaign of pairs has a feedback graph; expected none"));
  spec = sample_of_pairs();
  spec.cost_micro = costs;
  spec.budget_micro = 1;
  assert_int_equal(cv_spec_check(&spec, &why), CV_ERR_INVALID);
  assert_non_null(strstr(why.text, "a campaign of pairs hires workers; expected no costs"));
  spec = sample_of_pairs();
  spec.arms = 1;
  assert_int_equal(cv_spec_check(&spec, &why), CV_ERR_INVALID);
  assert_string_equal(why.text, "a campaign of pairs has 1 arm; expected at least 2");
}

static void a_cut_spec_is_refused(void **state) {
  struct cv_spec spec = sample();
  struct cv_buf bytes = {0};
  cv_spec_encode(&spec, &bytes);
  for (size_t n = 0; n < bytes.len; n++) {
    struct cv_spec untouched = {.tokens = 42};
    uint8_t *copy = malloc(n + 1);
    assert_non_null(copy);
    memcpy(copy, bytes.data, n);
    struct cv_reader reader = cv_reader_over(copy, n);
    assert_int_not_equal(cv_spec_decode(&reader, &untouched), CV_OK);
    assert_int_equal(untouched.tokens, 42);
    assert_null(untouched.names);
    free(copy);
  }
  cv_buf_fini(&bytes);
}

/* An accepted spec is within its bounds, whatever the bytes. */
static void a_damaged_spec_stays_in_bounds(void **state) {
  struct cv_spec spec = sample();
  struct cv_buf bytes = {0};
  cv_spec_encode(&spec, &bytes);
  for (size_t i = 0; i < bytes.len; i++) {
    uint8_t was = bytes.data[i];
    for (unsigned value = 0; value < 256; value++) {
      bytes.data[i] = (uint8_t)value;
      struct cv_reader reader = cv_reader_over(bytes.data, bytes.len);
      struct cv_spec back;
      if (cv_spec_decode(&reader, &back) == CV_OK) {
        assert_in_range(back.arms, 0, CV_ARMS_MAX);
        assert_true(strnlen(back.name, CV_NAME_BYTES) < CV_NAME_BYTES);
        assert_in_range(back.policy.params.count, 0, CV_PARAMS_MAX);
        cv_spec_fini(&back);
      }
    }
    bytes.data[i] = was;
  }
  bytes.data[0] = 99;
  struct cv_reader reader = cv_reader_over(bytes.data, bytes.len);
  assert_int_equal(cv_spec_decode(&reader, &spec), CV_ERR_VERSION);
  cv_buf_fini(&bytes);
}

static void a_copy_is_its_own(void **state) {
  struct cv_spec spec = sample(), copy;
  assert_int_equal(cv_spec_copy(&spec, &copy), CV_OK);
  assert_same_bytes(&spec, &copy);
  assert_ptr_not_equal(copy.names, spec.names);
  cv_spec_fini(&copy);
  assert_null(copy.names);
  assert_null(copy.edge);
  spec.names = NULL;
  spec.edge = NULL;
  spec.edges = 0;
  assert_int_equal(cv_spec_copy(&spec, &copy), CV_OK);
  assert_null(copy.names);
  assert_null(copy.edge);
  assert_ptr_not_equal(copy.worker, spec.worker);
  cv_spec_fini(&copy);
  cv_spec_fini(NULL);
}

static void assert_bad(const struct cv_spec *spec, const char *message) {
  struct cv_why why = {0};
  assert_int_equal(cv_spec_check(spec, &why), CV_ERR_INVALID);
  assert_string_equal(why.text, message);
}

static void more_questions_than_there_are_is_named(void **state) {
  struct cv_why why = {0};
  struct cv_spec spec = {.arms = 3, .tokens_per_worker = 4};
  assert_int_equal(cv_spec_check_questions(&spec, 0, &why), CV_ERR_INVALID);
  assert_string_equal(why.text,
                      "tokens_per_worker is 4, but each of 3 items is asked of a worker once; expected at most 3, or "
                      "repeat: true if a worker's scores are drawn afresh each time");
  spec.tokens_per_worker = 6;
  /* No campaign with gold items repeats a question. */
  assert_int_equal(cv_spec_check_questions(&spec, 2, &why), CV_ERR_INVALID);
  assert_string_equal(why.text,
                      "tokens_per_worker is 6, but each of 5 items is asked of a worker once; expected at most 5");
  spec.tokens_per_worker = 5;
  assert_int_equal(cv_spec_check_questions(&spec, 2, &why), CV_OK);
}

static void a_spec_that_makes_no_sense_is_named(void **state) {
  struct cv_spec spec = sample();
  assert_int_equal(cv_spec_check(&spec, NULL), CV_OK);
  spec.name[0] = '\n';
  assert_bad(&spec, "the campaign's name is empty, too long or not printable UTF-8");
  spec = sample();
  spec.arms = 0;
  assert_bad(&spec, "0 arms; expected 1 to 131072");
  spec.arms = CV_ARMS_MAX + 1;
  assert_bad(&spec, "131073 arms; expected 1 to 131072");
  spec = sample();
  const char *bad_names[3] = {"Roma", "", "x"};
  spec.names = bad_names;
  assert_bad(&spec, "the name of arm 2 is empty, too long or not printable UTF-8");
  spec = sample();
  spec.epsilon_micro = 0;
  assert_bad(&spec, "epsilon is 0; expected more than 0 with mechanism hybrid");
  (void)snprintf(spec.mechanism.name, sizeof(spec.mechanism.name), "none");
  assert_int_equal(cv_spec_check(&spec, NULL), CV_OK);
  spec.tokens_per_worker = 0;
  assert_bad(&spec, "tokens_per_worker is 0; expected at least 1");
  spec.tokens_per_worker = 1;
  spec.tokens = 0;
  assert_bad(&spec, "the limit of tokens is 0; expected at least 1");
  spec.tokens = 1;
  spec.scale = (struct cv_scale){.low = 5, .high = 1};
  assert_bad(&spec, "the scale is [5, 1]; expected two numbers, the lower one first");
  spec.scale = (struct cv_scale){.low = 3, .high = 3};
  assert_bad(&spec, "the scale is [3, 3]; expected two numbers, the lower one first");
  spec.scale = (struct cv_scale){.low = 0, .high = INFINITY};
  assert_bad(&spec, "the scale is [0, inf]; expected two numbers, the lower one first");
}

static void workers_without_costs_or_twice_are_named(void **state) {
  struct cv_spec spec = sample();
  spec.cost_micro = NULL;
  assert_bad(&spec, "workers or a budget without costs; expected all three or none");
  spec.worker = NULL;
  assert_bad(&spec, "workers or a budget without costs; expected all three or none");
  spec.budget_micro = 0;
  assert_int_equal(cv_spec_check(&spec, NULL), CV_OK);
  spec = sample();
  spec.worker = NULL; /* as a third-party receives it */
  assert_int_equal(cv_spec_check(&spec, NULL), CV_OK);
  spec.budget_micro = 0;
  assert_bad(&spec, "the budget is 0; expected more than 0 and at most 1e+12 where workers have costs");
  spec.budget_micro = CV_BUDGET_MAX_MICRO + 1;
  assert_bad(&spec, "the budget is 1e+12; expected more than 0 and at most 1e+12 where workers have costs");
  spec = sample();
  uint64_t bad_costs[3] = {1, 0, 1}, bad_workers[3] = {5, 9, 5};
  spec.cost_micro = bad_costs;
  assert_bad(&spec, "the cost of arm 2 is 0; expected more than 0 and at most 1e+06");
  spec = sample();
  spec.worker = bad_workers;
  assert_bad(&spec, "worker 5 is listed twice; expected each worker once");
  bad_workers[1] = 0;
  assert_bad(&spec, "a worker has the id 0; expected 1 and up");
}

static void two_brokers_split_one_number(void **state) {
  struct cv_spec spec = sample();
  spec.edges = 0;
  spec.edge = NULL;
  spec.brokers = 2;
  spec.score_bits = 15;
  assert_int_equal(cv_spec_check(&spec, NULL), CV_OK);
  spec.score_bits = 1;
  assert_int_equal(cv_spec_check(&spec, NULL), CV_OK);
  spec.score_bits = 0;
  assert_bad(&spec, "score_bits is 0 with two brokers; expected 1 or 15");
  spec.score_bits = 14;
  assert_bad(&spec, "score_bits is 14 with two brokers; expected 1 or 15");
  spec.brokers = 0;
  assert_bad(&spec, "score_bits is 14 with one broker; expected 0");
  spec.brokers = 1;
  assert_bad(&spec, "brokers is 1; expected 2, or 0 for one broker");
  spec.brokers = 3;
  assert_bad(&spec, "brokers is 3; expected 2, or 0 for one broker");
  spec = sample();
  spec.brokers = 2;
  spec.score_bits = 15;
  assert_bad(&spec, "two brokers with a feedback graph; expected no graph: a proof is about one score");
  spec = sample_of_pairs();
  spec.brokers = 2;
  spec.score_bits = 15;
  assert_bad(&spec, "score_bits is 15, but each token is one bit (pairs); expected 1");
}

static void set_name(struct cv_choice *choice, const char *name) {
  (void)snprintf(choice->name, sizeof(choice->name), "%s", name);
}

static void two_brokers_need_noise_and_tokens_that_a_proof_covers(void **state) {
  static const char expected[] =
      "; expected one whose noise protects every token: hybrid or binary or binary-honaker or kary or segments or "
      "doubling or batch or per-item or kary-blocks";
  char message[256];
  struct cv_spec spec = sample_of_pairs();
  spec.pairs = false;
  spec.brokers = 2;
  spec.score_bits = 15;
  for (size_t i = 0; i < 2; i++) {
    const char *unsound = i == 0 ? "none" : "hybrid-printed";
    set_name(&spec.mechanism, unsound);
    (void)snprintf(message, sizeof(message), "mechanism %s with two brokers%s", unsound, expected);
    assert_bad(&spec, message);
  }
  set_name(&spec.mechanism, "segments");
  set_name(&spec.privatizer, "laplace");
  assert_bad(&spec, "privatizer laplace with two brokers; expected one whose tokens lie from 0 to 1");
  set_name(&spec.privatizer, "randomized-response");
  assert_bad(&spec, "score_bits is 15, but each token is one bit (randomized-response); expected 1");
  spec.score_bits = 1;
  assert_int_equal(cv_spec_check(&spec, NULL), CV_OK);
}

static void edges_are_in_order_and_between_arms(void **state) {
  struct cv_spec spec = sample();
  static const struct {
    struct cv_edge edge[2];
    const char *message;
  } cases[] = {
      {{{1, 0}, {1, 2}}, "edge 1-0; expected two arms below 3, the lower one first"},
      {{{0, 0}, {1, 2}}, "edge 0-0; expected two arms below 3, the lower one first"},
      {{{0, 1}, {1, 3}}, "edge 1-3; expected two arms below 3, the lower one first"},
      {{{0, 1}, {0, 1}}, "edge 0-1 after 0-1; expected each once, in ascending order"},
      {{{1, 2}, {0, 2}}, "edge 0-2 after 1-2; expected each once, in ascending order"},
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct cv_edge edge[2];
    memcpy(edge, cases[i].edge, sizeof(edge));
    spec.edge = edge;
    assert_bad(&spec, cases[i].message);
  }
  spec.edge = NULL;
  assert_bad(&spec, "2 edges; expected at most 65536");
}

static void items_have_longer_names(void **state) {
  char longest[CV_ITEM_BYTES + 1] = "";
  memset(longest, 'n', CV_ITEM_BYTES);
  assert_false(cv_name_is_item(longest));
  longest[CV_ITEM_BYTES - 1] = '\0';
  assert_true(cv_name_is_item(longest));
  assert_int_equal(strlen(longest), 255);
  memcpy(longest + 253, "\xc3\xa9", 2);
  assert_true(cv_name_is_item(longest));
  longest[254] = '\0'; /* cut inside its last character */
  assert_false(cv_name_is_item(longest));
}

/* One block that free() releases, in the order given, with room for the empty text. */
static void names_are_collected(void **state) {
  struct cv_names all = {0};
  const char **list, **copy;
  cv_names_add(&all, "Roma");
  cv_names_add(&all, "");
  cv_names_add(&all, "caf\xc3\xa9");
  assert_int_equal(all.count, 3);
  assert_int_equal(cv_names_take(&all, &list), CV_OK);
  assert_int_equal(all.count, 0);
  assert_int_equal(cv_names_copy(list, 3, &copy), CV_OK);
  free(list);
  assert_string_equal(copy[0], "Roma");
  assert_string_equal(copy[1], "");
  assert_string_equal(copy[2], "caf\xc3\xa9");
  free(copy);
  assert_int_equal(cv_names_copy(NULL, 3, &copy), CV_OK);
  assert_null(copy);
}

static void names_are_printable(void **state) {
  char longest[CV_NAME_BYTES + 1];
  memset(longest, 'n', sizeof(longest));
  longest[CV_NAME_BYTES] = '\0';
  assert_false(cv_name_is_valid(longest));
  longest[CV_NAME_BYTES - 1] = '\0';
  assert_true(cv_name_is_valid(longest));
  static const char *const good[] = {"a", "two words", "caf\xc3\xa9", "\xe5\xaf\xbf\xe5\x8f\xb8", "\xf0\x9f\x8d\x95",
                                     "~"};
  static const char *const bad[] = {"", "a\nb", "\t", "\x1b[31m", "\x7f", "\xc3", "\xa9", "\xc2\x80", "\xff\xfe"};
  for (size_t i = 0; i < CV_COUNT(good); i++) {
    assert_true(cv_name_is_valid(good[i]));
  }
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    assert_false(cv_name_is_valid(bad[i]));
    assert_false(cv_name_is_item(bad[i]));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_field_is_stored),
      cmocka_unit_test(a_spec_of_pairs_is_stored),
      cmocka_unit_test(two_brokers_are_stored_in_a_form_of_their_own),
      cmocka_unit_test(two_brokers_split_one_number),
      cmocka_unit_test(two_brokers_need_noise_and_tokens_that_a_proof_covers),
      cmocka_unit_test(pairs_go_with_nothing_else),
      cmocka_unit_test(a_cut_spec_is_refused),
      cmocka_unit_test(a_damaged_spec_stays_in_bounds),
      cmocka_unit_test(a_copy_is_its_own),
      cmocka_unit_test(a_spec_that_makes_no_sense_is_named),
      cmocka_unit_test(more_questions_than_there_are_is_named),
      cmocka_unit_test(workers_without_costs_or_twice_are_named),
      cmocka_unit_test(edges_are_in_order_and_between_arms),
      cmocka_unit_test(names_are_printable),
      cmocka_unit_test(items_have_longer_names),
      cmocka_unit_test(names_are_collected),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
