/* SPDX-License-Identifier: Apache-2.0 */
#include "cobroker/examine.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "broker/both/claims.h"
#include "broker/both/recovering.h"
#include "cobroker/campaign.h"
#include "cobroker/repair.h"
#include "cobroker/state.h"
#include "common/base/clock.h"
#include "common/base/finding.h"
#include "common/base/grid.h"
#include "common/net/tls.h"

static const char restore_advice[] =
    "check seal_key first; if it is right, restore a copy and run crowdveil recover; without a copy: crowdveil recover "
    "--lost";
static const char recover_advice[] = "stop the co-broker and run crowdveil recover CONFIG --broker BROKER.YAML";

/* What the broker has stored of an open campaign, for its recovery: every batch and closing before it was sent, a plan
 * before the next one, the releases of a plan before the next one, and the tokens of a batch before it says so. */
static void tell_open(const struct cv_cobroker_campaign *campaign) {
  uint64_t undone = campaign->undone_tokens < campaign->tokens ? campaign->undone_tokens : campaign->tokens;
  const struct cv_recover_claim claim = {.campaign = campaign->id,
                                         .releases = campaign->closings - campaign->closed,
                                         .plans = campaign->plans > 0 ? campaign->plans - 1 : 0,
                                         .closings = campaign->closings,
                                         .batches = campaign->batches,
                                         .tokens = campaign->tokens - undone,
                                         .worker_micro = cv_privacy_worker_micro(&campaign->privacy, &campaign->spec)};
  cv_claims_tell(&claim, CV_END_NONE);
}

/* Of a campaign that has ended, only that there was one: the broker ends it with what it has. A frozen one is told in
 * full, because the broker may have lost some of it. */
static void tell_ended(const struct cv_cobroker_ended *ended) {
  bool is_frozen = ended->end == CV_END_FROZEN;
  const struct cv_recover_claim claim = {.campaign = ended->id,
                                         .releases = is_frozen ? ended->totals.releases : 0,
                                         .tokens = is_frozen ? ended->totals.tokens : 0,
                                         .worker_micro = ended->totals.promised_micro};
  cv_claims_tell(&claim, ended->end);
  if (is_frozen) {
    cv_finding(CV_FINDING_NOTE, "", "campaign %u: frozen: %s", ended->id, ended->why);
  }
}

static void tell_campaigns(const struct cv_cobroker *core) {
  for (const struct cv_cobroker_campaign *each = core->campaigns; each != NULL; each = each->hh.next) {
    tell_open(each);
  }
  for (const struct cv_cobroker_ended *each = core->archive.all; each != NULL; each = each->hh.next) {
    tell_ended(each);
  }
  cv_fact("read");
}

static bool examine_marks(const struct cv_store_marks *marks, const struct cv_cobroker_settings *settings) {
  unsigned long long have = marks->database.commit, want = marks->anchor.commit;
  if (!marks->is_anchored) {
    cv_finding(CV_FINDING_WRONG, "restore it; if it is lost: crowdveil recover --lost", "anchor %s: missing",
               settings->anchor);
  } else if (!marks->is_same) {
    cv_finding(CV_FINDING_WRONG, "restore the right one; if it is lost: crowdveil recover --lost",
               "anchor %s: of another database or history", settings->anchor);
  } else if (have < want) {
    cv_finding(CV_FINDING_WRONG, recover_advice, "database: an older copy, at commit %llu; its anchor %s says %llu",
               have, settings->anchor, want);
  } else {
    cv_finding(CV_FINDING_OK, "", "anchor %s: agrees with the database at commit %llu", settings->anchor, have);
    return true;
  }
  return false;
}

/* Loads all rows as a start does, with the same checks between them. */
static bool examine_rows(struct cv_cobroker_store *store, const struct cv_cobroker_settings *settings) {
  struct cv_cobroker_config config = {.limits = cv_cobroker_settings_limits(settings), .digest = cv_sha256};
  struct cv_cobroker *core = NULL;
  struct cv_why why = {.text = "out of memory"};
  /* The key of the own certificate is not known here: a campaign of other keys only ends when the daemon starts. */
  enum cv_err err = cv_cobroker_new(&config, &core);
  if (err == CV_OK) {
    core->examines = true;
    err = cv_cobroker_store_load(store, core, cv_clock_mono_ms(), cv_clock_wall_ms(), &why);
  }
  if (err != CV_OK) {
    cv_finding(CV_FINDING_WRONG, restore_advice, "%s", why.text);
  } else {
    tell_campaigns(core);
    cv_finding(CV_FINDING_OK, "", "ledger: covers all %" PRIu64 " closings of %" PRIu64 " campaigns",
               core->totals.releases - (core->recoveries > 0 ? core->recovery.added.releases : 0),
               (uint64_t)HASH_COUNT(core->campaigns) + core->archive.count);
    if (core->accounts.floor_micro > 0) {
      cv_finding(CV_FINDING_NOTE, "", "ledger: %u recoveries have charged epsilon %g of %g to every worker",
                 core->recoveries, (double)core->accounts.floor_micro / (double)CV_MICRO,
                 settings->limit_worker_epsilon);
    }
  }
  cv_cobroker_free(core);
  return err == CV_OK;
}

static bool examine_database(const struct cv_cobroker_settings *settings, const char *database,
                             const struct cv_ring *ring) {
  const struct cv_store_files files = {.database = database, .anchor = settings->anchor, .readonly = true};
  struct cv_store_marks marks;
  struct cv_cobroker_store *store;
  struct cv_why why;
  enum cv_err err = cv_cobroker_store_open(&files, ring, &store, &why);
  if (err == CV_ERR_STATE) {
    /* crowdveil doctor asks the running program instead, at this address. */
    cv_fact("live\t%s", settings->daemon.admin == NULL ? "" : settings->daemon.admin);
    cv_finding(CV_FINDING_NOTE, "stop the program to examine its database", "database %s: in use by a running program",
               database);
    return true;
  }
  if (err != CV_OK) {
    cv_finding(CV_FINDING_WRONG, cv_finding_advice(err, restore_advice), "%s", why.text);
    return false;
  }
  cv_cobroker_store_marks(store, &marks);
  cv_finding(CV_FINDING_OK, "", "database %s: complete, every row as it was stored", database);
  if (cv_cobroker_store_strangers(store, cv_finding_stranger, &database, &why) != CV_OK) {
    cv_finding(CV_FINDING_WARNING, "", "%s", why.text);
  }
  bool good = examine_marks(&marks, settings);
  good = examine_rows(store, settings) && good;
  cv_cobroker_store_close(store);
  return good;
}

static bool examine_new(const struct cv_cobroker_settings *settings, const char *database) {
  struct cv_anchor_mark mark;
  struct cv_why why;
  bool exists = false;
  enum cv_err err = cv_anchor_peek(settings->anchor, &exists, &mark, &why);
  if (err != CV_OK) {
    cv_finding(CV_FINDING_WRONG, cv_finding_advice(err, "restore the anchor as it was"), "%s", why.text);
    return false;
  }
  if (exists) {
    cv_finding(CV_FINDING_WRONG, "restore a copy and run crowdveil recover; without a copy: crowdveil recover --lost",
               "database %s: missing, but its anchor is at commit %" PRIu64, database, mark.commit);
    return false;
  }
  cv_finding(CV_FINDING_NOTE, "", "database %s: does not exist yet; the first start creates it", database);
  cv_fact("read");
  return true;
}

static void examine_ring(const struct cv_cobroker_settings *settings, const struct cv_ring *ring) {
  if (ring->n == 1) {
    cv_finding(CV_FINDING_OK, "", "key %s: key %s, private", settings->seal_key, cv_ring_names(ring).text);
  } else {
    cv_finding(CV_FINDING_NOTE, "finish the rotation: crowdveil seal rotate CONFIG",
               "key %s: %zu keys (%s), private; the first one is in use", settings->seal_key, ring->n,
               cv_ring_names(ring).text);
  }
}

static bool examine_settings(const struct cv_cobroker_settings *settings) {
  struct cv_digest key;
  struct cv_why why;
  bool good = cv_cobroker_settings_key(settings, &key, &why) == CV_OK;
  if (good) {
    cv_claims_tell_other(&key);
  } else {
    cv_finding(CV_FINDING_WRONG, "ask the broker's operator for it", "%s", why.text);
  }
  if (settings->noise_seeded) {
    cv_finding(CV_FINDING_WRONG, "remove unsafe_noise_seeded", "noise is seeded: this co-broker protects no worker");
  }
  return good && !settings->noise_seeded;
}

int cv_cobroker_examine(const struct cv_cobroker_settings *settings) {
  char database[CV_COBROKER_PATH_BYTES];
  struct cv_ring ring;
  struct cv_why why;
  struct stat info;
  if (!cv_finding_folder(settings->state)) {
    return 1;
  }
  if (cv_cobroker_settings_database(settings, database, &why) != CV_OK) {
    cv_finding(CV_FINDING_WRONG, "move the state folder", "%s", why.text);
    return 1;
  }
  bool good = examine_settings(settings), exists = cv_cobroker_store_exists(database);
  if (!exists && stat(settings->seal_key, &info) != 0 && errno == ENOENT) {
    cv_finding(CV_FINDING_NOTE, "", "key %s: does not exist yet; the first start creates it", settings->seal_key);
    return examine_new(settings, database) && good ? 0 : 1;
  }
  enum cv_err err = cv_ring_read(settings->seal_key, &ring, &why);
  if (err != CV_OK) {
    static const char advice[] = "restore it with mode 0600; if it is lost: crowdveil recover --lost";
    cv_finding(CV_FINDING_WRONG, cv_finding_advice(err, advice), "key %s", why.text);
    return 1;
  }
  examine_ring(settings, &ring);
  good = (exists ? examine_database(settings, database, &ring) : examine_new(settings, database)) && good;
  cv_ring_fini(&ring);
  return good ? 0 : 1;
}

enum cv_err cv_cobroker_check_copy(const void *settings, const char *path, uint64_t *ret_commit, struct cv_why *why) {
  const struct cv_cobroker_settings *own = settings;
  const struct cv_store_files files = {.database = path, .anchor = own->anchor, .readonly = true};
  struct cv_store_marks marks;
  struct cv_cobroker_store *store;
  struct cv_ring ring;
  CV_TRY(cv_ring_read(own->seal_key, &ring, why));
  enum cv_err err = cv_cobroker_store_open(&files, &ring, &store, why);
  cv_ring_fini(&ring);
  CV_TRY(err);
  cv_cobroker_store_marks(store, &marks);
  cv_cobroker_store_close(store);
  *ret_commit = marks.database.commit;
  return CV_OK;
}

/* ---- recover ---- */

/* Reads the facts of the broker, which knows this co-broker's key. */
static enum cv_err ask_broker(const struct cv_cobroker_settings *settings, struct cv_recover_claims *claims,
                              struct cv_why *why) {
  const struct cv_tls_files files = CV_CHANNEL_FILES(&settings->daemon.channel);
  const struct cv_tls_peers nobody = {0};
  struct cv_tls *tls;
  if (settings->recover_broker == NULL) {
    return CV_OK;
  }
  CV_TRY(cv_tls_new(&files, CV_ROLE_COBROKER, nobody, false, &tls, why));
  enum cv_err err =
      cv_claims_read(settings->recover_broker, "crowdveil-broker", &cv_tls_identity(tls)->key, claims, why);
  cv_tls_unref(tls);
  return err;
}

int cv_cobroker_recover_state(const struct cv_cobroker_settings *settings) {
  char database[CV_COBROKER_PATH_BYTES];
  const struct cv_cobroker_config config = {.limits = cv_cobroker_settings_limits(settings), .digest = cv_sha256};
  struct cv_recovering recovering = {.party = &cv_cobroker_repair,
                                     .program = "crowdveil-cobroker",
                                     .name = "co-broker",
                                     .database = database,
                                     .anchor = settings->anchor,
                                     .seal_key = settings->seal_key,
                                     .audit = settings->daemon.audit,
                                     .lost = settings->lost,
                                     .config = &config,
                                     .worker_micro = config.limits.worker_epsilon_micro};
  struct cv_why why;
  int status = 1;
  enum cv_err err = cv_cobroker_settings_database(settings, database, &why);
  err = err == CV_OK ? ask_broker(settings, &recovering.claims, &why) : err;
  if (err == CV_OK) {
    status = cv_recovering_run(&recovering);
  } else {
    cv_finding(CV_FINDING_WRONG, "", "%s", why.text);
  }
  cv_recover_claims_fini(&recovering.claims);
  return status;
}
