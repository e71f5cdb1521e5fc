/* SPDX-License-Identifier: Apache-2.0 */
/* A worker answers each question once, whatever the broker says: across restarts, and however it is stored. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "tests/fuzz/cobroker_disk.h"
#include "tests/unit/cobroker/script.h"

/* The journal is long, or each commit writes the chunks that differ. */
static const uint64_t journals[] = {0, 1};

static void resume(struct world *world) {
  restart(world);
  turn(world);
  turn(world); /* the session */
  assert_true(world->has_session);
}

static void begin_as(struct world *world, uint64_t journal_bytes, bool repeat) {
  world_make(world);
  world->journal_bytes = journal_bytes;
  world->repeat = repeat;
  restart(world);
  turn(world);
  next_plan(world);
  turn(world);
  assert_true(world->leader.plan_open && world->has_session);
}

/* The one chunk, as loaded: whether it was stored as such, or comes from the journal. */
static void check_stored(const struct world *world, bool as_chunk) {
  const struct cv_chunks *chunks = &campaign_of(world)->answered.chunks;
  assert_int_equal(chunks->count, 1);
  assert_int_equal(chunks->all->written > 0, as_chunk);
}

static void test_a_question_counts_once(void **state) {
  for (size_t i = 0; i < CV_COUNT(journals); i++) {
    struct world world;
    begin_as(&world, journals[i], false);
    assert_int_equal(give(&world, 0, 0, 1, 0), CV_ANSWER_ACCEPTED);
    for (int start = 0; start < 3; start++) {
      assert_int_equal(give(&world, 0, 1, 1, 1), CV_ANSWER_PLACE); /* another slot and place, the same arm */
      resume(&world);
      check_stored(&world, journals[i] == 1);
    }
    assert_int_equal(cv_accounts_spent(&world.core->accounts, 1), EPSILON);
    assert_int_equal(give(&world, 1, 1, 1, 1), CV_ANSWER_ACCEPTED); /* the slot was not taken */
    assert_int_equal(give(&world, 0, 1, 2, 1), CV_ANSWER_ACCEPTED); /* nor was the place */
    resume(&world);
    assert_int_equal(give(&world, 1, 2, 2, 0), CV_ANSWER_ACCEPTED); /* slots may be used in any order */
    assert_int_equal(cv_accounts_spent(&world.core->accounts, 1), SLOTS * EPSILON);
    assert_int_equal(campaign_of(&world)->tokens, 4);
    assert_int_equal(cv_answered_count(&campaign_of(&world)->answered), 4);
    world_end(&world);
  }
}

/* Both tokens come before either is stored. */
static void test_a_question_counts_once_in_a_batch(void **state) {
  struct world world;
  begin(&world);
  const struct pending token[] = {token_of(&world, 2, 0, 1, 1), token_of(&world, 2, 1, 1, 0),
                                  token_of(&world, 0, 0, 1, 0)};
  commit_batch(&world, token, CV_COUNT(token));
  turn(&world);
  assert_int_equal(world.answer[0], CV_ANSWER_ACCEPTED);
  assert_int_equal(world.answer[1], CV_ANSWER_PLACE);
  assert_int_equal(world.answer[2], CV_ANSWER_ACCEPTED);
  world_end(&world);
}

static void test_a_campaign_may_repeat_questions(void **state) {
  for (size_t i = 0; i < CV_COUNT(journals); i++) {
    struct world world;
    begin_as(&world, journals[i], true);
    struct pending bad = token_of(&world, 0, 0, 2, 0);
    bad.message.verifier[0] = cv_field_add(bad.message.verifier[0], 1);
    assert_int_equal(give(&world, 0, 0, 1, 0), CV_ANSWER_ACCEPTED);
    assert_int_equal(give(&world, 0, 1, 1, 1), CV_ANSWER_ACCEPTED);
    bad.message.token.place = 2;
    assert_int_equal(judged(&world, &bad), CV_ANSWER_PROOF); /* its seal does not open */
    assert_int_equal(campaign_of(&world)->answered.chunks.count, 0);
    resume(&world);
    bad = token_of(&world, 0, 2, 2, 0);
    bad.message.verifier[0] = cv_field_add(bad.message.verifier[0], 1);
    assert_int_equal(judged(&world, &bad), CV_ANSWER_PROOF);
    resume(&world);
    assert_int_equal(give(&world, 0, 2, 2, 1), CV_ANSWER_ACCEPTED);
    assert_int_equal(cv_accounts_spent(&world.core->accounts, 1), SLOTS * EPSILON);
    world_end(&world);
  }
}

/* The broker draws the opponents, so that nothing here tells whether a pair is asked again. */
static void test_of_pairs_nothing_is_recorded(void **state) {
  struct world world;
  begin(&world);
  assert_int_equal(campaign_of(&world)->answered.questions, ARMS);
  struct cv_share_open open = open_of_test(&world);
  open.position = (struct cv_share_position){.campaign = 2};
  open.spec.pairs = true;
  open.spec.score_bits = CV_SPLIT_BIT;
  open_with(&world, &open);
  assert_string_equal(world.opened_why, "");
  assert_int_equal(cv_cobroker_campaign_find(world.core, 2)->answered.questions, 0);
  world_end(&world);
}

/* Else a worker could try again and again. */
static void test_a_failed_proof_is_an_answer(void **state) {
  for (size_t i = 0; i < CV_COUNT(journals); i++) {
    struct world world;
    begin_as(&world, journals[i], false);
    struct pending bad = token_of(&world, 1, 0, 1, 0);
    bad.message.verifier[0] = cv_field_add(bad.message.verifier[0], 1);
    assert_int_equal(judged(&world, &bad), CV_ANSWER_PROOF);
    for (int start = 0; start < 3; start++) {
      assert_int_equal(give(&world, 1, 0, 1, 1), CV_ANSWER_PLACE);
      resume(&world);
      check_stored(&world, journals[i] == 1);
    }
    assert_int_equal(give(&world, 0, 0, 1, 1), CV_ANSWER_ACCEPTED);
    assert_int_equal(give(&world, 1, 0, 2, 0), CV_ANSWER_ACCEPTED);
    world_end(&world);
  }
}

/* A seal that does not open takes no question either. */
static void test_a_broken_seal_is_no_answer(void **state) {
  struct world world;
  begin(&world);
  struct pending bad = token_of(&world, 1, 0, 1, 0);
  bad.message.sealed[0] ^= 1;
  assert_int_equal(judged(&world, &bad), CV_ANSWER_PROOF);
  assert_int_equal(give(&world, 1, 0, 1, 1), CV_ANSWER_ACCEPTED);
  world_end(&world);
}

/* ---- the table ---- */

/* A worker for whom there is no room loses nothing. */
static void test_a_full_table(void **state) {
  struct world world;
  begin(&world);
  struct cv_answered *answered = &campaign_of(&world)->answered;
  answered->chunks.most = 0;
  assert_int_equal(give(&world, 0, 0, 1, 0), CV_ANSWER_WORKER);
  assert_int_equal(cv_accounts_spent(&world.core->accounts, 1), 0);
  answered->chunks.most = world.chunks;
  assert_int_equal(give(&world, 0, 0, 1, 0), CV_ANSWER_ACCEPTED);
  world_end(&world);
}

/* A smaller limit than before forgets no answer. */
static void test_a_smaller_limit(void **state) {
  enum { FAR = 90000 };
  static const struct cv_identity wide = {.role = CV_ROLE_GATEWAY, .name = "1-100000", .first = 1, .last = 100000};
  for (size_t i = 0; i < CV_COUNT(journals); i++) {
    struct world world;
    begin_as(&world, journals[i], false);
    cv_cobroker_leave(world.core, world.gateway);
    join(&world, &wide, &world.gateway);
    say(&world, world.gateway, &(struct cv_share_frame){.hello = hello_of_test});
    enter(&world);
    turn(&world);
    assert_int_equal(give(&world, 0, 0, 1, 0), CV_ANSWER_ACCEPTED);
    assert_int_equal(give(&world, 0, 1, FAR, 0), CV_ANSWER_ACCEPTED);
    world.chunks = 1;
    resume(&world);
    struct cv_answered *answered = &campaign_of(&world)->answered;
    assert_int_equal(answered->chunks.count, 2);
    assert_int_equal(answered->chunks.most, 1);
    assert_true(cv_answered_has(answered, 1, 0) && cv_answered_has(answered, FAR, 0));
    assert_int_equal(give(&world, 0, 2, 1, 1), CV_ANSWER_PLACE);
    world_end(&world);
  }
}

/* ---- rows ---- */

/* The rows that the last turn has stored, if any. */
static void keep(struct world *world, struct disk *disk) {
  if (world->batch.commit == disk->commit + 1 && world->batch.ops > 0) {
    disk_commit(disk, &world->batch);
  }
}

static enum cv_err load_kept(struct world *world, const struct disk *disk) {
  const struct cv_cobroker_config config = config_of_test(world);
  struct cv_cobroker *core;
  assert_int_equal(cv_cobroker_new(&config, &core), CV_OK);
  enum cv_err err = disk_load(disk, core, world->now_ms, world->now_ms);
  cv_cobroker_free(core);
  return err;
}

static struct disk_row *find_row(const struct disk *disk, enum cv_cobroker_row kind) {
  for (size_t i = 0; i < disk->rows; i++) {
    if (disk->row[i].kind == kind) {
      return &disk->row[i];
    }
  }
  return NULL;
}

/* Two answers of worker 1, and a failed proof of worker 2, folded into chunks. */
static void begin_kept(struct world *world, struct disk *disk) {
  *disk = (struct disk){.rows = 0};
  world_make(world);
  world->journal_bytes = 1;
  restart(world);
  turn(world);
  keep(world, disk);
  next_plan(world);
  keep(world, disk);
  turn(world);
  keep(world, disk);
  assert_int_equal(give(world, 0, 0, 1, 0), CV_ANSWER_ACCEPTED);
  keep(world, disk);
  assert_int_equal(give(world, 1, 0, 1, 1), CV_ANSWER_ACCEPTED);
  keep(world, disk);
  struct pending bad = token_of(world, 1, 1, 2, 0);
  bad.message.verifier[0] = cv_field_add(bad.message.verifier[0], 1);
  assert_int_equal(judged(world, &bad), CV_ANSWER_PROOF);
  keep(world, disk);
  for (uint64_t i = 1; i <= 3; i++) { /* a few commits more, which write what is left and trim the journal */
    say_done(world, i);
    turn(world);
    keep(world, disk);
  }
  assert_int_equal(disk->commit, world->commits);
  assert_null(find_row(disk, CV_COROW_JOURNAL));
}

/* Answers and slots are in rows of their own, which must tell of the same tokens. */
static void test_rows_that_disagree(void **state) {
  struct world world;
  struct disk disk;
  begin_kept(&world, &disk);
  assert_int_equal(load_kept(&world, &disk), CV_OK);
  struct disk_row *row = find_row(&disk, CV_COROW_ANSWERED);
  assert_int_equal(row->bytes.len, CV_CHUNK_BYTES);
  for (size_t i = 0; i < 8; i++) {
    row->bytes.data[1000] ^= (uint8_t)(1U << i); /* of a worker that has given nothing */
    assert_int_equal(load_kept(&world, &disk), CV_ERR_DAMAGED);
    row->bytes.data[1000] ^= (uint8_t)(1U << i);
  }
  row->bytes.len--;
  assert_int_equal(load_kept(&world, &disk), CV_ERR_DAMAGED);
  row->bytes.len++;
  row->campaign = 2;
  assert_int_equal(load_kept(&world, &disk), CV_ERR_DAMAGED);
  row->campaign = 1;
  memset(row->bytes.data, 0, row->bytes.len); /* as if it were missing */
  assert_int_equal(load_kept(&world, &disk), CV_ERR_DAMAGED);
  disk_fini(&disk);
  world_end(&world);
}

/* After the end no row is left. */
static void test_rows_are_purged(void **state) {
  struct world world;
  struct disk disk;
  begin_kept(&world, &disk);
  assert_non_null(find_row(&disk, CV_COROW_ANSWERED));
  say_over(&world, CV_END_CANCELLED);
  turn(&world);
  keep(&world, &disk);
  assert_null(find_row(&disk, CV_COROW_ANSWERED));
  assert_int_equal(load_kept(&world, &disk), CV_OK);
  disk_fini(&disk);
  world_end(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_question_counts_once),
      cmocka_unit_test(test_a_question_counts_once_in_a_batch),
      cmocka_unit_test(test_a_campaign_may_repeat_questions),
      cmocka_unit_test(test_of_pairs_nothing_is_recorded),
      cmocka_unit_test(test_a_failed_proof_is_an_answer),
      cmocka_unit_test(test_a_broken_seal_is_no_answer),
      cmocka_unit_test(test_a_full_table),
      cmocka_unit_test(test_a_smaller_limit),
      cmocka_unit_test(test_rows_that_disagree),
      cmocka_unit_test(test_rows_are_purged),
  };
  return cmocka_run_group_tests_name("cobroker answered", tests, NULL, NULL);
}
