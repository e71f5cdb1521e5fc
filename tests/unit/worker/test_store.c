/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker has given is known after a restart if it was stored, and is never attributed to another worker. */
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include "tests/support/alloc_fault.h"
#include "tests/support/own_folder.h"
#include "worker/keeper.h"

/* Each draws another key. */
static enum cv_err open_store(uint64_t first, uint64_t last, const uint8_t *key, struct cv_worker_store **ret,
                              struct cv_why *why) {
  static uint64_t opens;
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 7, opens++, 0, 0);
  return cv_worker_store_open(folder.path, first, last, key, &rng.rng, ret, why);
}

static struct cv_worker_store *opened(uint64_t first, uint64_t last) {
  struct cv_worker_store *given = NULL;
  struct cv_why why = {.text = ""};
  if (open_store(first, last, NULL, &given, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  return given;
}

static void keep(struct cv_worker_store *given) {
  struct cv_why why;
  assert_int_equal(cv_worker_store_commit(given, &why), CV_OK);
}

static void test_what_was_kept_is_there_again(void **state) {
  struct cv_worker_store *given = opened(10, 19);
  for (uint32_t i = 0; i < 10; i++) {
    assert_int_equal(cv_worker_store_scores(given)[i], 0);
  }
  cv_worker_store_note(given, 10, 1);
  cv_worker_store_note(given, 19, 2);
  cv_worker_store_note(given, 10, UINT32_MAX);
  keep(given);
  keep(given);
  cv_worker_store_note(given, 11, 5);
  cv_worker_store_close(given);
  given = opened(10, 19);
  assert_int_equal(cv_worker_store_scores(given)[0], UINT32_MAX);
  assert_int_equal(cv_worker_store_scores(given)[1], 0);
  assert_int_equal(cv_worker_store_scores(given)[9], 2);
  cv_worker_store_note(given, 19, 3);
  keep(given);
  cv_worker_store_close(given);
  given = opened(19, 40); /* another range, of which one was in the first */
  assert_int_equal(cv_worker_store_scores(given)[0], 3);
  assert_int_equal(cv_worker_store_scores(given)[1], 0);
  cv_worker_store_close(given);
}

static bool mark(void *data, uint64_t row) {
  uint64_t *marked = data;
  *marked |= UINT64_C(1) << row;
  return row < 40;
}

static void test_rows_that_were_given_are_known_by_data_set(void **state) {
  struct cv_worker_store *given = opened(10, 19);
  struct cv_why why = {.text = ""};
  uint64_t marked = 0;
  assert_int_equal(cv_worker_store_data(given, "/films.csv", UINT64_MAX - 3, &why), CV_OK);
  assert_int_equal(cv_worker_store_rows(given, UINT64_MAX - 3, mark, &marked, &why), CV_OK);
  assert_int_equal(marked, 0);
  assert_int_equal(cv_worker_store_note_rows(given, (uint32_t[]){3, 17}, 2), CV_OK);
  cv_worker_store_note(given, 12, 2);
  keep(given);
  assert_int_equal(cv_worker_store_note_rows(given, (uint32_t[]){5}, 1), CV_OK); /* not kept */
  cv_worker_store_close(given);
  given = opened(1, 9); /* rows belong to the data set, in any range */
  assert_int_equal(cv_worker_store_rows(given, 4, mark, &marked, &why), CV_OK);
  assert_int_equal(marked, 0);
  assert_int_equal(cv_worker_store_note_rows(given, (uint32_t[]){50}, 1), CV_OK);
  keep(given);
  assert_int_equal(cv_worker_store_rows(given, 4, mark, &marked, &why), CV_ERR_INVALID);
  assert_non_null(strstr(why.text, "a stored row is not in the data file"));
  marked = 0;
  assert_int_equal(cv_worker_store_data(given, "/films.csv", 4, &why), CV_ERR_INVALID);
  assert_non_null(strstr(why.text, "the stored rows of /films.csv belong to another data set; expected the unchanged"));
  assert_int_equal(cv_worker_store_data(given, "/films.csv", UINT64_MAX - 3, &why), CV_OK);
  assert_int_equal(cv_worker_store_rows(given, UINT64_MAX - 3, mark, &marked, &why), CV_OK);
  assert_true(marked == (UINT64_C(1) << 3 | UINT64_C(1) << 17));
  cv_worker_store_close(given);
}

/* With another key every row would be randomized a second time. */
static void test_the_key_is_drawn_once(void **state) {
  static const uint8_t shared[CV_COIN_KEY_BYTES] = {1, 2, 3};
  uint8_t key[CV_COIN_KEY_BYTES];
  struct cv_worker_store *given = opened(1, 2), *other = NULL;
  struct cv_why why = {.text = ""};
  memcpy(key, cv_worker_store_key(given), sizeof(key));
  cv_worker_store_close(given); /* nothing was committed but the key */
  given = opened(5, 9);
  assert_memory_equal(cv_worker_store_key(given), key, sizeof(key));
  cv_worker_store_close(given);
  assert_int_equal(open_store(1, 2, shared, &other, &why), CV_ERR_INVALID);
  assert_string_equal(why.text,
                      "state: its rows have left under another key than that of row_key; expected that key, or "
                      "none, as another one would randomize each row anew");
  assert_int_equal(open_store(1, 2, key, &given, &why), CV_OK);
  cv_worker_store_close(given);
  assert_int_equal(unlink(folder_file(&folder, "given.db")), 0);
  given = opened(1, 2);
  assert_memory_not_equal(cv_worker_store_key(given), key, sizeof(key));
  cv_worker_store_close(given);
  assert_int_equal(unlink(folder_file(&folder, "given.db")), 0);
  assert_int_equal(open_store(1, 2, shared, &given, &why), CV_OK);
  cv_worker_store_close(given);
  given = opened(1, 2);
  assert_memory_equal(cv_worker_store_key(given), shared, sizeof(shared));
  cv_worker_store_close(given);
}

/* A campaign by another number or another name is another one, and so is one under another law. */
static void test_a_data_set_serves_as_many_campaigns_as_its_owner_allows(void **state) {
  static const struct cv_served_campaign films = {.id = 1, .name = "films", .law = 5},
                                         renamed = {.id = 1, .name = "movies", .law = 5},
                                         again = {.id = 2, .name = "films", .law = 5},
                                         weaker = {.id = 1, .name = "films", .law = 6};
  struct cv_worker_store *given = opened(1, 2);
  struct cv_why why = {.text = ""};
  assert_int_equal(cv_worker_store_serve(given, 7, &films, 1, &why), CV_OK);
  cv_worker_store_close(given);
  given = opened(1, 2);
  assert_int_equal(cv_worker_store_serve(given, 7, &films, 1, &why), CV_OK);
  assert_int_equal(cv_worker_store_serve(given, 7, &renamed, 1, &why), CV_ERR_DENIED);
  assert_string_equal(
      why.text,
      "the rows of the worker's data file have been disclosed 1 time, to another campaign or with another "
      "privatizer; expected at most accept.tokens, 1");
  assert_int_equal(cv_worker_store_serve(given, 7, &again, 1, &why), CV_ERR_DENIED);
  assert_int_equal(cv_worker_store_serve(given, 7, &weaker, 1, &why), CV_ERR_DENIED);
  assert_int_equal(cv_worker_store_serve(given, 8, &again, 1, &why), CV_OK); /* other rows */
  assert_int_equal(cv_worker_store_serve(given, 7, &again, 2, &why), CV_OK);
  assert_int_equal(cv_worker_store_serve(given, 7, &films, 2, &why), CV_OK);
  assert_int_equal(cv_worker_store_serve(given, 7, &renamed, 2, &why), CV_ERR_DENIED);
  assert_int_equal(cv_worker_store_serve(given, 7, &renamed, 0, &why), CV_OK);
  cv_worker_store_close(given);
}

static void test_the_rows_of_a_part_that_have_left_are_known(void **state) {
  static const struct cv_served_campaign films = {.id = 1, .name = "films"}, again = {.id = 2, .name = "films"};
  struct cv_worker_store *given = opened(1, 2);
  struct cv_why why = {.text = ""};
  uint64_t taken[3] = {0};
  assert_int_equal(cv_worker_store_note_taken(given, 7, &films, 2, 4), CV_OK);
  assert_int_equal(cv_worker_store_note_taken(given, 7, &films, 0, 1), CV_OK);
  assert_int_equal(cv_worker_store_note_taken(given, 7, &films, 2, 5), CV_OK);
  assert_int_equal(cv_worker_store_note_taken(given, 7, &again, 1, 9), CV_OK);
  keep(given);
  assert_int_equal(cv_worker_store_note_taken(given, 7, &films, 0, 2), CV_OK); /* not kept */
  assert_int_equal(cv_worker_store_taken(given, 7, &films, 3, taken, &why), CV_OK);
  assert_memory_equal(taken, ((uint64_t[]){2, 0, 5}), sizeof(taken)); /* noted before the terms came again */
  cv_worker_store_close(given);
  given = opened(1, 2);
  assert_int_equal(cv_worker_store_taken(given, 7, &films, 3, taken, &why), CV_OK);
  assert_memory_equal(taken, ((uint64_t[]){1, 0, 5}), sizeof(taken));
  assert_int_equal(cv_worker_store_taken(given, 8, &films, 3, taken, &why), CV_OK); /* other rows: unchanged */
  assert_memory_equal(taken, ((uint64_t[]){1, 0, 5}), sizeof(taken));
  cv_worker_store_close(given);
}

/* The questions told, as a sum that tells workers and questions apart. */
static enum cv_err add_answer(void *to, uint64_t worker, uint64_t question) {
  uint64_t *sum = to;
  *sum += worker * 1000 + question;
  return question == 99 ? CV_ERR_NOMEM : CV_OK;
}

static uint64_t answers_of(struct cv_worker_store *given, const struct cv_served_campaign *campaign) {
  struct cv_why why;
  uint64_t sum = 0;
  assert_int_equal(cv_worker_store_answered(given, campaign, add_answer, &sum, &why), CV_OK);
  return sum;
}

static const struct cv_digest films_items = {{1}};

static void test_answers_are_known_by_campaign_and_worker(void **state) {
  static const struct cv_served_campaign films = {.id = 1, .name = "films", .items = &films_items},
                                         renamed = {.id = 1, .name = "movies", .items = &films_items},
                                         again = {.id = 2, .name = "films", .items = &films_items};
  struct cv_worker_store *given = opened(1, 5);
  struct cv_why why = {.text = ""};
  assert_int_equal(cv_worker_store_note_answer(given, &films, 2, 7, true), CV_OK);
  assert_int_equal(cv_worker_store_note_answer(given, &films, 3, 8, true), CV_OK);
  assert_int_equal(cv_worker_store_note_answer(given, &films, 2, 7, true), CV_OK);
  keep(given);
  assert_int_equal(cv_worker_store_note_answer(given, &films, 5, 1, true), CV_OK);
  assert_int_equal(cv_worker_store_note_answer(given, &films, 3, 8, false), CV_OK);
  assert_int_equal(cv_worker_store_note_answer(given, &films, 4, 4, true), CV_OK);
  assert_int_equal(cv_worker_store_note_answer(given, &films, 4, 4, false), CV_OK);
  assert_int_equal(answers_of(given, &films), 2007 + 5001);                        /* what was noted, too */
  assert_int_equal(cv_worker_store_note_answer(given, &films, 1, 1, true), CV_OK); /* not kept */
  cv_worker_store_close(given);
  given = opened(2, 4);
  assert_int_equal(answers_of(given, &films), 2007);
  assert_int_equal(answers_of(given, &renamed), 0);
  assert_int_equal(answers_of(given, &again), 0);
  assert_int_equal(cv_worker_store_note_answer(given, &again, 3, 99, true), CV_OK);
  uint64_t sum = 0;
  assert_int_equal(cv_worker_store_answered(given, &again, add_answer, &sum, &why), CV_ERR_NOMEM);
  assert_int_equal(answers_of(given, &films), 2007);
  cv_worker_store_close(given);
}

/* What the core says is what the next process is told. */
static void test_the_keeper_keeps_answers(void **state) {
  static const struct cv_terms films = {.id = 1, .name = "films"}, again = {.id = 2, .name = "films"};
  static const struct cv_work work = {.campaign = "films", .items = {{1}}};
  struct cv_why why;
  struct cv_keeper keeper;
  uint64_t sum[3] = {0};
  struct cv_worker_store *given = opened(1, 5);
  cv_keeper_init(&keeper, given, 0);
  keeper.record.answer(keeper.record.data, &work, &films, 2, 7, true);
  keeper.record.answer(keeper.record.data, &work, &films, 3, 8, true);
  keeper.record.answer(keeper.record.data, &work, &films, 3, 8, false);
  keeper.record.answer(keeper.record.data, &work, NULL, 4, 9, true);
  assert_false(keeper.failed);
  keep(given);
  cv_worker_store_close(given);
  given = opened(1, 5);
  cv_keeper_init(&keeper, given, 0);
  assert_int_equal(keeper.record.answered(keeper.record.data, &work, &films, add_answer, &sum[0], &why), CV_OK);
  assert_int_equal(keeper.record.answered(keeper.record.data, &work, &again, add_answer, &sum[1], &why), CV_OK);
  assert_int_equal(keeper.record.answered(keeper.record.data, &work, NULL, add_answer, &sum[2], &why), CV_OK);
  assert_int_equal(sum[0], 2007);
  assert_int_equal(sum[1], 0);
  assert_int_equal(sum[2], 4009);
  cv_worker_store_close(given);
}

/* Under a name, whatever the numbers of its campaigns, and as long as it stands for the same items. */
static void test_a_name_stands_for_its_items(void **state) {
  static const struct cv_digest others = {{2}};
  static const struct cv_served_campaign films = {.name = "films", .items = &films_items},
                                         numbered = {.id = 1, .name = "films", .items = &others},
                                         other = {.name = "films", .items = &others},
                                         renamed = {.name = "movies", .items = &others};
  struct cv_worker_store *given = opened(1, 5);
  struct cv_why why = {.text = ""};
  uint64_t sum = 0;
  assert_int_equal(cv_worker_store_note_answer(given, &numbered, 2, 8, true), CV_OK);
  assert_int_equal(answers_of(given, &films), 0); /* a campaign without privatizer: it is not a matter of the name */
  assert_int_equal(cv_worker_store_note_answer(given, &films, 2, 7, true), CV_OK);
  assert_int_equal(answers_of(given, &films), 2007);
  cv_worker_store_close(given);
  given = opened(1, 5);
  assert_int_equal(cv_worker_store_answered(given, &other, add_answer, &sum, &why), CV_ERR_DENIED);
  assert_string_equal(why.text,
                      "state: people or programs have answered about other items under the name \"films\"; "
                      "expected the same names in the same order, or another name for the campaign");
  assert_int_equal(sum, 0);
  assert_int_equal(answers_of(given, &films), 2007);
  assert_int_equal(answers_of(given, &numbered), 2008);
  assert_int_equal(answers_of(given, &renamed), 0);
  cv_worker_store_close(given);
}

static void test_one_process_at_a_time_has_the_file(void **state) {
  struct cv_worker_store *given = opened(1, 2), *other = NULL;
  struct cv_why why;
  cv_worker_store_note(given, 1, 1);
  keep(given);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    bool refused = open_store(1, 2, NULL, &other, &why) == CV_ERR_STATE;
    /* another program: at an exit a leak checker would search the copy of the parent's memory */
    (void)execlp(refused ? "true" : "false", "true", NULL);
    _exit(2);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  cv_worker_store_close(given);
}

/* A count that was reduced by a disk or by mistake, or a row that was dropped, would let a worker give again. */
static void test_what_was_changed_is_refused(void **state) {
  static const char *const edits[] = {"UPDATE given SET scores = scores - 1 WHERE worker = 2",
                                      "DELETE FROM given WHERE worker = 2",
                                      "UPDATE given SET worker = 3 WHERE worker = 2",
                                      "DELETE FROM used_row WHERE row = 17",
                                      "UPDATE data_set SET print = 8",
                                      "UPDATE secret SET key = randomblob(32)",
                                      "DELETE FROM secret",
                                      "DELETE FROM served",
                                      "UPDATE taken SET rows = 1",
                                      "DELETE FROM answered",
                                      "DELETE FROM items"};
  static const char *const tables[] = {"given",  "given",  "given", "used_row", "data_set", "secret",
                                       "secret", "served", "taken", "answered", "items"};
  for (size_t i = 0; i < CV_COUNT(edits); i++) {
    struct cv_worker_store *given = opened(1, 2);
    struct cv_why why = {.text = ""};
    char table[40];
    uint64_t marked = 0;
    sqlite3 *db;
    static const struct cv_served_campaign films = {.name = "films", .items = &films_items};
    assert_int_equal(cv_worker_store_data(given, "/films.csv", 7, &why), CV_OK);
    assert_int_equal(cv_worker_store_serve(given, 7, &films, 0, &why), CV_OK);
    assert_int_equal(cv_worker_store_rows(given, 7, mark, &marked, &why), CV_OK);
    assert_int_equal(cv_worker_store_note_rows(given, (uint32_t[]){3, 17}, 2), CV_OK);
    assert_int_equal(cv_worker_store_note_taken(given, 7, &films, 2, 4), CV_OK);
    assert_int_equal(cv_worker_store_note_answer(given, &films, 2, 4, true), CV_OK);
    cv_worker_store_note(given, 1, 4);
    cv_worker_store_note(given, 2, 7);
    keep(given);
    cv_worker_store_close(given);
    assert_int_equal(sqlite3_open(folder_file(&folder, "given.db"), &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, edits[i], NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(open_store(1, 2, NULL, &given, &why), CV_ERR_DAMAGED);
    (void)snprintf(table, sizeof(table), "given.db: table %s: ", tables[i]);
    assert_non_null(strstr(why.text, table));
    assert_int_equal(unlink(folder_file(&folder, "given.db")), 0);
  }
}

/* An invalid count must not become a small one. */
static void test_a_count_out_of_range_is_refused(void **state) {
  static const char *const counts[] = {"0", "-1", "4294967296", "'many'"};
  for (size_t i = 0; i < CV_COUNT(counts); i++) {
    struct cv_worker_store *given = opened(1, 2);
    struct cv_why why = {.text = ""};
    char sql[200];
    sqlite3 *db;
    cv_worker_store_close(given);
    (void)snprintf(sql, sizeof(sql), "PRAGMA ignore_check_constraints = 1; INSERT INTO given VALUES (1, %s)",
                   counts[i]);
    assert_int_equal(sqlite3_open(folder_file(&folder, "given.db"), &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    given = NULL;
    assert_int_equal(open_store(1, 2, NULL, &given, &why), CV_ERR_DAMAGED);
    assert_non_null(strstr(why.text, "given.db"));
    assert_null(given);
    assert_int_equal(unlink(folder_file(&folder, "given.db")), 0);
  }
}

static void test_without_memory_nothing_is_kept_by_halves(void **state) {
  static const struct cv_served_campaign films = {.name = "films", .items = &films_items};
  struct cv_why why;
  cv_worker_store_close(opened(1, 3));
  ALLOC_FAULT_EACH(fault, .rest = false) {
    int64_t before = alloc_fault_live();
    struct cv_worker_store *given = NULL;
    alloc_fault_arm();
    enum cv_err err = open_store(1, 3, NULL, &given, &why);
    if (err == CV_OK) {
      cv_worker_store_note(given, 2, (uint32_t)fault.nth);
      cv_worker_store_note(given, 3, 7);
      err = cv_worker_store_note_answer(given, &films, 3, 1, true);
      err = err == CV_OK ? cv_worker_store_commit(given, &why) : err;
    }
    alloc_fault_pause();
    assert_true(err == CV_OK || (err == CV_ERR_NOMEM && alloc_fault_hit()));
    cv_worker_store_close(given);
    given = opened(1, 3);
    if (err == CV_OK) {
      assert_int_equal(cv_worker_store_scores(given)[1], fault.nth);
      assert_int_equal(cv_worker_store_scores(given)[2], 7);
    }
    assert_true(cv_worker_store_scores(given)[2] == 7 || cv_worker_store_scores(given)[1] == 0);
    cv_worker_store_close(given);
    assert_int_equal(alloc_fault_live(), before);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_what_was_kept_is_there_again, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_rows_that_were_given_are_known_by_data_set, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_the_key_is_drawn_once, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_a_data_set_serves_as_many_campaigns_as_its_owner_allows, make_folder,
                                      remove_folder),
      cmocka_unit_test_setup_teardown(test_the_rows_of_a_part_that_have_left_are_known, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_answers_are_known_by_campaign_and_worker, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_the_keeper_keeps_answers, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_a_name_stands_for_its_items, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_one_process_at_a_time_has_the_file, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_what_was_changed_is_refused, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_a_count_out_of_range_is_refused, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_without_memory_nothing_is_kept_by_halves, make_folder, remove_folder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
