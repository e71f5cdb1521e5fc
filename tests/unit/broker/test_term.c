/* SPDX-License-Identifier: Apache-2.0 */
/* A broker that shares its database finds out from a peer that another one has taken over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* The above before cmocka.h. */
#include <cmocka.h>

#include "broker/campaign.h"
#include "broker/requester.h"
#include "tests/unit/broker/world.h"

static void begin(struct world *world, struct token *ret) {
  world_make(world);
  world_begin(world, 1);
  assert_int_equal(world->unacked_count, 1);
  *ret = world->unacked[0];
  world->unacked_count = 0;
}

/* The same ticket of another campaign or plan, as a broker would have made it that goes on with this database. */
static struct token ticket_of(const struct world *world, const struct token *token, uint32_t campaign, uint32_t plan) {
  const struct cv_tagger tagger = {.tag = tag, .data = world->mac};
  struct token later = *token;
  struct cv_ticket ticket;
  assert_int_equal(cv_ticket_open(token->ticket, &tagger, &ticket), CV_OK);
  ticket.campaign += campaign;
  ticket.plan += plan;
  assert_int_equal(cv_ticket_seal(&ticket, &tagger, later.ticket), CV_OK);
  return later;
}

/* A broker alone with its database answers; one that shares it is told by such a ticket that its term is over. */
static void test_a_ticket_of_a_later_term_is_not_answered(void **state) {
  for (uint32_t i = 0; i < 2; i++) {
    struct world world;
    struct token token;
    begin(&world, &token);
    struct token later = ticket_of(&world, &token, i, 1 - i);
    assert_int_equal(world_verdict_of(&world, &later, 1), i == 0 ? CV_VERDICT_EXPIRED : CV_VERDICT_REFUSED);
    assert_false(cv_broker_is_overtaken(world.core));
    world.core->config.term = 3;
    assert_int_equal(world_verdict_of(&world, &token, 1), CV_VERDICT_ACCEPTED);
    assert_false(cv_broker_is_overtaken(world.core));
    assert_int_equal(world_verdict_of(&world, &later, 1), CV_VERDICT_NONE);
    assert_true(cv_broker_is_overtaken(world.core));
    world_end(&world);
  }
}

/* A world of which nothing is left to store. */
static void begin_in_term(struct world *world, struct token *ret, uint64_t term) {
  begin(world, ret);
  world->core->config.term = term;
  (void)turn(world, false);
  assert_false(turn(world, false));
}

/* Answers that a later term may contradict leave with a commit, which fails if the term is over. */
static void test_an_answer_to_a_requester_leaves_with_a_commit(void **state) {
  static const struct cv_order_frame asked[] = {{.kind = CV_ORDER_CANCEL, .as.campaign = 99},
                                                {.kind = CV_ORDER_PURGE, .as.campaign = 99},
                                                {.kind = CV_ORDER_STATUS}};
  for (uint64_t term = 0; term <= 3; term += 3) {
    struct world world;
    struct token token;
    begin_in_term(&world, &token, term);
    for (size_t i = 0; i < CV_COUNT(asked); i++) {
      ask(&world, &asked[i]);
      assert_true(turn(&world, false) == (term > 0));
      assert_int_equal(world.order->requester->order.kind,
                       asked[i].kind == CV_ORDER_STATUS ? CV_ORDER_STATUS_ANSWER : CV_ORDER_ERROR);
      if (asked[i].kind == CV_ORDER_STATUS) {
        assert_int_equal(world.order->requester->order.as.status.term, term);
      }
      assert_false(turn(&world, false));
    }
    world_end(&world);
  }
}

static void test_a_full_table_is_answered_with_a_commit(void **state) {
  for (uint64_t term = 0; term <= 3; term += 3) {
    struct world world;
    struct token token;
    begin_in_term(&world, &token, term);
    world.core->campaigns->payers.most = 0;
    uint64_t commits = world.commits;
    assert_int_equal(world_verdict_of(&world, &token, 1), CV_VERDICT_EXPIRED);
    assert_int_equal(world.commits, commits + (term > 0));
    world_end(&world);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_ticket_of_a_later_term_is_not_answered),
      cmocka_unit_test(test_an_answer_to_a_requester_leaves_with_a_commit),
      cmocka_unit_test(test_a_full_table_is_answered_with_a_commit),
  };
  return cmocka_run_group_tests_name("term", tests, NULL, NULL);
}
