/* SPDX-License-Identifier: Apache-2.0 */
/* A campaign with one setting changed. Internal to outlook. */
#ifndef CV_LAUNCHER_OUTLOOK_CHANGE_H
#define CV_LAUNCHER_OUTLOOK_CHANGE_H

#include "prepare/prepare.h"

enum cv_change_key { CV_CHANGE_ALPHA, CV_CHANGE_EPSILON, CV_CHANGE_ROUND, CV_CHANGE_LIMIT };

struct cv_change {
  enum cv_change_key setting;
  double value;
};

/* The value that the campaign has; 0: the setting does not apply to it. */
double cv_change_value(const struct cv_spec *spec, enum cv_change_key setting);
/* A copy that borrows all but its settings. CV_ERR_INVALID if a campaign cannot have this value. */
CV_MUST_USE enum cv_err cv_change_make(const struct cv_prepared *of, struct cv_change change, struct cv_prepared *ret);
/* "epsilon 0.5"; not for the limit. */
void cv_change_text(struct cv_change change, char *to, size_t size);

#endif
