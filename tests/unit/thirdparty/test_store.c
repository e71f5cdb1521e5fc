/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* The above before cmocka.h. */
#include <cmocka.h>
#include <sys/stat.h>

#include "tests/unit/thirdparty/fake.h"
#include "thirdparty/replay.h"

static char folder[64], path[96];

static int make_folder(void **state) {
  /* In memory if possible: the tests are about the file's contents, not about the disk. */
  (void)snprintf(folder, sizeof(folder), "%s/cv-thirdparty-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
  if (mkdtemp(folder) == NULL) {
    return -1;
  }
  (void)snprintf(path, sizeof(path), "%s/thirdparty.db", folder);
  return 0;
}

static void remove_database(void) {
  char name[128];
  (void)unlink(path);
  (void)snprintf(name, sizeof(name), "%s-wal", path);
  (void)unlink(name);
  (void)snprintf(name, sizeof(name), "%s-shm", path);
  (void)unlink(name);
}

static int remove_folder(void **state) {
  remove_database();
  return rmdir(folder);
}

static int fresh(void **state) {
  remove_database();
  return 0;
}

static struct world *ranked(void) {
  struct world *w = world_new(path);
  world_connect(w);
  world_run(w);
  return w;
}

/* The value of a query for one number. */
static double ask(const char *sql) {
  struct cv_db *db = NULL;
  sqlite3_stmt *stmt = NULL;
  struct cv_why why = {.text = ""};
  int row = 0;
  if (cv_db_open_readonly(path, &CV_THIRDPARTY_SCHEMA, &db, &why) != CV_OK ||
      cv_db_prepare(db, sql, &stmt, &why) != CV_OK || cv_db_step(db, stmt, &row, &why) != CV_OK) {
    fail_msg("%s: %s", sql, why.text);
  }
  assert_int_equal(row, 1);
  double value = sqlite3_column_double(stmt, 0);
  cv_db_close(db);
  return value;
}

/* Changes by a program that stores their checksums: no disk has made them. */
static void change(const char *sql) {
  struct cv_db *db = NULL;
  struct cv_why why = {.text = ""};
  if (cv_db_open(path, NULL, &CV_THIRDPARTY_SCHEMA, &db, &why) != CV_OK || cv_thirdparty_prove(db, &why) != CV_OK ||
      cv_db_begin(db, &why) != CV_OK || cv_db_exec(db, sql, &why) != CV_OK || cv_db_commit(db, &why) != CV_OK) {
    fail_msg("%s: %s", sql, why.text);
  }
  cv_db_close(db);
}

static void a_crash_at_any_commit_changes_nothing(void **state) {
  struct world *v = ranked();
  int crashes = 0;
  for (int mode = CRASH_BEFORE_COMMIT; mode <= CRASH_AFTER_COMMIT; mode++) {
    for (int at = 1;; at++) {
      remove_database();
      struct world *w = world_new(path);
      w->crash = (enum crash)mode;
      w->crash_at = at;
      world_connect(w);
      world_run(w);
      bool crashed = w->turn >= at;
      assert_int_equal(w->plans, v->plans);
      assert_int_equal(w->releases, v->releases);
      for (uint64_t i = 0; i < w->plans; i++) {
        assert_true(world_same_plan(&w->plan[i], &v->plan[i]));
      }
      assert_int_equal(w->result, v->result);
      assert_memory_equal(w->standing, v->standing, sizeof(w->standing));
      world_fini(w);
      if (!crashed) {
        break;
      }
      crashes++;
    }
  }
  assert_true(crashes > 50);
  world_fini(v);
}

/* After a crash the broker reports the acceptance again, and the plan still counts as the policy's. */
static void a_plan_whose_acceptance_is_lost_still_counts_as_the_policys(void **state) {
  struct world *w = world_new(path);
  world_connect(w);
  world_quiet(w);
  assert_int_equal(w->plans, 1);
  world_halt(w);
  assert_true(ask("SELECT plans_accepted FROM campaign") == 0);
  world_start(w);
  world_connect(w);
  world_quiet(w);
  assert_int_equal(w->theirs.plans, 0);
  world_run(w);
  assert_int_equal(w->result, CV_END_COMPLETE);
  double plans = (double)w->plans;
  world_fini(w);
  assert_true(ask("SELECT plans_accepted FROM campaign") == plans);
  assert_true(ask("SELECT count(*) FROM plan WHERE origin = 'policy'") == plans);
}

static void tables_can_be_read_by_a_person(void **state) {
  struct world *w = ranked();
  uint64_t releases = w->releases, plans = w->plans;
  world_fini(w);
  assert_true(ask("SELECT count(*) FROM release") == (double)releases);
  assert_true(ask("SELECT count(*) FROM plan") == (double)plans);
  assert_true(ask("SELECT count(*) FROM ranking WHERE class BETWEEN 1 AND 3") == FAKE_ARMS);
  assert_true(ask("SELECT arm IN (0, 2) FROM ranking LIMIT 1") == 1);
  assert_true(ask("SELECT settled FROM progress WHERE state = 'complete'") == FAKE_ARMS);
  assert_true(ask("SELECT count(*) FROM decision_log WHERE kind = 'settle'") == FAKE_ARMS);
  assert_true(ask("SELECT count(*) FROM decision_log") == ask("SELECT decisions FROM progress"));
  assert_true(ask("SELECT count(*) FROM campaign WHERE policy_parameters LIKE 'alpha=0.1 %radius=sound%'") == 1);
  /* Every decision names the numbers that it was made from, and follows from them. */
  assert_true(ask("SELECT count(*) FROM decision WHERE kind = 'settle' AND mean - radius < reference") == 0);
  assert_true(ask("SELECT count(*) FROM decision WHERE kind = 'remove' AND mean + radius >= reference") == 0);
}

static void names_are_shown_when_they_are_shared(void **state) {
  struct world *w = world_new(path);
  const char *names[FAKE_ARMS] = {"item a", "item b", "item c", "item d", "item e", "item f"};
  w->spec.names = names;
  world_connect(w);
  world_run(w);
  w->spec.names = NULL;
  world_fini(w);
  assert_true(ask("SELECT count(*) FROM ranking WHERE arm = 3 AND item = 'item d'") == 1);
}

static void a_closed_campaign_is_remembered(void **state) {
  struct world *w = ranked();
  struct cv_rank_frame close = {.closed = 1, .close = &w->id};
  world_send(w, &close);
  world_quiet(w);
  world_halt(w);
  world_start(w);
  world_connect(w);
  world_quiet(w);
  assert_string_equal(w->refused, "this campaign has been closed");
  struct cv_thirdparty_figures counts;
  cv_thirdparty_figures(w->thirdparty, &counts);
  assert_int_equal(counts.campaigns_open, 0);
  assert_int_equal(counts.campaigns_closed, 1);
  world_fini(w);
}

static void a_damaged_database_is_refused_with_one_line(void **state) {
  static const struct {
    const char *sql, *words;
  } cases[] = {
      {"UPDATE policy_state SET state = x'01'", "campaign 7 of broker alice: the policy's state is damaged"},
      {"DELETE FROM policy_state", "campaign 7 of broker alice: the policy's state is missing"},
      {"UPDATE campaign SET spec = x'00'", "row 1 of table campaign is damaged"},
      {"UPDATE campaign SET last_plan = last_plan + 5", "campaign 7 of broker alice: "},
      {"UPDATE plan_want SET arm = 77", "has an invalid want"},
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    remove_database();
    struct world *w = world_new(path);
    world_connect(w);
    world_quiet(w);
    world_halt(w);
    change(cases[i].sql);
    const struct cv_thirdparty_config setup = {.digest = cv_sha256, .rng = &w->rng.rng, .limits = w->limits};
    struct cv_why why = {.text = ""};
    assert_int_equal(cv_thirdparty_new(&setup, &w->thirdparty), CV_OK);
    assert_int_equal(cv_thirdparty_store_open(path, NULL, &w->store, &why), CV_OK);
    assert_int_not_equal(cv_thirdparty_store_load(w->store, world_restore, w, &why), CV_OK);
    if (strstr(why.text, cases[i].words) == NULL) {
      fail_msg("\"%s\"; expected \"%s\"", why.text, cases[i].words);
    }
    world_fini(w);
  }
}

/* Accidental changes: the daemon and replay name the place of each. */
static void what_a_disk_has_changed_is_refused(void **state) {
  static const struct {
    const char *sql, *words;
  } cases[] = {
      {"UPDATE decision SET class = class + 1 WHERE number = 1", "table decision, campaign 1: a row was changed"},
      {"UPDATE release SET mean = mean + 1e-9 WHERE number = 2", "table release, campaign 1: a row was changed"},
      {"DELETE FROM release_noise WHERE release = 1", "table release_noise, campaign 1: "},
      {"UPDATE campaign SET note = 'x'", "table campaign, id 1: a row was changed"},
      {"UPDATE policy_state SET plan = plan - 1", "table policy_state, campaign 1: a row was changed"},
      {"UPDATE standing SET radius = radius + 1 WHERE arm = 0", "table standing, campaign 1: a row was changed"},
      {"DELETE FROM plan_want WHERE plan = 1 AND position = 0", "table plan_want, campaign 1: "},
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct cv_thirdparty_store *store;
    struct cv_db *db;
    struct cv_why why = {.text = ""};
    remove_database();
    world_fini(ranked());
    assert_int_equal(cv_db_open(path, NULL, &CV_THIRDPARTY_SCHEMA, &db, &why), CV_OK);
    assert_int_equal(cv_db_exec(db, cases[i].sql, &why), CV_OK);
    cv_db_close(db);
    assert_int_equal(cv_thirdparty_store_open(path, NULL, &store, &why), CV_ERR_DAMAGED);
    if (strstr(why.text, cases[i].words) == NULL) {
      fail_msg("\"%s\"; expected \"%s\"", why.text, cases[i].words);
    }
    assert_int_equal(cv_replay_database(path, NULL, NULL, NULL, &why), CV_ERR_DAMAGED);
    assert_non_null(strstr(why.text, cases[i].words));
  }
}

/* ---- replay ---- */

struct heard {
  int campaigns;
  struct cv_replay_verdict verdict;
};

static void hear(void *data, const struct cv_stored_campaign *campaign, const struct cv_replay_verdict *verdict) {
  struct heard *heard = data;
  assert_string_equal(campaign->key.broker, "alice");
  heard->campaigns++;
  heard->verdict = *verdict;
}

static struct heard replayed(void) {
  struct heard heard = {0};
  struct cv_why why = {.text = ""};
  if (cv_replay_database(path, hear, NULL, &heard, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  assert_int_equal(heard.campaigns, 1);
  return heard;
}

static void replay_agrees_with_what_was_decided(void **state) {
  struct world *w = ranked();
  uint64_t releases = w->releases, plans = w->plans;
  world_fini(w);
  struct heard heard = replayed();
  assert_string_equal(heard.verdict.first.text, "");
  assert_true(heard.verdict.agrees);
  assert_int_equal(heard.verdict.releases, releases);
  assert_int_equal(heard.verdict.plans, plans);
  assert_int_equal(heard.verdict.standings, FAKE_ARMS);
  assert_true(heard.verdict.decisions >= FAKE_ARMS);
}

static void replay_agrees_at_every_moment(void **state) {
  for (int releases = 0; releases < 20; releases++) {
    remove_database();
    struct world *w = world_new(path);
    world_connect(w);
    world_quiet(w);
    for (int i = 0; i < releases && world_has_more(w); i++) {
      world_release(w);
      world_quiet(w);
    }
    world_fini(w);
    struct heard heard = replayed();
    assert_string_equal(heard.verdict.first.text, "");
  }
}

static void replay_finds_what_was_changed(void **state) {
  static const struct {
    const char *sql, *words;
  } cases[] = {
      {"UPDATE decision SET class = class + 1 WHERE number = 3", "decision 3: arm "},
      {"UPDATE decision SET radius = radius * 0.999 WHERE number = 2", "decision 2: arm "},
      {"UPDATE decision SET arm = (arm + 1) % 6 WHERE number = 1", "decision 1: arm "},
      {"DELETE FROM decision WHERE number = (SELECT max(number) FROM decision)",
       "no decision on record; recomputed: arm"},
      {"UPDATE standing SET class = 1 WHERE arm = 1", "arm 2 stands in class 1"},
      {"UPDATE release SET noisy_sum = noisy_sum + 400000000 WHERE number = 4", "recomputed"},
      {"UPDATE plan_want SET tokens = tokens + 1 WHERE plan = 2 AND position = 0", "plan 2 asks for 1001 tokens"},
      {"UPDATE release SET arm = 5 WHERE number = 2", "does not ask for"},
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    remove_database();
    world_fini(ranked());
    change(cases[i].sql);
    struct heard heard = replayed();
    assert_false(heard.verdict.agrees);
    if (strstr(heard.verdict.first.text, cases[i].words) == NULL) {
      fail_msg("\"%s\"; expected \"%s\"", heard.verdict.first.text, cases[i].words);
    }
  }
}

static void an_export_is_verified_without_decisions(void **state) {
  struct world *w = ranked();
  struct cv_replay_records records = {.spec = &w->spec,
                                      .seed = w->seed,
                                      .plan = w->plan,
                                      .plans = w->plans,
                                      .release = w->release,
                                      .releases = w->releases,
                                      .end = w->result,
                                      .standing = w->standing,
                                      .standings = FAKE_ARMS};
  struct cv_replay_verdict verdict;
  struct cv_why why;
  assert_int_equal(cv_replay_records(&records, &verdict, &why), CV_OK);
  assert_string_equal(verdict.first.text, "");
  assert_true(verdict.agrees);
  /* A third-party that favours an arm. */
  w->standing[1].rank_class = 1;
  assert_int_equal(cv_replay_records(&records, &verdict, &why), CV_OK);
  assert_false(verdict.agrees);
  assert_non_null(strstr(verdict.first.text, "arm 2 stands in class 1"));
  w->standing[1].rank_class = 3;
  /* One that stops early and reports the campaign as complete. */
  records.plans--;
  uint64_t last = w->plan[w->plans - 1].number;
  while (w->release[records.releases - 1].plan == last) {
    records.releases--;
  }
  assert_int_equal(cv_replay_records(&records, &verdict, &why), CV_OK);
  assert_false(verdict.agrees);
  assert_non_null(strstr(verdict.first.text, "is on record as complete"));
  /* And a spec that no policy can run. */
  (void)snprintf(w->spec.policy.name, CV_PARAM_TEXT, "no-policy");
  assert_int_equal(cv_replay_records(&records, &verdict, &why), CV_ERR_NOT_FOUND);
  assert_non_null(strstr(why.text, "unknown policy"));
  world_fini(w);
}

static void replay_does_not_look_for_plans_that_never_were(void **state) {
  static const char *const sql[] = {"UPDATE campaign SET last_plan = 9223372036854775807",
                                    "DELETE FROM plan_want WHERE plan = 2"};
  for (size_t i = 0; i < CV_COUNT(sql); i++) {
    struct heard heard = {0};
    struct cv_why why = {.text = ""};
    remove_database();
    world_fini(ranked());
    change(sql[i]);
    assert_int_equal(cv_replay_database(path, hear, NULL, &heard, &why), CV_ERR_DAMAGED);
    assert_non_null(strstr(why.text, "is missing"));
    assert_int_equal(heard.campaigns, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(a_crash_at_any_commit_changes_nothing, fresh),
      cmocka_unit_test_setup(a_plan_whose_acceptance_is_lost_still_counts_as_the_policys, fresh),
      cmocka_unit_test_setup(tables_can_be_read_by_a_person, fresh),
      cmocka_unit_test_setup(names_are_shown_when_they_are_shared, fresh),
      cmocka_unit_test_setup(a_closed_campaign_is_remembered, fresh),
      cmocka_unit_test_setup(a_damaged_database_is_refused_with_one_line, fresh),
      cmocka_unit_test_setup(what_a_disk_has_changed_is_refused, fresh),
      cmocka_unit_test_setup(replay_agrees_with_what_was_decided, fresh),
      cmocka_unit_test_setup(replay_agrees_at_every_moment, fresh),
      cmocka_unit_test_setup(replay_finds_what_was_changed, fresh),
      cmocka_unit_test_setup(replay_does_not_look_for_plans_that_never_were, fresh),
      cmocka_unit_test_setup(an_export_is_verified_without_decisions, fresh),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
