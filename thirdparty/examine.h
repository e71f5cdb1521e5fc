/* SPDX-License-Identifier: Apache-2.0 */
/* What the third-party's program finds in its own stopped state: findings and facts (common/base/finding.h). */
#ifndef CV_THIRDPARTY_EXAMINE_H
#define CV_THIRDPARTY_EXAMINE_H

struct cv_thirdparty_files {
  const char *state, *admin; /* admin may be NULL */
};

/* The exit status: 1 if something is wrong. Changes nothing. Makes every decision again. */
int cv_thirdparty_examine(const struct cv_thirdparty_files *files);

#endif
