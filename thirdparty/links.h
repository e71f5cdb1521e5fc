/* SPDX-License-Identifier: Apache-2.0 */
/* Since when each broker is connected, and in which term, for the page. Kept in memory alone: a broker that has not
 * connected since the start is unknown. */
#ifndef CV_THIRDPARTY_LINKS_H
#define CV_THIRDPARTY_LINKS_H

#include "thirdparty/core.h"

struct cv_links_entry;

/* Begins with zeros. */
struct cv_links {
  struct cv_links_entry *entries;
};

struct cv_link {
  bool is_connected;
  uint64_t term;     /* of the last connection; 0: of a broker that has no terms */
  uint64_t since_ms; /* of the connection or, without one, of its end; since 1970 */
  uint64_t version;  /* grows with each change, from 1 */
};

/* Takes a change. CV_ERR_NOMEM: the broker stays unknown. */
CV_MUST_USE enum cv_err cv_links_take(struct cv_links *links, const struct cv_thirdparty_link *link, uint64_t wall_ms);
/* NULL: unknown. Valid until the next change. */
const struct cv_link *cv_links_find(const struct cv_links *links, const char *broker);
void cv_links_fini(struct cv_links *links);

#endif
