/* SPDX-License-Identifier: Apache-2.0 */
/* The page's own port: who may come in, the static files, and what page.h answers. */
#ifndef CV_PAGE_FRONT_H
#define CV_PAGE_FRONT_H

#include "common/page/page.h"

struct cv_page_front;

/* Listens on a bound socket, of which it takes ownership, also on failure. Copies *door; `door->hosts` is borrowed. */
CV_MUST_USE enum cv_err cv_page_front_start(uv_loop_t *loop, struct cv_page *page, int socket,
                                            const struct cv_door *door, struct cv_page_front **ret, struct cv_why *why);
/* Between cv_page_close() and cv_page_free(). NULL does nothing. */
void cv_page_front_stop(struct cv_page_front *front);

#endif
