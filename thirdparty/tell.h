/* SPDX-License-Identifier: Apache-2.0 */
/* A campaign's history as the page reads it: JSON, events, and a plain table (docs/page.md). Pure. */
#ifndef CV_THIRDPARTY_TELL_H
#define CV_THIRDPARTY_TELL_H

#include "common/page/jot.h"
#include "thirdparty/chronicle.h"
#include "thirdparty/links.h"

/* "ranking", "recruitment", "bandit" or "graph". */
const char *cv_tell_kind(const char *policy);

/* The object of /api/campaign: its beginning up to the steps, and its end after them; `link` is that of its broker, or
 * NULL. */
void cv_tell_begin(const struct cv_chronicle_entry *entry, struct cv_buf *out);
void cv_tell_end(const struct cv_history *history, const struct cv_link *link, struct cv_buf *out);
/* One step as an object. Leaves out the decisions of plans up to `after`, if `has_after`: the reader has them. */
void cv_tell_step(const struct cv_history_step *step, bool has_after, uint64_t after, struct cv_buf *out);
/* The state and its note as an object. */
void cv_tell_state(const struct cv_history *history, struct cv_buf *out);
/* A broker's connection as an object. */
void cv_tell_link(const struct cv_link *link, struct cv_buf *out);
/* What the third-party holds of an arm: its last release, standing and decision. */
void cv_tell_column(const struct cv_history *history, uint32_t arm, struct cv_buf *out);
/* A page with a table of all arms, for browsers without JavaScript. */
void cv_tell_table(const struct cv_chronicle_entry *entry, struct cv_buf *out);
/* The page when there is no campaign. */
void cv_tell_no_table(struct cv_buf *out);

#endif
