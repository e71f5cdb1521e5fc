/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/examine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "broker/both/claims.h"
#include "broker/both/recovering.h"
#include "broker/campaign.h"
#include "broker/repair.h"
#include "broker/shared.h"
#include "broker/state.h"
#include "broker/two.h"
#include "common/base/clock.h"
#include "common/base/finding.h"
#include "common/base/fingerprint.h"
#include "common/base/grid.h"
#include "common/base/text.h"
#include "common/net/tls.h"

static const char recover_advice[] =
    "stop the broker and run crowdveil recover CONFIG (with --thirdparty and --cobroker, if there are such)";

static double epsilon(uint64_t micro) {
  return (double)micro / (double)CV_MICRO;
}

/* ---- examine ---- */

/* Warns of campaigns that the configured third-party may not serve. */
static void tell_awaited(const struct cv_broker *core, const char *thirdparty) {
  for (const struct cv_broker_campaign *campaign = core->open; campaign != NULL; campaign = campaign->next_open) {
    if (campaign->thirdparty[0] != '\0' && strcmp(campaign->thirdparty, thirdparty) != 0) {
      cv_finding(CV_FINDING_WARNING, "configure that third-party until the campaign ends, or cancel the campaign",
                 "campaign %u \"%s\": waits for thirdparty/%s, which opened it; the configuration names thirdparty/%s",
                 campaign->id, cv_text_shown(campaign->spec.name).text, campaign->thirdparty, thirdparty);
    }
  }
}

/* The co-broker has judged what is booked here, and made the half of each release. */
static void tell_share(const struct cv_broker_campaign *campaign) {
  const struct cv_recover_claim claim = {
      .campaign = campaign->id,
      .releases = campaign->releases,
      .plans = campaign->plans,
      .closings = campaign->releases,
      .batches = campaign->phase < CV_PHASE_STOPPING ? campaign->two->docket.settled : 0,
      .tokens = campaign->tokens,
      .worker_micro = cv_privacy_worker_micro(&campaign->privacy, &campaign->spec)};
  cv_claims_tell(&claim, campaign->end);
}

static void tell_campaign(const struct cv_broker_campaign *campaign) {
  cv_fact("campaign\t-\t%u\t%s\t%zu\t%s\t%zu\t%s", campaign->id, cv_end_text(campaign->end), campaign->releases,
          cv_fingerprint_of(&campaign->releases_hash).text, campaign->plans,
          cv_fingerprint_of(&campaign->plans_hash).text);
  if (campaign->two != NULL) {
    tell_share(campaign);
  }
}

/* The largest number of a campaign that may be missing, because it was purged or forgotten. */
static void tell_gone(const struct cv_broker *core) {
  uint64_t last = core->archive.past.totals.campaigns;
  for (const struct cv_ended *ended = core->archive.all; ended != NULL; ended = ended->hh.next) {
    last = ended->purged && ended->id > last ? ended->id : last;
  }
  cv_fact("gone\t%" PRIu64, last);
}

/* Prints open campaigns, then reads and prints ended ones one by one. The fact "read" comes last: all could be read. */
static enum cv_err tell_campaigns(struct cv_broker_store *store, struct cv_broker *core, struct cv_why *why) {
  for (const struct cv_broker_campaign *campaign = core->open; campaign != NULL; campaign = campaign->next_open) {
    tell_campaign(campaign);
  }
  for (const struct cv_ended *ended = core->archive.all; ended != NULL; ended = ended->hh.next) {
    if (!ended->purged) {
      CV_TRY(cv_broker_store_fetch(store, core, ended->id, why));
      struct cv_broker_campaign *campaign = cv_broker_campaign_find(core, ended->id);
      tell_campaign(campaign);
      cv_broker_campaign_drop(core, campaign);
    }
  }
  tell_gone(core);
  cv_fact("read");
  return CV_OK;
}

static bool examine_marks(const struct cv_store_marks *marks, const struct cv_broker_settings *settings) {
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

static bool examine_rows(struct cv_broker_store *store, const struct cv_broker_settings *settings) {
  /* Loads all rows as a start does, with the same checks between them. */
  const struct cv_broker_config config = {.limits = cv_broker_settings_limits(settings), .digest = cv_sha256};
  struct cv_broker *core = NULL;
  struct cv_why why = {.text = "out of memory"};
  enum cv_err err = cv_broker_new(&config, &core);
  if (err == CV_OK) {
    err = cv_broker_store_load(store, core, cv_clock_mono_ms(), cv_clock_wall_ms(), &why);
  }
  if (err == CV_OK) {
    err = tell_campaigns(store, core, &why);
  }
  if (err != CV_OK) {
    cv_finding(CV_FINDING_WRONG, "check seal_key first; if it is right, restore a copy and run crowdveil recover", "%s",
               why.text);
  } else {
    cv_finding(CV_FINDING_OK, "", "ledger: covers all %" PRIu64 " releases of %" PRIu64 " campaigns",
               core->totals.releases - (core->recoveries > 0 ? core->recovery.added.releases : 0),
               (uint64_t)core->open_count + core->archive.count);
    if (core->archive.past.count > 0) {
      cv_finding(CV_FINDING_NOTE, "", "%" PRIu64 " ended campaigns are forgotten; their costs remain charged",
                 core->archive.past.count);
    }
    if (core->accounts.floor_micro > 0) {
      cv_finding(CV_FINDING_NOTE, "", "ledger: %u recoveries have charged epsilon %g of %g to every worker",
                 core->recoveries, epsilon(core->accounts.floor_micro), settings->limit_worker_epsilon);
    }
    tell_awaited(core, settings->thirdparty_name);
  }
  cv_broker_free(core);
  return err == CV_OK;
}

/* They are told, and do not make a state wrong: nothing runs what is added to a file. */
static bool examine_strangers(struct cv_broker_store *store, const char *database) {
  struct cv_why why;
  if (cv_broker_store_strangers(store, cv_finding_stranger, &database, &why) != CV_OK) {
    cv_finding(CV_FINDING_WRONG, recover_advice, "%s", why.text);
    return false;
  }
  return true;
}

static bool examine_database(const struct cv_broker_settings *settings, const char *database,
                             const struct cv_ring *ring) {
  const struct cv_store_files files = {.database = database, .anchor = settings->anchor, .readonly = true};
  struct cv_store_marks marks;
  struct cv_broker_store *store;
  struct cv_why why;
  enum cv_err err = cv_broker_store_open(&files, ring, &store, &why);
  if (err == CV_ERR_STATE) {
    /* crowdveil doctor asks the running program instead, at this address. */
    cv_fact("live\t%s", settings->daemon.admin == NULL ? "" : settings->daemon.admin);
    cv_finding(CV_FINDING_NOTE, "stop the program to examine its database", "database %s: in use by a running program",
               database);
    return true;
  }
  if (err != CV_OK) {
    static const char advice[] =
        "check seal_key first; if it is right, restore a copy and run crowdveil recover; "
        "without a copy: crowdveil recover --lost";
    cv_finding(CV_FINDING_WRONG, cv_finding_advice(err, advice), "%s", why.text);
    return false;
  }
  cv_broker_store_marks(store, &marks);
  cv_finding(CV_FINDING_OK, "", "database %s: complete, every row as it was stored", database);
  bool good = examine_strangers(store, database);
  good = examine_marks(&marks, settings) && good;
  good = examine_rows(store, settings) && good;
  cv_broker_store_close(store);
  return good;
}

static bool database_path(const struct cv_broker_settings *settings, char *to, size_t size) {
  if (snprintf(to, size, "%s/broker.db", settings->state) >= (int)size) {
    cv_finding(CV_FINDING_WRONG, "move the state folder", "state: path too long");
    return false;
  }
  return true;
}

static bool examine_new(const struct cv_broker_settings *settings, const char *database) {
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

static void examine_place(const struct cv_broker_settings *settings) {
  size_t n = strlen(settings->state);
  if (strncmp(settings->anchor, settings->state, n) == 0 && settings->anchor[n] == '/') {
    cv_finding(CV_FINDING_WARNING, "move it to another file system, and keep copies of `state` elsewhere",
               "anchor %s: in the state folder, so an old copy of the folder restores it, too", settings->anchor);
  }
  if (strncmp(settings->seal_key, settings->state, n) == 0 && settings->seal_key[n] == '/') {
    cv_finding(CV_FINDING_WARNING, "move it out of the folder: a copy of the folder has the key to its sums",
               "key %s: in the state folder", settings->seal_key);
  }
}

static void examine_ring(const struct cv_broker_settings *settings, const struct cv_ring *ring) {
  if (ring->n == 1) {
    cv_finding(CV_FINDING_OK, "", "key %s: key %s, private", settings->seal_key, cv_ring_names(ring).text);
  } else {
    cv_finding(CV_FINDING_NOTE,
               "finish the rotation: crowdveil seal rotate CONFIG; keys added for an old copy stay "
               "until that copy is recovered",
               "key %s: %zu keys (%s), private; the first one is in use", settings->seal_key, ring->n,
               cv_ring_names(ring).text);
  }
}

/* Whom the shares of the campaigns are about. */
static void tell_cobroker(const struct cv_broker_settings *settings) {
  struct cv_digest key = {{0}};
  if (settings->cobroker_key != NULL && settings->cobroker_key[0] != '\0' &&
      cv_broker_settings_cobroker(settings, &key, NULL) == CV_OK) {
    cv_claims_tell_other(&key);
  }
}

/* A database that is lost, or of which no broker has an anchor. */
static bool examine_shared(const struct cv_broker_settings *settings, const struct cv_ring *ring) {
  struct cv_shared shared;
  struct cv_anchor_mark mark;
  struct cv_why why;
  const struct cv_shared_name name = cv_shared_name(settings);
  bool exists = false;
  enum cv_err err = cv_anchor_peek(settings->anchor, &exists, &mark, &why);
  if (err != CV_OK) {
    cv_finding(CV_FINDING_WRONG, cv_finding_advice(err, "restore the anchor as it was"), "%s", why.text);
    return false;
  }
  err = cv_shared_open(settings, ring, CV_REMOTE_LOOK, &shared, &why);
  if (err == CV_ERR_STATE) {
    cv_fact("live\t%s", settings->daemon.admin == NULL ? "" : settings->daemon.admin);
    cv_finding(CV_FINDING_NOTE, "stop all brokers of this store to examine it", "database %s: a broker is active",
               name.text);
    return true;
  }
  if (err == CV_ERR_NOT_FOUND && !exists) {
    cv_finding(CV_FINDING_NOTE, "", "%s", why.text);
    cv_fact("read");
    return true;
  }
  if (err != CV_OK) {
    static const char advice[] =
        "check store and seal_key first; if they are right, restore a backup and run crowdveil "
        "recover";
    cv_finding(CV_FINDING_WRONG, cv_finding_advice(err, advice), "%s", why.text);
    return false;
  }
  cv_finding(CV_FINDING_OK, "", "database %s: term %" PRIu64 " was the last, of %s", name.text, shared.view.term,
             shared.view.holder);
  bool good = shared.view.disputed[0] == '\0';
  if (!good) {
    cv_finding(CV_FINDING_WRONG, recover_advice, "database %s: disputed: %s", name.text, shared.view.disputed);
  }
  good = examine_strangers(shared.store, name.text) && good;
  good = examine_marks(&shared.marks, settings) && good;
  good = examine_rows(shared.store, settings) && good;
  cv_shared_close(&shared);
  return good;
}

/* All brokers of a store have the same key, which --migrate has made. */
static int examine_server(const struct cv_broker_settings *settings) {
  struct cv_ring ring;
  struct cv_why why;
  if (settings->noise_seeded) {
    cv_finding(CV_FINDING_WRONG, "remove unsafe_noise_seeded", "noise is seeded: this broker protects no worker");
  }
  enum cv_err err = cv_ring_read(settings->seal_key, &ring, &why);
  if (err != CV_OK) {
    static const char advice[] = "copy it from another broker of this store, with mode 0600";
    cv_finding(CV_FINDING_WRONG, cv_finding_advice(err, advice), "key %s", why.text);
    return 1;
  }
  examine_ring(settings, &ring);
  bool good = examine_shared(settings, &ring);
  cv_ring_fini(&ring);
  return good && !settings->noise_seeded ? 0 : 1;
}

int cv_broker_examine(const struct cv_broker_settings *settings) {
  if (settings->store != NULL) {
    return examine_server(settings);
  }
  char database[4096];
  struct cv_ring ring;
  struct cv_why why;
  if (!cv_finding_folder(settings->state) || !database_path(settings, database, sizeof(database))) {
    return 1;
  }
  examine_place(settings);
  tell_cobroker(settings);
  if (settings->noise_seeded) {
    cv_finding(CV_FINDING_WRONG, "remove unsafe_noise_seeded", "noise is seeded: this broker protects no worker");
  }
  bool exists = cv_broker_store_exists(database);
  struct stat info;
  if (!exists && stat(settings->seal_key, &info) != 0 && errno == ENOENT) {
    cv_finding(CV_FINDING_NOTE, "", "key %s: does not exist yet; the first start creates it", settings->seal_key);
    return examine_new(settings, database) ? 0 : 1;
  }
  enum cv_err err = cv_ring_read(settings->seal_key, &ring, &why);
  if (err != CV_OK) {
    static const char advice[] = "restore it with mode 0600; if it is lost: crowdveil recover --lost";
    cv_finding(CV_FINDING_WRONG, cv_finding_advice(err, advice), "key %s", why.text);
    return 1;
  }
  examine_ring(settings, &ring);
  bool good = exists ? examine_database(settings, database, &ring) : examine_new(settings, database);
  cv_ring_fini(&ring);
  return good && !settings->noise_seeded ? 0 : 1;
}

enum cv_err cv_broker_check_copy(const void *settings, const char *path, uint64_t *ret_commit, struct cv_why *why) {
  const struct cv_broker_settings *own = settings;
  const struct cv_store_files files = {.database = path, .anchor = own->anchor, .readonly = true};
  struct cv_store_marks marks;
  struct cv_broker_store *store;
  struct cv_ring ring;
  CV_TRY(cv_ring_read(own->seal_key, &ring, why));
  enum cv_err err = cv_broker_store_open(&files, &ring, &store, why);
  cv_ring_fini(&ring);
  CV_TRY(err);
  cv_broker_store_marks(store, &marks);
  cv_broker_store_close(store);
  *ret_commit = marks.database.commit;
  return CV_OK;
}

/* ---- recover ---- */

/* Parses "fact\tcampaign\tBROKER\tNUMBER\tSTATE\tRELEASES\tHASH\tPLANS\tHASH\tWORKER_MICRO" of this broker; false for
 * any other line. */
static bool read_claim(char *line, const char *name, struct cv_recover_claim *ret) {
  enum { FIELDS = 10 };
  char *field[FIELDS], *save = NULL;
  size_t n = 0;
  for (char *at = strtok_r(line, "\t\n", &save); at != NULL && n < FIELDS; at = strtok_r(NULL, "\t\n", &save)) {
    field[n++] = at;
  }
  /* strtok_r() merges empty fields, so a line with one has too few and is skipped. */
  if (n != FIELDS || strcmp(field[0], "fact") != 0 || strcmp(field[1], "campaign") != 0 ||
      strcmp(field[2], name) != 0) {
    return false;
  }
  *ret = (struct cv_recover_claim){.campaign = strtoull(field[3], NULL, 10),
                                   .releases = strtoull(field[5], NULL, 10),
                                   .plans = strtoull(field[7], NULL, 10),
                                   .worker_micro = strtoull(field[9], NULL, 10)};
  return ret->campaign > 0 && ret->campaign <= UINT32_MAX;
}

static enum cv_err read_claims(const char *path, const char *name, struct cv_recover_claims *claims,
                               struct cv_why *why) {
  char line[1024];
  FILE *file = fopen(path, "re");
  if (file == NULL) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "%s: %s", path, strerror(errno));
  }
  enum cv_err err = CV_OK;
  while (err == CV_OK && fgets(line, sizeof(line), file) != NULL) {
    struct cv_recover_claim claim;
    if (!read_claim(line, name, &claim)) {
      continue;
    }
    if (cv_recover_claims_add(claims, &claim) != CV_OK) {
      err = cv_fail(why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
    }
  }
  (void)fclose(file);
  return err;
}

/* Reads the facts of the third-party, which names this broker by the name in its certificate, and of the co-broker,
 * which knows this broker's key. */
static enum cv_err ask_others(const struct cv_broker_settings *settings, struct cv_recover_claims *claims,
                              struct cv_why *why) {
  const struct cv_tls_files files = CV_CHANNEL_FILES(&settings->daemon.channel);
  const char *thirdparty = settings->recover_thirdparty, *cobroker = settings->recover_cobroker;
  const struct cv_tls_peers nobody = {0};
  struct cv_tls *tls;
  if (thirdparty == NULL && cobroker == NULL) {
    return CV_OK;
  }
  CV_TRY(cv_tls_new(&files, CV_ROLE_BROKER, nobody, false, &tls, why));
  const struct cv_identity *own = cv_tls_identity(tls);
  enum cv_err err = thirdparty == NULL ? CV_OK : read_claims(thirdparty, own->name, claims, why);
  if (err == CV_OK && cobroker != NULL) {
    err = cv_claims_read(cobroker, "crowdveil-cobroker", &own->key, claims, why);
  }
  cv_tls_unref(tls);
  return err;
}

int cv_broker_recover_state(const struct cv_broker_settings *settings) {
  char database[4096];
  const bool is_shared = settings->store != NULL;
  const struct cv_broker_config config = {.limits = cv_broker_settings_limits(settings), .digest = cv_sha256};
  const struct cv_shared_recovery shared = {.settings = settings, .config = config};
  const struct cv_shared_name name = is_shared ? cv_shared_name(settings) : (struct cv_shared_name){.text = ""};
  struct cv_recovering recovering = {.party = is_shared ? &cv_shared_repair : &cv_broker_repair,
                                     .is_shared = is_shared,
                                     .program = CV_BROKER_PROGRAM,
                                     .name = "broker",
                                     .database = is_shared ? name.text : database,
                                     .anchor = settings->anchor,
                                     .seal_key = settings->seal_key,
                                     .audit = settings->daemon.audit,
                                     .lost = settings->lost,
                                     .config = is_shared ? (const void *)&shared : &config,
                                     .worker_micro = config.limits.worker_epsilon_micro};
  struct cv_why why;
  int status = 1;
  if (settings->recover_anchor != NULL && !is_shared) {
    cv_finding(CV_FINDING_WRONG, "", "--recover-anchor: the state is in a file, which has one anchor; expected store");
    return status;
  }
  if (!is_shared && !database_path(settings, database, sizeof(database))) {
    return status;
  }
  if (ask_others(settings, &recovering.claims, &why) == CV_OK) {
    status = cv_recovering_run(&recovering);
  } else {
    cv_finding(CV_FINDING_WRONG, "", "%s", why.text);
  }
  cv_recover_claims_fini(&recovering.claims);
  return status;
}
