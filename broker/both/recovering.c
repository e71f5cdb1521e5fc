/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/both/recovering.h"

#include <inttypes.h>

#include "common/base/clock.h"
#include "common/base/finding.h"
#include "common/base/grid.h"
#include "common/base/result.h"
#include "common/daemon/trail.h"

static double epsilon(uint64_t micro) {
  return (double)micro / (double)CV_MICRO;
}

static void tell(const struct cv_recovering *recovering, const struct cv_repaired *repaired) {
  const struct cv_recovery *recovery = &repaired->recovery;
  if (repaired->aside[0] != '\0') {
    cv_finding(CV_FINDING_NOTE, "", "unreadable database moved to %s", repaired->aside);
  }
  if (!repaired->changed) {
    cv_finding(CV_FINDING_OK, "", "nothing to recover: the database agrees with its anchor");
    return;
  }
  cv_finding(CV_FINDING_OK, "start it; new campaigns run",
             "recovered from commit %" PRIu64 "; the anchor said %" PRIu64, recovery->commit, recovery->anchored);
  cv_finding(CV_FINDING_NOTE, "", "%" PRIu64 " open campaigns have ended as \"%s\", %" PRIu64 " are forgotten",
             recovery->ended, cv_end_text(CV_END_RECOVERED),
             recovery->last >= recovery->first ? recovery->last - recovery->first + 1 : 0);
  bool spent = repaired->floor_micro >= recovering->worker_micro;
  cv_finding(
      spent ? CV_FINDING_WARNING : CV_FINDING_NOTE,
      spent ? "no worker can give a token unless you raise limits.worker_epsilon, which weakens the promise to workers"
            : "",
      "every worker is charged epsilon %g of its %g", epsilon(recovery->floor_micro),
      epsilon(recovering->worker_micro));
  if (recovery->named > 0) {
    cv_finding(CV_FINDING_NOTE, "", "%" PRIu64 " workers whom recruitments name are charged what they can have given",
               recovery->named);
  }
}

static enum cv_err open_ring(const struct cv_recovering *recovering, struct cv_ring *ret, struct cv_why *why) {
  enum cv_err err = cv_ring_read(recovering->seal_key, ret, why);
  return err == CV_ERR_NOT_FOUND && recovering->lost
             ? cv_ring_create(recovering->seal_key, cv_clock_wall_ms() / 1000, ret, why)
             : err;
}

/* The line in the audit log, on disk before the recovery is committed. */
static enum cv_err record(const void *data, const struct cv_recovery *recovery, struct cv_why *why) {
  const struct cv_recovering *recovering = data;
  const struct cv_event_fact facts[] = {
      {.name = "commit", .number = recovery->commit},
      {.name = "anchored", .number = recovery->anchored},
      {.name = "campaigns_ended", .number = recovery->ended},
      {.name = "campaigns_lost",
       .number = recovery->last >= recovery->first ? recovery->last - recovery->first + 1 : 0},
      {.name = "every_worker_micro", .number = recovery->floor_micro},
      {.name = "workers_named", .number = recovery->named},
  };
  const struct cv_event event = {.what = "recover", .actor = "operator", .fact = facts, .facts = CV_COUNT(facts)};
  return cv_trail_record(recovering->audit, recovering->program, &event, why);
}

int cv_recovering_run(const struct cv_recovering *recovering) {
  struct cv_repaired repaired;
  struct cv_ring ring = {.n = 0};
  struct cv_why why = {.text = ""};
  enum cv_err err = open_ring(recovering, &ring, &why);
  if (err == CV_OK) {
    const struct cv_repair repair = {.files = {.database = recovering->database, .anchor = recovering->anchor},
                                     .is_shared = recovering->is_shared,
                                     .ring = &ring,
                                     .config = recovering->config,
                                     .claim = recovering->claims.claim,
                                     .claims = recovering->claims.n,
                                     .lost = recovering->lost,
                                     .wall_ms = cv_clock_wall_ms(),
                                     .record = record,
                                     .record_data = recovering};
    err = cv_repair_run(recovering->party, &repair, &repaired, &why);
    cv_ring_fini(&ring);
  }
  if (err != CV_OK) {
    cv_finding(CV_FINDING_WRONG, "", "%s", why.text);
    return 1;
  }
  tell(recovering, &repaired);
  return 0;
}
