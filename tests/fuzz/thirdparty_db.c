/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The third-party's database with changed cells (cells.h): a campaign after two plans. The daemon starts and talks to
 * its broker, or says in one line why it cannot; so does replay.
 */
#include "common/crypto/crypto.h"
#include "tests/fuzz/cells.h"
#include "thirdparty/core.h"
#include "thirdparty/replay.h"
#include "thirdparty/store.h"

enum { ARMS = 3 };

static const char *path; /* NULL: no template yet */

static void note(void *data, const struct cv_note *note) {
  (void)data;
  fuzz_line(note->text);
}

static struct cv_thirdparty *thirdparty_new(struct cv_rng_seeded *rng) {
  const struct cv_thirdparty_config setup = {
      .digest = cv_sha256, .rng = &rng->rng, .program = "fuzz", .note = note, .limits = CV_THIRDPARTY_DEFAULTS};
  struct cv_thirdparty *thirdparty;
  cv_rng_seeded_init(rng, 1, 0, 0, 0);
  CV_REQUIRE(cv_thirdparty_new(&setup, &thirdparty) == CV_OK);
  return thirdparty;
}

/* ---- the template ---- */

static const struct cv_hello hello = {.present = true, .version = CV_WIRE_VERSION, .program = "fuzz"};

/* Stores, and delivers the outputs; the latest plan is accepted and released. */
static void turn(struct cv_thirdparty *thirdparty, struct cv_thirdparty_conn *conn, struct cv_thirdparty_store *store,
                 uint64_t *releases) {
  struct cv_thirdparty_batch batch;
  struct cv_thirdparty_out out;
  struct cv_why why = {.text = ""};
  struct cv_rank_release release[ARMS];
  size_t n = 0;
  CV_REQUIRE(cv_thirdparty_flush(thirdparty, &batch) == CV_OK &&
             cv_thirdparty_store_commit(store, &batch, &why) == CV_OK);
  cv_thirdparty_batch_fini(&batch);
  cv_thirdparty_stored(thirdparty);
  while (cv_thirdparty_next_out(thirdparty, &out)) {
    for (size_t i = 0; i < out.frame->plans; i++) {
      const struct cv_plan *plan = &out.frame->plan[i].plan;
      for (n = 0; n < plan->wants && n < ARMS; n++) {
        release[n] = (struct cv_rank_release){.campaign = 1};
        release[n].release = (struct cv_release){.number = ++*releases,
                                                 .plan = plan->number,
                                                 .arm = plan->want[n].arm,
                                                 .tokens = plan->number * plan->want[n].tokens,
                                                 .noise = {1, {{2, 1}}}};
        release[n].release.noisy_sum = (int64_t)(release[n].release.tokens << (17 + n));
      }
    }
  }
  struct cv_rank_number accept = {.campaign = 1, .number = n == 0 ? 0 : release[0].release.plan};
  const struct cv_rank_frame frame = {.releases = n, .release = release, .accepted = 1, .accept = &accept};
  const struct cv_rank_frame first = {.accepted = 1, .accept = &accept};
  if (n > 0) {
    CV_REQUIRE(cv_thirdparty_on_rank(thirdparty, conn, &first) == CV_OK &&
               cv_thirdparty_on_rank(thirdparty, conn, &frame) == CV_OK);
  }
}

static void converse(struct cv_thirdparty_store *store) {
  struct cv_rng_seeded rng;
  struct cv_thirdparty *thirdparty = thirdparty_new(&rng);
  struct cv_thirdparty_conn *conn;
  const char *names[ARMS] = {"a", "b", "c"};
  struct cv_rank_open open = {.spec = {.name = "fuzz",
                                       .arms = ARMS,
                                       .names = names,
                                       .epsilon_micro = 250000,
                                       .tokens_per_worker = 1,
                                       .tokens = 1 << 30,
                                       .policy = {.name = "ppar"},
                                       .mechanism = {.name = "hybrid"},
                                       .privatizer = {.name = "none"}},
                              .position = {.campaign = 1}};
  uint64_t releases = 0;
  CV_REQUIRE(cv_params_set_number(&open.spec.policy.params, "alpha", 0.05) == CV_OK);
  CV_REQUIRE(cv_params_set_number(&open.spec.policy.params, "tokens_per_round", 10) == CV_OK);
  CV_REQUIRE(cv_thirdparty_join(thirdparty, "alice", NULL, &conn) == CV_OK);
  CV_REQUIRE(cv_thirdparty_on_rank(thirdparty, conn,
                                   &(struct cv_rank_frame){.hello = hello, .opens = 1, .open = &open}) == CV_OK);
  for (int i = 0; i < 3; i++) {
    turn(thirdparty, conn, store, &releases);
  }
  CV_REQUIRE(releases >= 2 * ARMS);
  cv_thirdparty_free(thirdparty);
}

static void make_template(void) {
  struct cv_thirdparty_store *store;
  struct cv_why why = {.text = ""};
  path = cells_path();
  CV_REQUIRE(cv_thirdparty_store_open(path, NULL, &store, &why) == CV_OK);
  converse(store);
  cv_thirdparty_store_close(store);
  cells_keep();
}

/* ---- an input ---- */

static enum cv_err restore(void *data, const struct cv_stored_campaign *stored, struct cv_why *why) {
  return cv_thirdparty_restore(data, stored, why);
}

static void come_up(void) {
  struct cv_rng_seeded rng;
  struct cv_thirdparty_store *store;
  struct cv_thirdparty_conn *conn;
  struct cv_thirdparty_out out;
  struct cv_thirdparty_batch batch;
  struct cv_why why = {.text = ""};
  if (cv_thirdparty_store_open(path, NULL, &store, &why) != CV_OK) {
    fuzz_line(why.text);
    return;
  }
  struct cv_thirdparty *thirdparty = thirdparty_new(&rng);
  if (cv_thirdparty_store_load(store, restore, thirdparty, &why) == CV_OK) {
    CV_REQUIRE(cv_thirdparty_join(thirdparty, "alice", NULL, &conn) == CV_OK);
    CV_REQUIRE(cv_thirdparty_on_rank(thirdparty, conn, &(struct cv_rank_frame){.hello = hello}) == CV_OK);
    CV_REQUIRE(cv_thirdparty_flush(thirdparty, &batch) == CV_OK);
    cv_thirdparty_batch_fini(&batch);
    cv_thirdparty_stored(thirdparty);
    while (cv_thirdparty_next_out(thirdparty, &out)) {
    }
  } else {
    fuzz_line(why.text);
  }
  cv_thirdparty_free(thirdparty);
  cv_thirdparty_store_close(store);
}

static void hear_verdict(void *data, const struct cv_stored_campaign *campaign,
                         const struct cv_replay_verdict *verdict) {
  (void)data;
  (void)campaign;
  if (!verdict->agrees) {
    fuzz_line(verdict->first.text);
  }
}

static void hear_stranger(void *data, const char *what) {
  fuzz_line(what);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  struct cv_reader in = cv_reader_over(bytes, n);
  struct cv_why why = {.text = ""};
  if (path == NULL) {
    make_template();
  }
  cells_write(&in);
  if (cv_replay_database(path, hear_verdict, hear_stranger, NULL, &why) != CV_OK) {
    fuzz_line(why.text);
  }
  come_up();
  return 0;
}
