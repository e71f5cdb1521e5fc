/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks, tickets, the gate and the anchor. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <fcntl.h>
#include <unistd.h>

#include "broker/both/anchor.h"
#include "broker/both/gate.h"
#include "broker/offers.h"
#include "broker/ticket.h"
#include "common/base/chunks.h"
#include "common/base/rng.h"
#include "common/base/split.h"
#include "common/crypto/crypto.h"
#include "tests/support/folder.h"

/* ---- chunks ---- */

static enum cv_err set(struct cv_chunks *chunks, uint64_t index) {
  struct cv_chunk *chunk = NULL;
  enum cv_err err = cv_chunks_set(chunks, index, &chunk);
  assert_true((chunk != NULL) == (err == CV_OK));
  return err;
}

static void test_bits_are_independent(void **state) {
  struct cv_chunks chunks;
  const uint64_t bits[] = {0, 1, 7, 8, 32767, 32768, UINT64_C(1) << 40, (UINT64_C(1) << 48) * 65535};
  cv_chunks_init(&chunks, 100);
  for (size_t i = 0; i < CV_COUNT(bits); i++) {
    assert_false(cv_chunks_bit(&chunks, bits[i]));
    assert_int_equal(set(&chunks, bits[i]), CV_OK);
    for (size_t j = 0; j < CV_COUNT(bits); j++) {
      assert_int_equal(cv_chunks_bit(&chunks, bits[j]), j <= i);
    }
  }
  cv_chunks_fini(&chunks);
}

static void test_bits_are_counted_over_any_range(void **state) {
  struct cv_chunks chunks;
  const uint64_t end = 3 * CV_CHUNK_BITS;
  cv_chunks_init(&chunks, 100);
  for (uint64_t bit = 5; bit < end; bit += 7 + bit % 4001) {
    if (bit / CV_CHUNK_BITS != 1) {
      assert_int_equal(set(&chunks, bit), CV_OK);
    }
  }
  for (uint64_t from = 0; from < end; from += 997) {
    uint64_t expected = 0;
    for (uint64_t bit = from; bit < from + CV_CHUNK_BITS + 9; bit++) {
      expected += cv_chunks_bit(&chunks, bit);
    }
    assert_int_equal(cv_chunks_count(&chunks, from, CV_CHUNK_BITS + 9), expected);
  }
  assert_int_equal(cv_chunks_count(&chunks, 0, 0), 0);
  assert_int_equal(cv_chunks_count(&chunks, 5, 1), 1);
  assert_int_equal(cv_chunks_count(&chunks, 0, UINT64_C(1) << 36), cv_chunks_count(&chunks, 0, end));
  cv_chunks_fini(&chunks);
}

static void test_chunks_are_bounded(void **state) {
  struct cv_chunks chunks;
  cv_chunks_init(&chunks, 2);
  assert_int_equal(set(&chunks, 0), CV_OK);
  assert_int_equal(set(&chunks, CV_CHUNK_BITS), CV_OK);
  assert_int_equal(set(&chunks, 2 * CV_CHUNK_BITS), CV_ERR_LIMIT);
  assert_int_equal(set(&chunks, CV_CHUNK_BITS + 5), CV_OK);
  cv_chunks_drop(&chunks, cv_chunks_find(&chunks, 0));
  assert_false(cv_chunks_bit(&chunks, 0));
  assert_int_equal(set(&chunks, 2 * CV_CHUNK_BITS), CV_OK);
  cv_chunks_fini(&chunks);
}

/* Counting by words agrees with counting by bits, for every beginning and end of a range. */
static void test_free_bits_are_found_by_words(void **state) {
  struct cv_chunks used;
  struct cv_offers open = {0};
  const uint64_t base = 3 * CV_CHUNK_BITS - 700, last = base + 1500;
  cv_chunks_init(&used, 100);
  for (uint64_t bit = base; bit < last; bit++) {
    uint64_t kind = cv_mix64(bit / 90) % 4; /* runs: used, open, both kinds mixed, free */
    if (kind == 0 || (kind == 2 && bit % 2 == 0)) {
      assert_int_equal(set(&used, bit), CV_OK);
    } else if (kind == 1 || kind == 2) {
      assert_int_equal(cv_offers_set(&open, bit), CV_OK);
    }
  }
  for (uint64_t from = base; from < last; from += 7) {
    for (uint64_t n = 1; from + n <= last; n += 31) {
      uint64_t expected = 0, unset = from;
      while (expected < n && (cv_chunks_bit(&used, from + expected) || cv_mix64((from + expected) / 90) % 4 != 3)) {
        expected++;
      }
      while (unset < from + n && cv_chunks_bit(&used, unset)) {
        unset++;
      }
      bool used_up;
      assert_int_equal(cv_chunks_unset(&used, from, from + n), unset);
      assert_int_equal(cv_offers_find(&open, &used, from, n, &used_up), expected);
      assert_int_equal(used_up, unset == from + n);
    }
  }
  for (uint64_t bit = base; bit < last; bit++) {
    cv_offers_clear(&open, bit);
  }
  assert_int_equal(cv_offers_count(&open), 0);
  assert_null(open.all);
  cv_offers_fini(&open);
  cv_chunks_fini(&used);
}

/* A connection that holds as many chunks as are left makes no more; existing chunks can be used by all, and other
 * connections can make some. */
static void test_no_range_fills_a_table(void **state) {
  struct cv_chunks chunks;
  uint32_t held = 0, more = 0;
  cv_chunks_init(&chunks, 100);
  for (uint64_t i = 0; i < 300; i++) {
    uint64_t number = 1000 + cv_mix64(i) % 9000;
    bool there = cv_chunks_find(&chunks, number) != NULL;
    if (cv_chunks_has_room(&chunks, number, 1000, 9999)) {
      assert_int_equal(set(&chunks, number * CV_CHUNK_BITS), CV_OK);
      held += !there;
    }
  }
  assert_int_equal(held, 50);
  assert_true(cv_chunks_has_room(&chunks, chunks.number[7], 1000, 9999));
  for (uint64_t number = 0; number < 100; number++) {
    if (cv_chunks_has_room(&chunks, number, 0, 999)) {
      assert_int_equal(set(&chunks, number * CV_CHUNK_BITS), CV_OK);
      more++;
    }
  }
  assert_int_equal(more, 25);
  assert_true(cv_chunks_has_room(&chunks, 20000, 20000, UINT64_MAX - 1));
  cv_chunks_drop(&chunks, cv_chunks_find(&chunks, 3)); /* and there is space again */
  assert_true(cv_chunks_has_room(&chunks, 99, 0, 999));
  assert_int_equal(chunks.count, 74);
  for (uint32_t i = 1; i < chunks.count; i++) {
    assert_true(chunks.number[i - 1] < chunks.number[i]);
  }
  cv_chunks_fini(&chunks);
}

/* ---- tickets ---- */

static enum cv_err tag(void *data, const void *bytes, size_t bytes_n, uint8_t *to, size_t n) {
  return cv_mac_tag(data, bytes, bytes_n, to, n);
}

static void test_a_ticket_with_a_flipped_bit_is_none(void **state) {
  const struct cv_key key = {{1, 2, 3}};
  struct cv_mac *mac;
  assert_int_equal(cv_mac_new(&key, &mac), CV_OK);
  const struct cv_tagger tagger = {.tag = tag, .data = mac};
  const struct cv_ticket ticket = {.campaign = 7,
                                   .plan = 3,
                                   .item = 4095,
                                   .position = 123456,
                                   .worker = UINT64_C(0xfedcba987654),
                                   .slot = 65534,
                                   .lease = 8191,
                                   .expiry = UINT32_MAX};
  uint8_t bytes[CV_BROKER_TICKET_BYTES];
  struct cv_ticket back = {0};
  assert_int_equal(cv_ticket_seal(&ticket, &tagger, bytes), CV_OK);
  assert_int_equal(cv_ticket_open(bytes, &tagger, &back), CV_OK);
  assert_int_equal(back.campaign, ticket.campaign);
  assert_int_equal(back.plan, ticket.plan);
  assert_int_equal(back.item, ticket.item);
  assert_int_equal(back.position, ticket.position);
  assert_int_equal(back.worker, ticket.worker);
  assert_int_equal(back.slot, ticket.slot);
  assert_int_equal(back.lease, ticket.lease);
  assert_int_equal(back.expiry, ticket.expiry);
  for (size_t bit = 0; bit < 8 * sizeof(bytes); bit++) {
    bytes[bit / 8] ^= (uint8_t)(1 << (bit % 8));
    assert_int_equal(cv_ticket_open(bytes, &tagger, &back), CV_ERR_DENIED);
    bytes[bit / 8] ^= (uint8_t)(1 << (bit % 8));
  }
  cv_mac_free(mac);
}

/* ---- the gate ---- */

static const struct cv_gate_limits limits = {.epsilon_micro = 1000000, .arms = 10, .tokens = 1000};

static struct cv_spec good_spec(void) {
  return (struct cv_spec){.name = "campaign",
                          .arms = 10,
                          .policy.name = "ppar",
                          .mechanism.name = "hybrid",
                          .privatizer.name = "none",
                          .epsilon_micro = 1000000,
                          .tokens_per_worker = 1,
                          .tokens = 1000};
}

static void refused(const struct cv_spec *spec, enum cv_err err, const char *text) {
  struct cv_why why;
  assert_int_equal(cv_gate_spec(spec, &limits, &why), err);
  if (strstr(why.text, text) == NULL) {
    fail_msg("\"%s\" lacks \"%s\"", why.text, text);
  }
}

static void choose(struct cv_choice *choice, const char *name, double epsilon) {
  *choice = (struct cv_choice){0};
  (void)snprintf(choice->name, sizeof(choice->name), "%s", name);
  if (epsilon > 0) {
    assert_int_equal(cv_params_set_number(&choice->params, "epsilon", epsilon), CV_OK);
  }
}

static struct cv_privacy accepted(struct cv_spec *spec) {
  struct cv_privacy privacy = {0};
  struct cv_why why = {0};
  if (cv_gate_spec(spec, &limits, &why) != CV_OK || cv_privacy_init(spec, &privacy, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  return privacy;
}

static void test_the_gate_lets_only_private_sums_out(void **state) {
  struct cv_spec spec = good_spec();
  for (size_t i = 0; cv_mechanism_at(i) != NULL; i++) {
    choose(&spec.mechanism, cv_mechanism_at(i)->traits->name, 0);
    if (cv_mechanism_is_private(cv_mechanism_at(i))) {
      assert_false(accepted(&spec).is_exact);
    } else {
      refused(&spec, CV_ERR_DENIED,
              cv_mechanism_has_noise(cv_mechanism_at(i)) ? "runs with --unsafe-mechanisms" : "sends exact sums");
    }
  }
  choose(&spec.mechanism, "rot13", 0);
  refused(&spec, CV_ERR_NOT_FOUND, "unknown mechanism \"rot13\"");
  choose(&spec.mechanism, "hybrid", 0.5);
  refused(&spec, CV_ERR_INVALID, "mechanism hybrid: unknown key \"epsilon\"");
  choose(&spec.mechanism, "hybrid", 0);
  choose(&spec.privatizer, "rot13", 0);
  refused(&spec, CV_ERR_NOT_FOUND,
          "unknown privatizer \"rot13\"; expected one of none, randomized-response or laplace");
}

static void test_exact_sums_go_to_the_trusted_only(void **state) {
  struct cv_spec spec = good_spec();
  choose(&spec.mechanism, "none", 0);
  refused(&spec, CV_ERR_DENIED, "sends exact sums to the third-party; expected third_party: trusted");
  spec.thirdparty_trusted = true; /* says the requester */
  refused(&spec, CV_ERR_DENIED, "expected another pair, or a broker with limits.trusted_thirdparty");
  struct cv_gate_limits trusting = limits;
  struct cv_privacy privacy;
  trusting.trusted_thirdparty = true;
  assert_int_equal(cv_gate_spec(&spec, &trusting, NULL), CV_OK);
  assert_int_equal(cv_privacy_init(&spec, &privacy, NULL), CV_OK);
  assert_true(privacy.is_exact && cv_privacy_is_unprotected(&privacy));
  assert_true(cv_privacy_worker_micro(&privacy, &spec) == CV_UNPROTECTED_MICRO);
  spec.thirdparty_trusted = false;
  assert_int_equal(cv_gate_spec(&spec, &trusting, NULL), CV_ERR_DENIED); /* nor does the operator's setting alone */
  choose(&spec.privatizer, "randomized-response", 1);
  assert_false(accepted(&spec).is_exact);
}

static void test_an_unsound_mechanism_needs_an_unsafe_broker(void **state) {
  struct cv_gate_limits unsafe = limits;
  struct cv_spec spec = good_spec();
  unsafe.unsafe_mechanisms = true;
  choose(&spec.mechanism, "hybrid-printed", 0);
  struct cv_why why;
  /* A hundred releases cost item 1 six and a half times the declared epsilon: the gate compares that. */
  assert_int_equal(cv_params_set_number(&spec.policy.params, "tokens_per_round", 10), CV_OK);
  assert_int_equal(cv_gate_spec(&spec, &unsafe, &why), CV_ERR_DENIED);
  assert_non_null(strstr(why.text, "epsilon 6.500000 is over the broker's limit of 1.000000 (limits.epsilon)"));
  spec.epsilon_micro = 100000;
  struct cv_privacy privacy;
  assert_int_equal(cv_gate_spec(&spec, &unsafe, NULL), CV_OK);
  assert_int_equal(cv_privacy_init(&spec, &privacy, NULL), CV_OK);
  assert_int_equal(privacy.cost_micro, 650000);
  assert_int_equal(cv_privacy_spent_micro(&privacy, 64), 600000);
  choose(&spec.privatizer, "laplace", 0.3);
  choose(&spec.mechanism, "hybrid-printed", 0);
  assert_int_equal(cv_privacy_init(&spec, &privacy, NULL), CV_OK);
  assert_int_equal(privacy.cost_micro, 300000);
  choose(&spec.privatizer, "laplace", 1);
  refused(&spec, CV_ERR_DENIED, "mechanism hybrid-printed discloses more than its epsilon");
}

/* What a share cannot carry, noise that protects nobody, and sums that cannot be put together. */
static void test_what_two_brokers_cannot_do_is_refused(void **state) {
  struct cv_spec spec = good_spec();
  spec.brokers = 2;
  spec.score_bits = CV_SPLIT_SCORE;
  assert_true(accepted(&spec).law.shares);
  struct cv_gate_limits other = limits;
  struct cv_why why;
  other.alone = true;
  assert_int_equal(cv_gate_spec(&spec, &other, &why), CV_ERR_DENIED);
  assert_non_null(strstr(why.text, "this one has no co-broker"));
  other = limits;
  other.unsafe_mechanisms = other.trusted_thirdparty = spec.thirdparty_trusted = true;
  for (size_t i = 0; cv_mechanism_at(i) != NULL; i++) {
    const struct cv_mechanism_class *class = cv_mechanism_at(i);
    choose(&spec.mechanism, class->traits->name, 0);
    bool fits = cv_mechanism_is_private(class) && cv_mechanism_has_noise(class);
    struct cv_spec copy = spec;
    struct cv_privacy privacy;
    if (cv_privacy_init(&copy, &privacy, NULL) != CV_OK) {
      continue; /* for want of a parameter */
    }
    enum cv_err err = cv_gate_spec(&spec, &other, &why);
    assert_true(fits ? err == CV_OK : err != CV_OK && strstr(why.text, "with two brokers; expected one") != NULL);
  }
  choose(&spec.mechanism, "hybrid", 0);
  choose(&spec.privatizer, "laplace", 0.3);
  assert_int_not_equal(cv_gate_spec(&spec, &limits, &why), CV_OK);
  assert_non_null(strstr(why.text, "privatizer laplace with two brokers; expected"));
  choose(&spec.privatizer, "randomized-response", 0.3);
  spec.score_bits = CV_SPLIT_BIT;
  (void)accepted(&spec);
  struct cv_edge edge = {0, 1};
  spec.edge = &edge;
  spec.edges = 1;
  refused(&spec, CV_ERR_INVALID, "feedback graph");
}

/* Half of the field's integers must be far enough away, however small the epsilon is. */
static void test_noise_of_two_brokers_that_may_overflow_is_refused(void **state) {
  struct cv_spec spec = good_spec();
  struct cv_gate_limits large = limits;
  struct cv_why why;
  large.tokens = UINT64_C(1) << 42;
  spec.brokers = 2;
  spec.score_bits = CV_SPLIT_BIT;
  spec.tokens = (UINT64_C(1) << 42) - (UINT64_C(1) << 20);
  assert_int_equal(cv_gate_spec(&spec, &large, &why), CV_OK);
  spec.epsilon_micro = 1;
  assert_int_equal(cv_gate_spec(&spec, &large, &why), CV_ERR_DENIED);
  assert_non_null(strstr(why.text, "may overflow; expected less than 2^42"));
  spec.tokens = 1000000;
  assert_int_equal(cv_gate_spec(&spec, &large, &why), CV_OK); /* 2^20 times the noise of epsilon 1 */
}

/* Tokens that are private by themselves, in sums that are private: the smaller epsilon covers the output. */
static void test_two_guarantees_cost_the_smaller(void **state) {
  struct cv_spec spec = good_spec();
  choose(&spec.privatizer, "randomized-response", 0.25);
  struct cv_privacy privacy = accepted(&spec);
  assert_int_equal(privacy.cost_micro, 250000);
  assert_int_equal(cv_privacy_spent_micro(&privacy, 0), 0);
  assert_int_equal(cv_privacy_spent_micro(&privacy, 1), 250000);
  choose(&spec.privatizer, "laplace", 4);
  privacy = accepted(&spec);
  assert_int_equal(privacy.cost_micro, 1000000);
  assert_int_equal(cv_privacy_spent_micro(&privacy, 1), 500000);
  assert_int_equal(cv_privacy_spent_micro(&privacy, 4), 1000000);
  choose(&spec.mechanism, "none", 0);
  refused(&spec, CV_ERR_DENIED, "the privatizer's epsilon 4.000000 is over the broker's limit of 1.000000");
  choose(&spec.privatizer, "laplace", 0.5);
  privacy = accepted(&spec);
  assert_int_equal(privacy.cost_micro, 500000);
  assert_int_equal(cv_privacy_spent_micro(&privacy, 1), 500000);
}

/* Sets one more parameter of the privatizer. */
static void also(struct cv_spec *spec, const char *key, double number) {
  assert_int_equal(cv_params_set_number(&spec->privatizer.params, key, number), CV_OK);
}

static void test_the_operator_limits_delta(void **state) {
  static const char *const refusal = "the privatizer's delta 0.25 is over the broker's limit of 0 (limits.delta)";
  static const char *const mechanisms[] = {"none", "batch", "hybrid"};
  struct cv_gate_limits some = limits;
  for (size_t i = 0; i < CV_COUNT(mechanisms); i++) {
    for (int way = 0; way < 4; way++) {
      struct cv_spec spec = good_spec();
      spec.arms = 1;
      choose(&spec.mechanism, mechanisms[i], 0);
      choose(&spec.privatizer, "randomized-response", way < 2 ? 0.1 : 0);
      also(&spec, "delta", 0.25);
      if (way == 1) {
        assert_int_equal(cv_params_set_text(&spec.privatizer.params, "rule", "printed"), CV_OK);
      } else if (way > 1) {
        also(&spec, way == 2 ? "p00" : "p00.1", 0.6);
        also(&spec, way == 2 ? "p11" : "p11.1", 0.6);
      }
      refused(&spec, CV_ERR_DENIED, refusal);
      some.delta_pico = 249999999999;
      assert_int_equal(cv_gate_spec(&spec, &some, NULL), CV_ERR_DENIED);
      some.delta_pico = 250000000000;
      assert_int_equal(cv_gate_spec(&spec, &some, NULL), CV_OK);
    }
  }
}

/* Noise covers every token for certain, a privatizer with delta most of them: its epsilon does not bound the sum's. */
static void test_behind_a_mechanism_delta_does_not_make_a_token_cheaper(void **state) {
  struct cv_spec spec = good_spec();
  struct cv_privacy privacy;
  choose(&spec.mechanism, "batch", 0);
  choose(&spec.privatizer, "randomized-response", 0.1);
  also(&spec, "delta", 0.5);
  assert_int_equal(cv_privacy_init(&spec, &privacy, NULL), CV_OK);
  assert_int_equal(privacy.cost_micro, 1000000); /* without delta it is ln 3.21 */
  assert_int_equal(cv_privacy_delta_pico(&privacy), 0);
  spec.epsilon_micro = 2000000;
  assert_int_equal(cv_privacy_init(&spec, &privacy, NULL), CV_OK);
  assert_int_equal(privacy.cost_micro, privacy.local.pure_micro);
  assert_int_equal(cv_privacy_spent_micro(&privacy, 1), privacy.local.pure_micro);
  assert_true(privacy.cost_micro > 1166000 && privacy.cost_micro < 1167000);
  choose(&spec.mechanism, "none", 0);
  assert_int_equal(cv_privacy_init(&spec, &privacy, NULL), CV_OK);
  assert_int_equal(privacy.cost_micro, 100000);
  assert_int_equal(cv_privacy_delta_pico(&privacy), 500000000000);
}

/* What an accepted campaign has. */
static struct cv_privacy raised(struct cv_spec *spec, const struct cv_gate_limits *by) {
  struct cv_privacy privacy = {0};
  assert_int_equal(cv_gate_raise(spec, by, NULL), CV_OK);
  assert_int_equal(cv_privacy_init(spec, &privacy, NULL), CV_OK);
  return privacy;
}

static void test_small_epochs_are_for_tokens_that_are_protected(void **state) {
  struct cv_gate_limits strict = limits;
  strict.release_tokens = 50;
  static const struct {
    const char *privatizer;
    double epsilon;
    uint32_t least;
  } cases[] = {{"none", 0, 50}, {"randomized-response", 1, 1}, {"laplace", 1, 1}, {"laplace", 1.5, 50}};
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct cv_spec spec = good_spec();
    choose(&spec.privatizer, cases[i].privatizer, cases[i].epsilon);
    assert_int_equal(raised(&spec, &strict).least_tokens, cases[i].least);
  }
  struct cv_spec spec = good_spec();
  choose(&spec.privatizer, "randomized-response", 1);
  assert_int_equal(cv_params_set_number(&spec.privatizer.params, "delta", 1e-6), CV_OK);
  assert_int_equal(raised(&spec, &strict).least_tokens, 50);
}

/* Else a restart would permit releases of single tokens. */
static void test_a_stored_campaign_without_a_smallest_release_gets_that_of_today(void **state) {
  static const struct {
    const char *privatizer;
    double delta, own;
    uint32_t least;
  } cases[] = {{"none", 0, 0, 50},
               {"none", 0, 12, 12},
               {"randomized-response", 0, 0, 1},
               {"randomized-response", 1e-6, 0, 50},
               {"randomized-response", 1e-6, 13, 13}};
  struct cv_gate_limits today = limits;
  today.release_tokens = 50;
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct cv_spec spec = good_spec();
    struct cv_privacy privacy;
    choose(&spec.privatizer, cases[i].privatizer, strcmp(cases[i].privatizer, "none") == 0 ? 0 : 1);
    if (cases[i].delta > 0) {
      assert_int_equal(cv_params_set_number(&spec.privatizer.params, "delta", cases[i].delta), CV_OK);
    }
    if (cases[i].own > 0) {
      assert_int_equal(cv_params_set_number(&spec.policy.params, "release_tokens", cases[i].own), CV_OK);
    }
    assert_int_equal(cv_privacy_init(&spec, &privacy, NULL), CV_OK);
    cv_gate_keep_least(&spec, &today, &privacy);
    assert_int_equal(privacy.least_tokens, cases[i].least);
  }
}

static void test_a_horizon_comes_from_tokens_and_their_epochs(void **state) {
  struct cv_gate_limits strict = limits;
  strict.release_tokens = 30;
  struct cv_spec spec = good_spec();
  choose(&spec.mechanism, "binary", 0);
  assert_int_equal(raised(&spec, &strict).law.horizon, 33);
  assert_true(cv_params_number(&spec.mechanism.params, "horizon") == 33);
  choose(&spec.mechanism, "binary", 0);
  assert_int_equal(cv_params_set_number(&spec.policy.params, "tokens_per_round", 100), CV_OK);
  assert_int_equal(raised(&spec, &strict).law.horizon, 10);
  spec.tokens = 5;
  choose(&spec.mechanism, "binary", 0);
  assert_int_equal(raised(&spec, &strict).law.horizon, 1);
}

static void test_sums_fit_their_integers(void **state) {
  struct cv_gate_limits wide = limits;
  struct cv_spec spec = good_spec();
  struct cv_why why;
  wide.tokens = UINT64_MAX;
  spec.tokens = UINT64_C(1000000000000);
  assert_int_equal(cv_gate_spec(&spec, &wide, NULL), CV_OK);
  spec.tokens = UINT64_C(1) << 42;
  assert_int_equal(cv_gate_spec(&spec, &wide, &why), CV_ERR_DENIED);
  assert_non_null(strstr(why.text, "expected at most 4398046511103 tokens"));
  choose(&spec.privatizer, "laplace", 1e-6);
  spec.tokens = 109951;
  assert_int_equal(cv_gate_spec(&spec, &wide, NULL), CV_OK);
  spec.tokens = 109952;
  assert_int_equal(cv_gate_spec(&spec, &wide, &why), CV_ERR_DENIED);
}

static void test_the_gate_keeps_the_operators_limits(void **state) {
  struct cv_spec spec = good_spec();
  spec.epsilon_micro++;
  refused(&spec, CV_ERR_DENIED, "epsilon 1.000001 is over the broker's limit of 1.000000 (limits.epsilon)");
  spec.epsilon_micro = 0;
  refused(&spec, CV_ERR_INVALID, "epsilon is 0");
  spec = good_spec();
  spec.arms = 11;
  refused(&spec, CV_ERR_DENIED, "11 arms are over the broker's limit of 10 (limits.arms)");
  spec = good_spec();
  spec.tokens = 1001;
  refused(&spec, CV_ERR_DENIED, "1001 tokens is over the broker's limit of 1000");
  spec = good_spec();
  spec.tokens_per_worker = 65536;
  refused(&spec, CV_ERR_DENIED, "tokens_per_worker is 65536; expected at most 65535");
}

/* ---- the anchor ---- */

static void test_the_anchor_says_what_was_written(void **state) {
  struct folder folder;
  struct cv_anchor *anchor;
  struct cv_anchor_mark mark = {.database = {1, 0xab}, .commit = UINT64_MAX, .hash = {{0xff, 2}}};
  mark.totals = (struct cv_totals){.campaigns = 3, .releases = UINT64_MAX, .tokens = 0, .promised_micro = 5};
  struct cv_anchor_mark back = {0};
  bool exists;
  folder_make(&folder);
  const char *path = folder_file(&folder, "anchor");
  assert_int_equal(cv_anchor_open(path, &anchor, &exists, &back, NULL), CV_OK);
  assert_false(exists);
  assert_int_equal(cv_anchor_write(anchor, &mark, NULL), CV_OK);
  mark.commit = 17;
  assert_int_equal(cv_anchor_write(anchor, &mark, NULL), CV_OK);
  cv_anchor_close(anchor);
  assert_int_equal(cv_anchor_open(path, &anchor, &exists, &back, NULL), CV_OK);
  assert_true(exists);
  assert_int_equal(back.commit, 17);
  assert_memory_equal(back.database, mark.database, sizeof(mark.database));
  assert_memory_equal(&back.hash, &mark.hash, sizeof(mark.hash));
  assert_memory_equal(&back.totals, &mark.totals, sizeof(mark.totals));
  assert_int_equal(back.term, 0);
  /* Of a database that several brokers share. */
  mark.term = 9;
  mark.term_id[15] = 0xcd;
  assert_int_equal(cv_anchor_write(anchor, &mark, NULL), CV_OK);
  cv_anchor_close(anchor);
  assert_int_equal(cv_anchor_peek(path, &exists, &back, NULL), CV_OK);
  assert_int_equal(back.term, 9);
  assert_memory_equal(back.term_id, mark.term_id, sizeof(mark.term_id));
  assert_int_equal(back.commit, 17);
  assert_memory_equal(&back.totals, &mark.totals, sizeof(mark.totals));
  struct cv_why why;
  static const struct {
    char version;
    enum cv_err err;
    const char *line;
  } others[] = {
      {'3', CV_ERR_VERSION,
       "anchor: an anchor of version 3, of a Crowdveil before 0.3.0, whose files are not read; move the files in the "
       "state folder, the anchor and the seal key away together, and set up anew"},
      {'9', CV_ERR_VERSION, "anchor: an anchor of version 9, of a later release; expected version 5"},
      {'x', CV_ERR_DAMAGED, "not an anchor of a broker"},
  };
  for (size_t i = 0; i < CV_COUNT(others); i++) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &others[i].version, 1, sizeof("crowdveil-anchor ") - 1), 1);
    assert_int_equal(close(fd), 0);
    assert_int_equal(cv_anchor_peek(path, &exists, &back, &why), others[i].err);
    assert_non_null(strstr(why.text, others[i].line));
  }
  assert_int_equal(truncate(path, 100), 0);
  assert_int_equal(cv_anchor_open(path, &anchor, &exists, &back, &why), CV_ERR_DAMAGED);
  assert_non_null(strstr(why.text, "not an anchor of a broker"));
  folder_remove(&folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bits_are_independent),
      cmocka_unit_test(test_bits_are_counted_over_any_range),
      cmocka_unit_test(test_chunks_are_bounded),
      cmocka_unit_test(test_free_bits_are_found_by_words),
      cmocka_unit_test(test_no_range_fills_a_table),
      cmocka_unit_test(test_a_ticket_with_a_flipped_bit_is_none),
      cmocka_unit_test(test_the_gate_lets_only_private_sums_out),
      cmocka_unit_test(test_exact_sums_go_to_the_trusted_only),
      cmocka_unit_test(test_an_unsound_mechanism_needs_an_unsafe_broker),
      cmocka_unit_test(test_what_two_brokers_cannot_do_is_refused),
      cmocka_unit_test(test_noise_of_two_brokers_that_may_overflow_is_refused),
      cmocka_unit_test(test_two_guarantees_cost_the_smaller),
      cmocka_unit_test(test_the_operator_limits_delta),
      cmocka_unit_test(test_behind_a_mechanism_delta_does_not_make_a_token_cheaper),
      cmocka_unit_test(test_small_epochs_are_for_tokens_that_are_protected),
      cmocka_unit_test(test_a_stored_campaign_without_a_smallest_release_gets_that_of_today),
      cmocka_unit_test(test_a_horizon_comes_from_tokens_and_their_epochs),
      cmocka_unit_test(test_sums_fit_their_integers),
      cmocka_unit_test(test_the_gate_keeps_the_operators_limits),
      cmocka_unit_test(test_the_anchor_says_what_was_written),
  };
  return cmocka_run_group_tests_name("parts", tests, NULL, NULL);
}
