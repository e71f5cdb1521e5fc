/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* The above before cmocka.h. */
#include <cmocka.h>

#include "tests/unit/thirdparty/fake.h"

static struct world *connected(void) {
  struct world *w = world_new(NULL);
  world_connect(w);
  world_quiet(w);
  return w;
}

static void ranks_a_campaign_to_the_end(void **state) {
  struct world *w = connected();
  assert_int_equal(w->plans, 1);
  assert_int_equal(w->plan[0].wants, FAKE_ARMS);
  world_run(w);
  assert_int_equal(w->result, CV_END_COMPLETE);
  /* .82 and .79; .5 and .47; .2 and .15 */
  static const uint32_t classes[FAKE_ARMS] = {1, 3, 1, 2, 2, 3};
  for (uint32_t i = 0; i < FAKE_ARMS; i++) {
    assert_int_equal(w->standing[i].rank_class, classes[i]);
    assert_int_equal(w->standing[i].tokens, w->tokens[i]);
  }
  assert_int_equal(w->acked, w->releases);
  world_fini(w);
}

static void nothing_leaves_before_its_commit(void **state) {
  struct world *w = world_new(NULL);
  struct cv_thirdparty_batch batch;
  struct cv_thirdparty_out out;
  world_connect(w);
  assert_false(cv_thirdparty_next_out(w->thirdparty, &out));
  assert_int_equal(cv_thirdparty_flush(w->thirdparty, &batch), CV_OK);
  assert_non_null(batch.first);
  assert_true(batch.first->created && batch.first->has_state);
  assert_int_equal(batch.first->plans, 1);
  /* Until the commit has returned there is nothing to send, whatever else arrives. */
  assert_false(cv_thirdparty_next_out(w->thirdparty, &out));
  world_open(w);
  assert_false(cv_thirdparty_next_out(w->thirdparty, &out));
  cv_thirdparty_stored(w->thirdparty);
  assert_true(cv_thirdparty_next_out(w->thirdparty, &out));
  assert_true(out.frame->hello.present);
  assert_true(cv_thirdparty_next_out(w->thirdparty, &out));
  assert_int_equal(out.frame->opened, 1);
  assert_int_equal(out.frame->plans, 1);
  assert_false(cv_thirdparty_next_out(w->thirdparty, &out));
  cv_thirdparty_batch_fini(&batch);
  world_fini(w);
}

/* The broker disconnects while frames wait for their commit: no other connection gets them, and the next one gets
 * everything. */
static void what_waits_for_a_commit_goes_with_its_connection(void **state) {
  struct world *w = world_new(NULL);
  struct cv_thirdparty_batch batch;
  struct cv_thirdparty_out out;
  world_connect(w);
  world_open(w);
  assert_int_equal(cv_thirdparty_flush(w->thirdparty, &batch), CV_OK);
  assert_non_null(batch.first);
  cv_thirdparty_leave(w->thirdparty, w->conn);
  cv_thirdparty_stored(w->thirdparty);
  assert_false(cv_thirdparty_next_out(w->thirdparty, &out));
  cv_thirdparty_batch_fini(&batch);
  world_connect(w);
  world_run(w);
  assert_int_equal(w->result, CV_END_COMPLETE);
  world_fini(w);
}

static void release_decisions_state_and_plan_are_one_batch(void **state) {
  struct world *w = connected();
  for (uint32_t i = 0; i < FAKE_ARMS; i++) {
    world_release(w);
  }
  struct cv_thirdparty_batch batch;
  assert_int_equal(cv_thirdparty_flush(w->thirdparty, &batch), CV_OK);
  assert_non_null(batch.first);
  assert_null(batch.first->next);
  assert_int_equal(batch.first->releases, FAKE_ARMS);
  assert_true(batch.first->decisions > 0);
  assert_true(batch.first->has_state);
  assert_int_equal(batch.first->plans, 1);
  assert_int_equal(batch.first->plan[0].plan.number, 2);
  assert_int_equal(batch.first->row.releases, FAKE_ARMS);
  assert_int_equal(batch.first->row.accepted, 1);
  cv_thirdparty_batch_fini(&batch);
  world_fini(w);
}

static void a_release_sent_twice_is_applied_once(void **state) {
  struct world *w = connected(), *v = connected();
  world_release(w);
  world_quiet(w);
  uint64_t acks = w->acks;
  struct cv_rank_release again = {.campaign = w->id, .release = w->release[0]};
  struct cv_rank_frame frame = {.releases = 1, .release = &again};
  world_send(w, &frame);
  struct cv_thirdparty_batch batch;
  assert_int_equal(cv_thirdparty_flush(w->thirdparty, &batch), CV_OK);
  assert_null(batch.first); /* nothing to store */
  cv_thirdparty_stored(w->thirdparty);
  struct cv_thirdparty_out out;
  assert_true(cv_thirdparty_next_out(w->thirdparty, &out));
  assert_int_equal(out.frame->acks, 1); /* but acknowledged again */
  assert_int_equal(out.frame->ack[0].number, 1);
  assert_int_equal(w->acks, acks);
  world_run(w);
  world_run(v);
  assert_int_equal(w->plans, v->plans);
  assert_memory_equal(w->standing, v->standing, sizeof(w->standing));
  world_fini(w);
  world_fini(v);
}

/* Sends one frame and expects a goodbye that contains these words. */
static void expect_goodbye(struct world *w, const struct cv_rank_frame *frame, const char *words) {
  world_send(w, frame);
  world_quiet(w);
  if (strstr(w->goodbye, words) == NULL) {
    fail_msg("goodbye is \"%s\"; expected \"%s\"", w->goodbye, words);
  }
  assert_null(w->conn);
  world_fini(w);
}

/* What a connection is told before it is closed; "" if it stays open. */
static void goodbye_of(struct world *w, const struct cv_thirdparty_conn *conn, char *ret, size_t n) {
  struct cv_thirdparty_batch batch;
  struct cv_thirdparty_out out;
  assert_int_equal(cv_thirdparty_flush(w->thirdparty, &batch), CV_OK);
  cv_thirdparty_stored(w->thirdparty);
  cv_thirdparty_batch_fini(&batch);
  ret[0] = '\0';
  while (cv_thirdparty_next_out(w->thirdparty, &out)) {
    if (out.conn == conn && out.frame->goodbye != NULL) {
      (void)snprintf(ret, n, "%s", out.frame->goodbye);
    }
  }
}

/* Brokers of one name that share a database: the link belongs to the newest term, whoever dials last. */
static void a_broker_of_an_older_term_takes_no_link_over(void **state) {
  static const struct {
    uint64_t first, second;
    const char *to_first, *to_second;
  } cases[] = {
      {0, 0, "a newer connection of the same broker takes over", ""},
      {4, 4, "a newer connection of the same broker takes over", ""},
      {4, 5, "a newer connection of the same broker takes over", ""},
      {4, 3, "", "term 3; a broker of term 4 is connected"},
      {4, 0, "", "term 0; a broker of term 4 is connected"},
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct world *w = world_new(NULL);
    struct cv_thirdparty_conn *first, *second;
    char text[CV_WHY_BYTES];
    struct cv_rank_frame frame = {.hello = {.present = true, .version = CV_WIRE_VERSION, .term = cases[i].first}};
    assert_int_equal(cv_thirdparty_join(w->thirdparty, "alice", w, &first), CV_OK);
    assert_int_equal(cv_thirdparty_on_rank(w->thirdparty, first, &frame), CV_OK);
    assert_int_equal(cv_thirdparty_join(w->thirdparty, "alice", w, &second), CV_OK);
    goodbye_of(w, first, text, sizeof(text));
    assert_string_equal(text, ""); /* who dials without a word takes nothing over */
    frame.hello.term = cases[i].second;
    assert_int_equal(cv_thirdparty_on_rank(w->thirdparty, second, &frame), CV_OK);
    goodbye_of(w, cases[i].to_first[0] == '\0' ? second : first, text, sizeof(text));
    assert_string_equal(text, cases[i].to_first[0] == '\0' ? cases[i].to_second : cases[i].to_first);
    const struct cv_link *link = cv_links_find(&w->links, "alice");
    assert_true(link->is_connected && link->term == (cases[i].to_first[0] == '\0' ? cases[i].first : cases[i].second));
    world_fini(w);
  }
}

/* The end of a connection that another one has replaced is not the end of the link. */
static void a_link_lasts_until_its_own_connection_ends(void **state) {
  struct world *w = world_new(NULL);
  struct cv_thirdparty_conn *conn[2];
  assert_null(cv_links_find(&w->links, "alice"));
  for (int i = 0; i < 2; i++) {
    struct cv_rank_frame frame = {.hello = {.present = true, .version = CV_WIRE_VERSION, .term = (uint64_t)i + 4}};
    assert_int_equal(cv_thirdparty_join(w->thirdparty, "alice", w, &conn[i]), CV_OK);
    assert_int_equal(cv_thirdparty_on_rank(w->thirdparty, conn[i], &frame), CV_OK);
  }
  const struct cv_link *link = cv_links_find(&w->links, "alice");
  cv_thirdparty_leave(w->thirdparty, conn[0]);
  assert_true(link->is_connected && link->term == 5 && link->since_ms == 2000 && link->version == 2);
  cv_thirdparty_leave(w->thirdparty, conn[1]);
  assert_true(!link->is_connected && link->term == 5 && link->since_ms == 3000 && link->version == 3);
  assert_null(cv_links_find(&w->links, "bob"));
  world_fini(w);
}

static void a_gap_closes_the_connection(void **state) {
  struct world *w = connected();
  struct cv_rank_release message = {.campaign = w->id, .release = world_next_release(w)};
  message.release.number = 3;
  struct cv_rank_frame frame = {.releases = 1, .release = &message};
  expect_goodbye(w, &frame, "release 3 of campaign 7 follows release 0");
}

static void what_a_release_may_not_be(void **state) {
  static const struct {
    const char *words;
    int what;
  } cases[] = {
      {"which plan 1 does not ask for", 0},
      {"which plan 1 does not ask for", 1},
      {"is for plan 2; the last accepted is 1", 2},
      {"sums 999 tokens; expected 1000", 3},
      {"noise that mechanism hybrid does not add", 4},
      {"noise that mechanism hybrid does not add", 5},
      {"campaign 8 has not been opened", 6},
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct world *w = connected();
    struct cv_rank_release message = {.campaign = w->id, .release = world_next_release(w)};
    struct cv_release *release = &message.release;
    if (cases[i].what == 0) {
      release->arm = FAKE_ARMS;
    } else if (cases[i].what == 1) { /* the same arm again, under the next number */
      world_release(w);
      release->number = 2;
    } else if (cases[i].what == 2) {
      release->plan = 2;
    } else if (cases[i].what == 3) {
      release->tokens = 999;
    } else if (cases[i].what == 4) {
      release->noise.groups = 0;
    } else if (cases[i].what == 5) {
      release->noise.group[0].scale = -1;
    } else {
      message.campaign = 8;
    }
    struct cv_rank_frame frame = {.releases = 1, .release = &message};
    expect_goodbye(w, &frame, cases[i].words);
  }
}

static void a_release_of_a_plan_that_was_not_accepted_is_refused(void **state) {
  struct world *w = world_new(NULL);
  w->hold_plans = true;
  world_connect(w);
  world_quiet(w);
  w->plan[0] = w->asked;
  w->plans = 1;
  struct cv_rank_release message = {.campaign = w->id, .release = world_next_release(w)};
  w->plans = 0;
  struct cv_rank_frame frame = {.releases = 1, .release = &message};
  expect_goodbye(w, &frame, "the last accepted is 0");
}

static void only_a_brokers_messages_and_hello_first(void **state) {
  struct cv_rank_number ack = {.campaign = 7, .number = 1};
  struct cv_rank_frame wrong_side = {.acks = 1, .ack = &ack}, silent = {.accepted = 1, .accept = &ack};
  expect_goodbye(connected(), &wrong_side, "only a third-party may send");
  struct world *w = world_new(NULL);
  assert_int_equal(cv_thirdparty_join(w->thirdparty, "alice", w, &w->conn), CV_OK);
  expect_goodbye(w, &silent, "the first message is not Hello");
  w = world_new(NULL);
  assert_int_equal(cv_thirdparty_join(w->thirdparty, "alice", w, &w->conn), CV_OK);
  struct cv_rank_frame earlier = {.hello = {.present = true, .version = 1}};
  expect_goodbye(w, &earlier, "a hello of wire version 1 from the broker; expected version 3: upgrade the broker");
  w = world_new(NULL);
  assert_int_equal(cv_thirdparty_join(w->thirdparty, "alice", w, &w->conn), CV_OK);
  struct cv_rank_frame later = {.hello = {.present = true, .version = 4}};
  expect_goodbye(w, &later, "a hello of wire version 4 from the broker; expected version 3: upgrade the third-party");
}

static void plans_that_were_never_asked_for_cannot_be_accepted(void **state) {
  struct cv_rank_number accept = {.campaign = 7, .number = 2};
  struct cv_rank_frame frame = {.accepted = 1, .accept = &accept};
  expect_goodbye(connected(), &frame, "plan 2 of campaign 7 was accepted; the last one is 1");
}

static void an_accepted_plan_cannot_be_refused(void **state) {
  struct cv_rank_refused refused = {.campaign = 7, .plan = 1, .reason = CV_END_LEDGER};
  struct cv_rank_frame frame = {.refused = 1, .refuse = &refused};
  expect_goodbye(connected(), &frame, "was refused after");
}

static void a_recorded_plan_with_a_gap_or_nonsense_is_refused(void **state) {
  struct cv_want twice[] = {{1, 10}, {1, 10}};
  struct cv_rank_plan record = {.campaign = 7, .plan = {.number = 3, .wants = 1, .want = twice}};
  struct cv_rank_frame frame = {.recorded = 1, .record = &record};
  expect_goodbye(connected(), &frame, "recorded plan 3 of campaign 7 follows plan 1");
  record.plan = (struct cv_plan){.number = 2, .wants = 2, .want = twice};
  expect_goodbye(connected(), &frame, "has an arm twice");
  record.plan.wants = 0;
  expect_goodbye(connected(), &frame, "is empty");
}

static void recorded_plans_cannot_fill_the_memory(void **state) {
  struct world *w = world_new(NULL);
  w->limits.queued_wants = 5;
  world_halt(w);
  world_start(w);
  world_connect(w);
  world_quiet(w);
  struct cv_want wants[] = {{0, 1}, {1, 1}, {2, 1}};
  struct cv_rank_plan record[2] = {{.campaign = 7, .plan = {.number = 2, .wants = 3, .want = wants}},
                                   {.campaign = 7, .plan = {.number = 3, .wants = 3, .want = wants}}};
  struct cv_rank_frame frame = {.recorded = 2, .record = record};
  expect_goodbye(w, &frame, "more than 5 wants ahead");
}

static void a_plan_is_sent_again_until_it_is_accepted(void **state) {
  struct world *w = world_new(NULL);
  w->hold_plans = true;
  world_connect(w);
  world_quiet(w);
  assert_int_equal(w->asked_times, 1);
  cv_thirdparty_leave(w->thirdparty, w->conn);
  world_connect(w);
  world_quiet(w);
  assert_int_equal(w->asked_times, 2);
  w->hold_plans = false;
  world_accept(w);
  cv_thirdparty_leave(w->thirdparty, w->conn);
  world_connect(w);
  world_quiet(w);
  assert_int_equal(w->asked_times, 2);
  world_run(w);
  world_fini(w);
}

/* The acceptance is stored with the plan's first release: nothing depends on it before. */
static void an_acceptance_costs_no_commit_of_its_own(void **state) {
  struct world *w = world_new(NULL);
  w->hold_plans = true;
  world_connect(w);
  world_quiet(w);
  w->hold_plans = false;
  world_accept(w);
  assert_false(cv_thirdparty_is_pending(w->thirdparty));
  world_release(w);
  struct cv_thirdparty_batch batch;
  assert_int_equal(cv_thirdparty_flush(w->thirdparty, &batch), CV_OK);
  assert_non_null(batch.first);
  assert_int_equal(batch.first->row.accepted, 1);
  cv_thirdparty_batch_fini(&batch);
  world_fini(w);
}

/* The position that a broker receives is one that a crash does not change. */
static void an_acceptance_is_stored_before_it_is_sent(void **state) {
  struct world *w = connected();
  struct cv_thirdparty_batch batch;
  struct cv_thirdparty_out out;
  cv_thirdparty_leave(w->thirdparty, w->conn);
  world_connect(w);
  assert_int_equal(cv_thirdparty_flush(w->thirdparty, &batch), CV_OK);
  assert_non_null(batch.first);
  assert_int_equal(batch.first->row.accepted, 1);
  cv_thirdparty_batch_fini(&batch);
  cv_thirdparty_stored(w->thirdparty);
  assert_true(cv_thirdparty_next_out(w->thirdparty, &out)); /* hello */
  assert_true(cv_thirdparty_next_out(w->thirdparty, &out));
  assert_int_equal(out.frame->opened, 1);
  assert_int_equal(out.frame->answer[0].position.plans, 1);
  world_fini(w);
}

/* The same if it comes between an Open and its answer, as of a plan that waited for the co-broker meanwhile. */
static void an_acceptance_before_the_answer_is_stored_with_it(void **state) {
  struct world *w = world_new(NULL);
  struct cv_thirdparty_batch batch;
  struct cv_thirdparty_out out;
  w->hold_plans = true;
  world_connect(w);
  world_quiet(w);
  cv_thirdparty_leave(w->thirdparty, w->conn);
  world_connect(w);
  w->hold_plans = false;
  world_accept(w);
  assert_int_equal(cv_thirdparty_flush(w->thirdparty, &batch), CV_OK);
  assert_non_null(batch.first);
  assert_int_equal(batch.first->row.accepted, 1);
  cv_thirdparty_batch_fini(&batch);
  cv_thirdparty_stored(w->thirdparty);
  assert_true(cv_thirdparty_next_out(w->thirdparty, &out)); /* hello */
  assert_true(cv_thirdparty_next_out(w->thirdparty, &out));
  assert_int_equal(out.frame->answer[0].position.plans, 1);
  world_fini(w);
}

static void a_refused_plan_ends_with_what_is_undecided(void **state) {
  struct world *w = connected();
  w->refuse_plans = true;
  world_run(w);
  assert_int_equal(w->result, CV_END_LEDGER);
  bool undecided = false;
  for (uint32_t i = 0; i < FAKE_ARMS; i++) {
    undecided = undecided || w->standing[i].held == CV_HELD_OPEN;
    assert_int_equal(w->standing[i].tokens, 1000);
  }
  assert_true(undecided);
  world_fini(w);
}

static void stop_is_answered_with_where_the_arms_stand(void **state) {
  struct world *w = connected();
  world_release(w);
  struct cv_rank_stop stop = {.campaign = w->id, .reason = CV_END_DEADLINE};
  struct cv_rank_frame frame = {.stops = 1, .stop = &stop};
  world_send(w, &frame);
  world_quiet(w);
  assert_int_equal(w->result, CV_END_DEADLINE);
  assert_int_equal(w->standing[0].tokens, 1000);
  assert_int_equal(w->standing[1].tokens, 0);
  /* Sent again after Opened, until it is closed. */
  w->result = CV_END_NONE;
  cv_thirdparty_leave(w->thirdparty, w->conn);
  world_connect(w);
  world_quiet(w);
  assert_int_equal(w->result, CV_END_DEADLINE);
  struct cv_rank_frame close = {.closed = 1, .close = &w->id};
  world_send(w, &close);
  world_quiet(w);
  world_send(w, &close); /* crossing messages again are no error */
  world_send(w, &frame);
  world_quiet(w);
  assert_string_equal(w->goodbye, "");
  world_open(w);
  world_quiet(w);
  assert_string_equal(w->refused, "this campaign has been closed");
  world_fini(w);
}

static void a_campaign_that_cannot_be_run_is_refused_with_a_reason(void **state) {
  static const char *const words[] = {"unknown policy \"no-policy\"", "alpha is -1",
                                      "expected at most 5, which is limits.arms", "cannot work with privatizer laplace",
                                      "campaigns are open already"};
  for (size_t i = 0; i < CV_COUNT(words); i++) {
    struct world *w = world_new(NULL);
    w->limits.arms = i == 2 ? 5 : FAKE_ARMS;
    w->limits.campaigns = i == 4 ? 0 : 1;
    world_halt(w);
    world_start(w);
    if (i == 0) {
      (void)snprintf(w->spec.policy.name, CV_PARAM_TEXT, "no-policy");
    } else if (i == 1) {
      assert_int_equal(cv_params_set_number(&w->spec.policy.params, "alpha", -1), CV_OK);
    } else if (i == 3) {
      (void)snprintf(w->spec.privatizer.name, CV_PARAM_TEXT, "laplace");
    }
    world_connect(w);
    world_quiet(w);
    if (strstr(w->refused, words[i]) == NULL) {
      fail_msg("refused with \"%s\"; expected \"%s\"", w->refused, words[i]);
    }
    assert_false(w->opened);
    assert_string_equal(w->goodbye, ""); /* the connection serves other campaigns */
    world_fini(w);
  }
}

static void a_campaign_cannot_change_its_spec_or_seed(void **state) {
  struct world *w = connected();
  w->seed ^= 1;
  world_open(w);
  world_quiet(w);
  assert_string_equal(w->refused, "this campaign was opened before with another seed");
  w->seed ^= 1;
  w->spec.epsilon_micro *= 2;
  world_open(w);
  world_quiet(w);
  assert_string_equal(w->refused, "this campaign was opened before with another spec");
  world_fini(w);
}

static void a_broker_that_is_behind_receives_our_position(void **state) {
  struct world *w = connected();
  for (uint32_t i = 0; i < FAKE_ARMS; i++) {
    world_release(w);
  }
  world_quiet(w);
  struct cv_position before = world_position(w);
  cv_thirdparty_leave(w->thirdparty, w->conn);
  assert_int_equal(cv_thirdparty_join(w->thirdparty, "alice", w, &w->conn), CV_OK);
  struct cv_rank_open open = {.spec = w->spec, .position = {.campaign = w->id}, .has_seed = true, .seed = w->seed};
  struct cv_rank_frame frame = {.hello = {.present = true, .version = CV_WIRE_VERSION}, .opens = 1, .open = &open};
  world_send(w, &frame);
  struct cv_thirdparty_batch batch;
  struct cv_thirdparty_out out;
  assert_int_equal(cv_thirdparty_flush(w->thirdparty, &batch), CV_OK);
  cv_thirdparty_batch_fini(&batch);
  cv_thirdparty_stored(w->thirdparty);
  assert_true(cv_thirdparty_next_out(w->thirdparty, &out));
  assert_true(cv_thirdparty_next_out(w->thirdparty, &out));
  assert_int_equal(out.frame->opened, 1);
  const struct cv_position *theirs = &out.frame->answer[0].position;
  assert_int_equal(theirs->releases, FAKE_ARMS);
  assert_memory_equal(&theirs->releases_hash, &before.releases_hash, sizeof(before.releases_hash));
  assert_memory_equal(&theirs->plans_hash, &before.plans_hash, sizeof(before.plans_hash));
  world_fini(w);
}

static void what_was_lost_is_rebuilt_from_the_broker(void **state) {
  struct world *w = connected(), *v = connected();
  world_run(v);
  for (uint32_t lost_after = 0; lost_after < 40; lost_after++) {
    if (world_has_more(w)) {
      world_release(w);
    }
    world_quiet(w);
    /* The third-party starts with an empty database. */
    uint64_t seed = w->seed;
    world_halt(w);
    world_start(w);
    world_connect(w);
    world_quiet(w);
    assert_int_equal(w->seed, seed);
    assert_int_equal(w->theirs.releases, 0);
  }
  world_run(w);
  assert_int_equal(w->plans, v->plans);
  for (uint64_t i = 0; i < w->plans; i++) {
    assert_true(world_same_plan(&w->plan[i], &v->plan[i]));
  }
  assert_memory_equal(w->standing, v->standing, sizeof(w->standing));
  world_fini(w);
  world_fini(v);
}

static void a_recorded_plan_is_applied_as_it_was_recorded(void **state) {
  struct world *w = world_new(NULL);
  /* The broker has a plan that this policy would not make, and one release of it. */
  static struct cv_want odd[] = {{2, 500}, {0, 700}};
  struct cv_plan plan = {.number = 1, .wants = 2, .want = odd};
  w->seed = 9;
  w->has_seed = true;
  assert_int_equal(cv_plan_copy(&plan, &w->plan[w->plans++]), CV_OK);
  w->release[0] = world_next_release(w);
  w->releases = 1;
  w->tokens[2] = 500;
  w->next_want = 1;
  world_connect(w);
  world_quiet(w);
  assert_string_equal(w->goodbye, "");
  assert_int_equal(w->acked, 1);
  assert_int_equal(w->asked.number, 0); /* no plan of its own while the recorded one is open */
  world_release(w);
  world_quiet(w);
  assert_int_equal(w->plans, 2);
  assert_int_equal(w->plan[1].wants, FAKE_ARMS);
  world_run(w);
  assert_int_equal(w->result, CV_END_COMPLETE);
  world_fini(w);
}

static void a_stopped_campaign_waits_for_what_the_broker_still_has(void **state) {
  struct world *w = connected();
  for (uint32_t i = 0; i < FAKE_ARMS; i++) {
    world_release(w);
  }
  world_quiet(w);
  w->stop = CV_END_CANCELLED;
  world_halt(w);
  world_start(w);
  world_connect(w);
  world_quiet(w);
  assert_int_equal(w->result, CV_END_CANCELLED);
  for (uint32_t i = 0; i < FAKE_ARMS; i++) {
    assert_int_equal(w->standing[i].tokens, 1000);
  }
  world_fini(w);
}

static void a_frozen_campaign_is_answered_at_once(void **state) {
  struct world *w = connected();
  world_release(w);
  world_quiet(w);
  w->stop = CV_END_FROZEN;
  cv_thirdparty_leave(w->thirdparty, w->conn);
  w->releases++; /* a release that will never come */
  assert_int_equal(cv_thirdparty_join(w->thirdparty, "alice", w, &w->conn), CV_OK);
  struct cv_rank_open open = {.spec = w->spec,
                              .position = {.campaign = w->id, .releases = 2, .plans = 1},
                              .has_seed = true,
                              .seed = w->seed,
                              .stop = CV_END_FROZEN};
  struct cv_rank_frame frame = {.hello = {.present = true, .version = CV_WIRE_VERSION}, .opens = 1, .open = &open};
  world_send(w, &frame);
  struct cv_thirdparty_batch batch;
  struct cv_thirdparty_out out;
  assert_int_equal(cv_thirdparty_flush(w->thirdparty, &batch), CV_OK);
  cv_thirdparty_stored(w->thirdparty);
  cv_thirdparty_batch_fini(&batch);
  assert_true(cv_thirdparty_next_out(w->thirdparty, &out));
  assert_true(cv_thirdparty_next_out(w->thirdparty, &out));
  assert_int_equal(out.frame->results, 1);
  assert_int_equal(out.frame->result[0].reason, CV_END_FROZEN);
  world_fini(w);
}

static void a_newer_connection_takes_over(void **state) {
  struct world *w = connected();
  struct cv_thirdparty_conn *old = w->conn;
  world_connect(w);
  struct cv_thirdparty_batch batch;
  struct cv_thirdparty_out out;
  bool old_is_told = false, new_is_answered = false;
  assert_int_equal(cv_thirdparty_flush(w->thirdparty, &batch), CV_OK);
  cv_thirdparty_stored(w->thirdparty);
  while (cv_thirdparty_next_out(w->thirdparty, &out)) {
    old_is_told = old_is_told || (out.conn == old && out.close != NULL);
    new_is_answered = new_is_answered || (out.conn == w->conn && out.frame->opened == 1);
  }
  assert_true(old_is_told && new_is_answered);
  cv_thirdparty_leave(w->thirdparty, old);
  world_run(w);
  assert_int_equal(w->result, CV_END_COMPLETE);
  cv_thirdparty_batch_fini(&batch);
  world_fini(w);
}

/* A request on the older connection is answered there or not at all: on the newer one nothing has been opened yet. */
static void a_newer_connection_gets_no_answers_of_the_older_one(void **state) {
  struct world *w = connected();
  struct cv_thirdparty_conn *old = w->conn;
  while (world_has_more(w)) {
    world_release(w);
  }
  assert_int_equal(cv_thirdparty_join(w->thirdparty, "alice", w, &w->conn), CV_OK);
  struct cv_thirdparty_batch batch;
  struct cv_thirdparty_out out;
  assert_int_equal(cv_thirdparty_flush(w->thirdparty, &batch), CV_OK);
  assert_non_null(batch.first); /* the releases are stored all the same */
  cv_thirdparty_stored(w->thirdparty);
  while (cv_thirdparty_next_out(w->thirdparty, &out)) {
    if (out.conn == w->conn) {
      assert_int_equal(out.frame->opened + out.frame->acks + out.frame->plans + out.frame->results, 0);
    }
  }
  cv_thirdparty_batch_fini(&batch);
  cv_thirdparty_leave(w->thirdparty, old);
  world_open(w);
  world_run(w);
  assert_int_equal(w->result, CV_END_COMPLETE);
  world_fini(w);
}

static void brokers_do_not_see_each_others_campaigns(void **state) {
  struct world *w = connected();
  struct cv_thirdparty_conn *bob;
  assert_int_equal(cv_thirdparty_join(w->thirdparty, "bob", w, &bob), CV_OK);
  struct cv_rank_release message = {.campaign = w->id, .release = world_next_release(w)};
  struct cv_rank_frame frame = {
      .hello = {.present = true, .version = CV_WIRE_VERSION}, .releases = 1, .release = &message};
  assert_int_equal(cv_thirdparty_on_rank(w->thirdparty, bob, &frame), CV_OK);
  struct cv_thirdparty_batch batch;
  struct cv_thirdparty_out out = {0};
  assert_int_equal(cv_thirdparty_flush(w->thirdparty, &batch), CV_OK);
  assert_null(batch.first);
  cv_thirdparty_stored(w->thirdparty);
  bool bob_is_told = false;
  while (cv_thirdparty_next_out(w->thirdparty, &out)) {
    assert_ptr_equal(out.conn, bob);
    bob_is_told = bob_is_told || (out.close != NULL && strstr(out.close, "has not been opened") != NULL);
  }
  assert_true(bob_is_told);
  world_run(w);
  assert_int_equal(w->result, CV_END_COMPLETE);
  world_fini(w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranks_a_campaign_to_the_end),
      cmocka_unit_test(nothing_leaves_before_its_commit),
      cmocka_unit_test(what_waits_for_a_commit_goes_with_its_connection),
      cmocka_unit_test(release_decisions_state_and_plan_are_one_batch),
      cmocka_unit_test(a_release_sent_twice_is_applied_once),
      cmocka_unit_test(a_broker_of_an_older_term_takes_no_link_over),
      cmocka_unit_test(a_link_lasts_until_its_own_connection_ends),
      cmocka_unit_test(a_gap_closes_the_connection),
      cmocka_unit_test(what_a_release_may_not_be),
      cmocka_unit_test(a_release_of_a_plan_that_was_not_accepted_is_refused),
      cmocka_unit_test(only_a_brokers_messages_and_hello_first),
      cmocka_unit_test(plans_that_were_never_asked_for_cannot_be_accepted),
      cmocka_unit_test(an_accepted_plan_cannot_be_refused),
      cmocka_unit_test(a_recorded_plan_with_a_gap_or_nonsense_is_refused),
      cmocka_unit_test(recorded_plans_cannot_fill_the_memory),
      cmocka_unit_test(a_plan_is_sent_again_until_it_is_accepted),
      cmocka_unit_test(an_acceptance_costs_no_commit_of_its_own),
      cmocka_unit_test(an_acceptance_is_stored_before_it_is_sent),
      cmocka_unit_test(an_acceptance_before_the_answer_is_stored_with_it),
      cmocka_unit_test(a_refused_plan_ends_with_what_is_undecided),
      cmocka_unit_test(stop_is_answered_with_where_the_arms_stand),
      cmocka_unit_test(a_campaign_that_cannot_be_run_is_refused_with_a_reason),
      cmocka_unit_test(a_campaign_cannot_change_its_spec_or_seed),
      cmocka_unit_test(a_broker_that_is_behind_receives_our_position),
      cmocka_unit_test(what_was_lost_is_rebuilt_from_the_broker),
      cmocka_unit_test(a_recorded_plan_is_applied_as_it_was_recorded),
      cmocka_unit_test(a_stopped_campaign_waits_for_what_the_broker_still_has),
      cmocka_unit_test(a_frozen_campaign_is_answered_at_once),
      cmocka_unit_test(a_newer_connection_takes_over),
      cmocka_unit_test(a_newer_connection_gets_no_answers_of_the_older_one),
      cmocka_unit_test(brokers_do_not_see_each_others_campaigns),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
