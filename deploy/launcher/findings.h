/* SPDX-License-Identifier: Apache-2.0 */
/* What a program found in its own state, and what we found ourselves (common/base/finding.h has the lines). */
#ifndef CV_LAUNCHER_FINDINGS_H
#define CV_LAUNCHER_FINDINGS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/finding.h"
#include "common/base/spec.h"

struct cv_found {
  enum cv_finding level;
  char party[64];
  char *what, *advice; /* owned */
};

/* A campaign at one of the parties. */
struct cv_found_campaign {
  char broker[CV_NAME_BYTES]; /* "-" in a broker's own */
  char state[32];
  uint64_t number, releases, plans;
  char releases_hash[65], plans_hash[65];
};

struct cv_findings {
  struct cv_found *found;
  size_t count, cap;
  struct cv_found_campaign *campaign; /* of the program that was examined last */
  size_t campaigns, campaigns_cap;
  char live[256]; /* admin socket of a running program; "" if it has none */
  bool is_live;
  bool is_read;   /* its campaigns are all there are, */
  uint64_t gone;  /* but for those up to this number that were purged or are forgotten */
  char party[64]; /* whose findings come */
};

void cv_findings_fini(struct cv_findings *findings);
/* One of the present party: `fmt` is what was found, `advice` (may be "") what to do about it. */
void cv_findings_add(struct cv_findings *findings, enum cv_finding level, const char *advice, const char *fmt, ...)
    CV_PRINTF(4, 5);
/* A cv_program_line_fn. */
void cv_findings_line(void *data, char *line);
/* Warnings and what is wrong. */
size_t cv_findings_bad(const struct cv_findings *findings);
void cv_findings_print(const struct cv_findings *findings, bool json);

#endif
