/* SPDX-License-Identifier: Apache-2.0 */
/* Findings of `crowdveil doctor`: its own, and those that a program prints with --examine (common/base/finding.h). */
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

/* A campaign as one party has it. */
struct cv_found_campaign {
  char broker[CV_NAME_BYTES]; /* "-" in the broker's own lines */
  char state[32];
  uint64_t number, releases, plans;
  char releases_hash[65], plans_hash[65];
};

struct cv_findings {
  struct cv_found *found;
  size_t count, cap;
  struct cv_found_campaign *campaign; /* of the program examined last */
  size_t campaigns, campaigns_cap;
  char live[256]; /* admin socket of a running program; "" if it has none */
  bool is_live;
  bool is_read;   /* `campaign` is complete, */
  uint64_t gone;  /* except for campaigns up to this number, which may have been purged or forgotten */
  char party[64]; /* the party of the findings that are added next */
};

void cv_findings_fini(struct cv_findings *findings);
/* Adds a finding about the current party: `fmt` is what was found, `advice` (may be "") what to do about it. */
void cv_findings_add(struct cv_findings *findings, enum cv_finding level, const char *advice, const char *fmt, ...)
    CV_PRINTF(4, 5);
/* A cv_program_line_fn: parses one line of --examine. Ignores unknown lines. */
void cv_findings_line(void *data, char *line);
/* Returns the number of problems: findings of level warning or wrong. */
size_t cv_findings_bad(const struct cv_findings *findings);
/* Prints a text for people, or one JSON object per line. */
void cv_findings_print(const struct cv_findings *findings, bool json);

#endif
