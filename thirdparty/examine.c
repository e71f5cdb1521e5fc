/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/examine.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/base/finding.h"
#include "common/base/fingerprint.h"
#include "common/base/local.h"
#include "thirdparty/replay.h"

static const char lost_advice[] =
    "restore a backup, or move the database away: brokers then send all their records again";

struct tally {
  const char *path;
  uint64_t campaigns, disagree;
};

/* An upper bound of a worker's epsilon: of the mechanism's and the privatizer's epsilon the broker charges the smaller
 * one, and this takes the larger. */
static uint64_t worker_micro(const struct cv_spec *spec) {
  struct cv_local local;
  if (cv_spec_is_exact(spec)) {
    return CV_UNPROTECTED_MICRO; /* exact sums */
  }
  uint64_t token = spec->epsilon_micro;
  if (cv_local_init(&spec->privatizer, spec->arms, &local, NULL) == CV_OK && local.epsilon_micro != CV_EPSILON_NONE &&
      local.epsilon_micro > token) {
    token = local.epsilon_micro;
  }
  return cv_spec_worker_micro(spec, token);
}

static void each(void *data, const struct cv_stored_campaign *campaign, const struct cv_replay_verdict *verdict) {
  struct tally *tally = data;
  const struct cv_thirdparty_campaign_row *row = &campaign->row;
  /* Damage stops the examination, a disagreement does not: other campaigns may be sound. */
  tally->campaigns++;
  if (!verdict->agrees) {
    tally->disagree++;
    cv_finding(CV_FINDING_WRONG, "do not rely on this campaign's ranking; run crowdveil replay for details",
               "campaign %" PRIu64 " of broker %s: its decisions do not follow from its releases: %s",
               campaign->key.campaign, campaign->key.broker, verdict->first.text);
  }
  /* For crowdveil doctor and for a broker's --recover-thirdparty, which charges by these numbers. */
  cv_fact("campaign\t%s\t%" PRIu64 "\t%s\t%" PRIu64 "\t%s\t%" PRIu64 "\t%s\t%" PRIu64, campaign->key.broker,
          campaign->key.campaign, cv_end_text(row->end), row->releases, cv_fingerprint_of(&row->releases_hash).text,
          row->accepted, cv_fingerprint_of(&row->plans_hash).text, worker_micro(&campaign->spec));
}

static void stranger(void *data, const char *what) {
  cv_finding_stranger(&((struct tally *)data)->path, what);
}

static int examine_database(const struct cv_thirdparty_files *files, const char *path) {
  struct tally tally = {.path = path};
  struct cv_why why;
  enum cv_err err = cv_replay_database(path, each, stranger, &tally, &why);
  /* Not a fault: the database is locked as long as its daemon runs. */
  if (err == CV_ERR_STATE) {
    cv_fact("live\t%s", files->admin == NULL ? "" : files->admin);
    cv_finding(CV_FINDING_NOTE, "stop the program to examine the database", "database %s: in use by a running program",
               path);
    return 0;
  }
  if (err != CV_OK) {
    cv_finding(CV_FINDING_WRONG, cv_finding_advice(err, lost_advice), "%s", why.text);
    return 1;
  }
  cv_fact("read");
  cv_finding(CV_FINDING_OK, "", "database %s: whole, %" PRIu64 " campaigns", path, tally.campaigns);
  if (tally.disagree == 0) {
    cv_finding(CV_FINDING_OK, "", "decisions: all follow from the releases");
  }
  return tally.disagree > 0 ? 1 : 0;
}

int cv_thirdparty_examine(const struct cv_thirdparty_files *files) {
  char path[4096];
  struct stat info;
  if (!cv_finding_folder(files->state)) {
    return 1;
  }
  if (snprintf(path, sizeof(path), "%s/thirdparty.db", files->state) >= (int)sizeof(path)) {
    cv_finding(CV_FINDING_WRONG, "move it", "state: the path is too long");
    return 1;
  }
  /* Not wrong: a new third-party has none, and a broker's recovery may go on without its claims. */
  if (stat(path, &info) != 0) {
    cv_finding(CV_FINDING_NOTE, "", "database %s: does not exist yet; the first start creates it", path);
    cv_fact("read");
    return 0;
  }
  return examine_database(files, path);
}
