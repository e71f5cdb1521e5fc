/* SPDX-License-Identifier: Apache-2.0 */
/* What the third-party's page shows: what the database holds, and whether the broker is connected. Connects the
 * chronicle to common/page/page.h. */
#ifndef CV_THIRDPARTY_SHOWING_H
#define CV_THIRDPARTY_SHOWING_H

#include "common/page/page.h"
#include "thirdparty/chronicle.h"
#include "thirdparty/links.h"

struct cv_showing {
  struct cv_chronicle *chronicle;
  struct cv_db *db;
  struct cv_links links;
};

/* These answer as struct cv_page_ops says. No batch may be under way, but for the two that make pieces. */
enum cv_page_found cv_showing_campaigns(struct cv_showing *showing, struct cv_buf *out);
enum cv_page_found cv_showing_find(struct cv_showing *showing, uint64_t id);
/* The id of the newest campaign; 0: there is none. */
uint64_t cv_showing_newest(struct cv_showing *showing);
enum cv_page_found cv_showing_table(struct cv_showing *showing, uint64_t id, struct cv_buf *out);
enum cv_page_found cv_showing_column(struct cv_showing *showing, uint64_t id, uint64_t arm, struct cv_buf *out);
enum cv_page_next cv_showing_history(struct cv_showing *showing, uint64_t id, struct cv_page_cursor *at,
                                     struct cv_buf *out);
enum cv_page_next cv_showing_events(struct cv_showing *showing, uint64_t id, struct cv_page_cursor *at,
                                    struct cv_buf *out);

#endif
