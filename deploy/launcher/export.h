/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An export: everything that a broker sends the requester about a campaign, that is, its spec, plans, releases and
 * result. As JSON it has everything that `crowdveil verify` needs; as CSV the result or the releases, for spreadsheets.
 */
#ifndef CV_LAUNCHER_EXPORT_H
#define CV_LAUNCHER_EXPORT_H

#include <stdint.h>
#include <stdio.h>

#include "proto/codec/order.h"

/* Owns everything it points to. All zero is a valid, empty export. */
struct cv_export {
  uint64_t campaign;
  bool begun, complete;
  struct cv_spec spec;
  uint64_t seed; /* of the policy */
  struct cv_progress progress;
  struct cv_plan *plan;
  size_t plans, plans_cap;
  struct cv_release *release;
  size_t releases, releases_cap;
  struct cv_standing *standing;
  size_t standings, standings_cap;
  int64_t *neutral; /* by arm, `neutrals` of them: of each the noisy number of neutral tokens; owned */
  size_t neutrals, neutrals_cap;
  uint64_t neutral_epsilon_micro;
};

void cv_export_fini(struct cv_export *export);
/* Adds the next part; a first part discards what was there. Sets `complete` after the last. CV_ERR_FORMAT, _LIMIT or
 * _NOMEM. */
CV_MUST_USE enum cv_err cv_export_add(struct cv_export *export, const struct cv_part *part);

/* Writes the export as JSON. CV_ERR_IO or CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_export_write_json(const struct cv_export *export, FILE *to);
/* Reads and validates a file of cv_export_write_json(); errors name the place in the file and what was expected. */
CV_MUST_USE enum cv_err cv_export_read_json(const char *path, struct cv_export *ret, struct cv_why *why);

/* Write CSV with a header line. */
struct cv_lies;
void cv_export_write_result_csv(const struct cv_export *export, const struct cv_lies *lies, FILE *to);
void cv_export_write_releases_csv(const struct cv_export *export, FILE *to);

#endif
