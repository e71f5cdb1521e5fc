/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated campaigns of an outlook: of the campaign as it is and of the same one with other settings, as many of
 * each, run by run in pairs (simulate/paired.h). Internal to outlook.
 *
 * If the time does not suffice for a dozen runs of all, the settings that take the longest are left out; if it does
 * not suffice for CV_PAIRED_LEAST of two, all are, and only the campaign as it is is simulated.
 */
#ifndef CV_LAUNCHER_OUTLOOK_RUNS_H
#define CV_LAUNCHER_OUTLOOK_RUNS_H

#include "deploy/launcher/outlook.h"

/* When the simulations end. */
struct cv_outlook_times {
  uint64_t start_ms, until_ms;
  uint64_t alone_ms; /* of the campaign as it is, if all other settings are left out at `until_ms` */
  uint64_t first_ms; /* of its first run */
};

/* Sets `forecast` and `row` of an outlook that has its `shared`. One line. */
CV_MUST_USE enum cv_err cv_outlook_run(struct cv_outlook *outlook, const struct cv_outlook_times *times,
                                       struct cv_why *why);

#endif
