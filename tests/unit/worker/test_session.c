/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions with the co-broker: which terms and which brokers they are for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include "tests/support/duo.h"

static struct duo duo;
static struct cv_terms terms;
static struct cv_share_session told;

static struct cv_session *make(void) {
  struct cv_session *session;
  duo_init(&duo, CV_SPLIT_SCORE);
  terms = (struct cv_terms){.id = 3,
                            .name = "test",
                            .requester = "alice",
                            .privatizer = {.name = "randomized-response"},
                            .mechanism = {.name = "hybrid"},
                            .epsilon_micro = 250000,
                            .tokens_per_worker = 2,
                            .arms = 4,
                            .lease_ms = 5000,
                            .split = duo.split};
  assert_int_equal(cv_params_set_number(&terms.privatizer.params, "epsilon", 2), CV_OK);
  assert_int_equal(cv_params_set_text(&terms.privatizer.params, "rule", "optimal"), CV_OK);
  told = (struct cv_share_session){.terms = terms, .id = {1, 2, 3}};
  told.terms.lease_ms = 0;
  assert_int_equal(cv_session_new(&duo.ops, &terms, 10, &session, NULL), CV_OK);
  return session;
}

static void finish(struct cv_session *session) {
  cv_session_free(session);
  assert_int_equal(duo.open, 0);
}

static void test_a_session_is_asked_for_once_and_again_on_the_next_connection(void **state) {
  struct cv_session *session = make();
  assert_true(cv_session_asks(session, 5));
  assert_false(cv_session_asks(session, 5));
  assert_int_equal(cv_session_begin(session, &duo.keys, &told, NULL), CV_OK);
  assert_int_equal(session->state, CV_SESSION_STANDS);
  assert_memory_equal(session->id, told.id, sizeof(told.id));
  struct cv_digest context;
  cv_split_context(&terms.split, &duo.keys, terms.id, cv_sha256, &context);
  assert_memory_equal(&duo.context, &context, sizeof(context));
  assert_false(cv_session_asks(session, 1000));
  cv_session_end(session);
  assert_int_equal(duo.open, 0);
  assert_true(cv_session_asks(session, 5));
  assert_int_equal(cv_session_begin(session, &duo.keys, &told, NULL), CV_OK);
  assert_int_equal(session->counter, 0);
  finish(session);
}

static void test_what_was_not_asked_for_breaks_the_protocol(void **state) {
  struct cv_session *session = make();
  struct cv_why why;
  assert_int_equal(cv_session_begin(session, &duo.keys, &told, &why), CV_ERR_STATE);
  assert_string_equal(why.text, "the co-broker answers for campaign 3, which was not asked");
  assert_int_equal(cv_session_turn(session, 10, 0, &why), CV_ERR_STATE);
  assert_true(cv_session_asks(session, 0));
  assert_int_equal(cv_session_begin(session, &duo.keys, &told, NULL), CV_OK);
  /* a second session would have another key, whose counter began at 0 again */
  assert_int_equal(cv_session_begin(session, &duo.keys, &told, &why), CV_ERR_STATE);
  assert_int_equal(duo.open, 1);
  finish(session);
}

static void test_who_is_turned_away_asks_again_later(void **state) {
  struct cv_session *session = make();
  assert_true(cv_session_asks(session, 100));
  assert_int_equal(cv_session_turn(session, 50, 100, NULL), CV_OK);
  assert_false(cv_session_asks(session, 149));
  assert_true(cv_session_asks(session, 150));
  finish(session);
}

/* Each field of the terms, changed in one way at least. */
typedef void change_fn(struct cv_terms *terms);
static void change_id(struct cv_terms *at) {
  at->id++;
}
static void change_name(struct cv_terms *at) {
  at->name[0] = 'T';
}
static void change_requester(struct cv_terms *at) {
  at->requester[0] = 'A';
}
static void change_privatizer(struct cv_terms *at) {
  at->privatizer.name[0] = 'R';
}
static void change_epsilon_of_privatizer(struct cv_terms *at) {
  at->privatizer.params.item[0].number += 1e-9;
}
static void change_rule(struct cv_terms *at) {
  at->privatizer.params.item[1].text[0] = 'p';
}
static void change_count(struct cv_terms *at) {
  at->privatizer.params.count--;
}
static void change_key_of_param(struct cv_terms *at) {
  at->privatizer.params.item[0].key[0] = 'E';
}
static void change_mechanism(struct cv_terms *at) {
  at->mechanism.name[0] = 'H';
}
static void change_epsilon(struct cv_terms *at) {
  at->epsilon_micro++;
}
static void change_tokens(struct cv_terms *at) {
  at->tokens_per_worker++;
}
static void change_arms(struct cv_terms *at) {
  at->arms++;
}
static void change_pairs(struct cv_terms *at) {
  at->pairs = true;
}
static void change_scale(struct cv_terms *at) {
  at->scale = (struct cv_scale){.low = 1, .high = 5};
}
static void change_bits(struct cv_terms *at) {
  at->split.score_bits = CV_SPLIT_BIT;
}
static void change_database(struct cv_terms *at) {
  at->split.database[15]++;
}
static void change_spec(struct cv_terms *at) {
  at->split.spec.bytes[31]++;
}
static void change_key(struct cv_terms *at) {
  at->split.key.bytes[0]++;
}
static void drop_split(struct cv_terms *at) {
  at->split = (struct cv_split){0};
}

static const struct {
  change_fn *change;
  const char *what;
} changes[] = {{change_id, "campaign"},
               {change_name, "name"},
               {change_requester, "requester"},
               {change_privatizer, "privatizer"},
               {change_epsilon_of_privatizer, "privatizer"},
               {change_rule, "privatizer"},
               {change_count, "privatizer"},
               {change_key_of_param, "privatizer"},
               {change_mechanism, "mechanism"},
               {change_epsilon, "epsilon"},
               {change_tokens, "number of tokens per worker"},
               {change_arms, "number of arms"},
               {change_pairs, "kind of score"},
               {change_scale, "scale"},
               {change_bits, "kind of score"},
               {change_database, "database of the broker"},
               {change_spec, "spec"},
               {change_key, "verify key"},
               {drop_split, "kind of score"}};

static void test_brokers_that_disagree_get_no_session(void **state) {
  for (size_t i = 0; i < CV_COUNT(changes); i++) {
    struct cv_session *session = make();
    struct cv_why why;
    char line[200];
    changes[i].change(&told.terms);
    assert_true(cv_session_asks(session, 0));
    assert_int_equal(cv_session_begin(session, &duo.keys, &told, &why), CV_ERR_DENIED);
    (void)snprintf(line, sizeof(line), "broker and co-broker tell another %s; expected the same terms of both",
                   changes[i].what);
    assert_string_equal(why.text, line);
    assert_int_not_equal(session->state, CV_SESSION_STANDS);
    assert_int_equal(duo.open, 0);
    finish(session);
  }
}

static void test_a_broker_cannot_change_terms(void **state) {
  for (size_t i = 0; i < CV_COUNT(changes); i++) {
    struct cv_session *session = make();
    struct cv_terms later = terms;
    struct cv_why why;
    char line[200];
    later.lease_ms = 100;
    assert_int_equal(cv_session_check(session, &later, &duo.keys.broker, &why), CV_OK);
    changes[i].change(&later);
    assert_int_equal(cv_session_check(session, &later, &duo.keys.broker, &why), CV_ERR_DENIED);
    (void)snprintf(line, sizeof(line), "the broker tells another %s than before; expected terms that do not change",
                   changes[i].what);
    assert_string_equal(why.text, line);
    finish(session);
  }
}

/* Otherwise a score would be in shares for two pairs of brokers. */
static void test_brokers_stay_the_same_once_there_was_a_session(void **state) {
  struct cv_session *session = make();
  struct cv_digest other = {.bytes = {9}};
  struct cv_why why;
  assert_int_equal(cv_session_check(session, &terms, &other, &why), CV_OK); /* nothing was split yet */
  assert_true(cv_session_asks(session, 0));
  assert_int_equal(cv_session_begin(session, &duo.keys, &told, NULL), CV_OK);
  assert_int_equal(cv_session_check(session, &terms, &duo.keys.broker, &why), CV_OK);
  assert_int_equal(cv_session_check(session, &terms, &other, &why), CV_ERR_DENIED);
  assert_string_equal(why.text,
                      "the broker has another key than in the campaign's first session; expected the same "
                      "key until the campaign ends");
  cv_session_end(session);
  const struct cv_duo pairs[] = {{.broker = other, .cobroker = duo.keys.cobroker},
                                 {.broker = duo.keys.broker, .cobroker = other}};
  for (size_t i = 0; i < CV_COUNT(pairs); i++) {
    assert_true(cv_session_asks(session, 0));
    assert_int_equal(cv_session_begin(session, &pairs[i], &told, &why), CV_ERR_DENIED);
    assert_non_null(strstr(why.text, "another key"));
    assert_int_equal(duo.open, 0);
    cv_session_end(session);
  }
  finish(session);
}

static void test_a_connection_that_has_gone_has_no_key(void **state) {
  struct cv_session *session = make();
  struct cv_why why;
  duo.is_closed = true;
  assert_true(cv_session_asks(session, 0));
  assert_int_equal(cv_session_begin(session, &duo.keys, &told, &why), CV_ERR_CLOSED);
  assert_int_not_equal(session->state, CV_SESSION_STANDS);
  finish(session);
}

static void test_unknown_shares_are_refused(void **state) {
  static const uint32_t bits[] = {0, 2, 14, 16, UINT32_MAX};
  for (size_t i = 0; i < CV_COUNT(bits); i++) {
    struct cv_session *session;
    struct cv_why why;
    duo_init(&duo, bits[i]);
    terms = (struct cv_terms){.tokens_per_worker = 1, .split = duo.split};
    assert_int_equal(cv_session_new(&duo.ops, &terms, 1, &session, &why), CV_ERR_DENIED);
    assert_non_null(strstr(why.text, "expected 1 or 15"));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_session_is_asked_for_once_and_again_on_the_next_connection),
      cmocka_unit_test(test_what_was_not_asked_for_breaks_the_protocol),
      cmocka_unit_test(test_who_is_turned_away_asks_again_later),
      cmocka_unit_test(test_brokers_that_disagree_get_no_session),
      cmocka_unit_test(test_a_broker_cannot_change_terms),
      cmocka_unit_test(test_brokers_stay_the_same_once_there_was_a_session),
      cmocka_unit_test(test_a_connection_that_has_gone_has_no_key),
      cmocka_unit_test(test_unknown_shares_are_refused),
  };
  return cmocka_run_group_tests_name("session", tests, NULL, NULL);
}
