/* SPDX-License-Identifier: Apache-2.0 */
/* Examines the state of a stopped third-party and prints findings and facts (common/base/finding.h). */
#ifndef CV_THIRDPARTY_EXAMINE_H
#define CV_THIRDPARTY_EXAMINE_H

struct cv_thirdparty_files {
  const char *state, *admin; /* admin may be NULL */
};

/* Replays every decision and changes nothing. Returns the exit status: 1 if it found a problem. */
int cv_thirdparty_examine(const struct cv_thirdparty_files *files);

#endif
