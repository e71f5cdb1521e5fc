/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a program: its port, its token, and the line that says where it is. */
#ifndef CV_PAGE_SITE_H
#define CV_PAGE_SITE_H

#include <stdio.h>

#include "common/base/rng.h"
#include "common/page/front.h"
#include "common/page/page.h"
#include "common/page/settings.h"

/* Begin with {.socket = -1}. */
struct cv_page_site {
  const struct cv_page_settings *settings; /* NULL: no port */
  int socket;                              /* bound; -1: none, or taken by `page` */
  struct cv_door door;
  struct cv_page *page;        /* NULL: the party has none */
  struct cv_page_front *front; /* NULL: no port */
};

/* Binds the port and reads the token's file, as the user that started the daemon. Nothing if no page is configured. */
CV_MUST_USE enum cv_err cv_page_site_bind(struct cv_page_site *page, const struct cv_page_settings *settings,
                                          struct cv_why *why);
/* Begins to serve; `ops` NULL: there is nothing to serve. */
CV_MUST_USE enum cv_err cv_page_site_open(struct cv_page_site *page, uv_loop_t *loop, const struct cv_page_ops *ops,
                                          void *data, struct cv_rng *rng, struct cv_why *why);
/* Prints "page on http://HOST:PORT/?token=TOKEN", if there is a port. */
void cv_page_site_say(const struct cv_page_site *page, FILE *to);
/* As cv_page_serve(), cv_page_ended() and cv_page_wake(). */
bool cv_page_site_serve(struct cv_page_site *page, struct MHD_Connection *connection, const char *url, void **request,
                        enum MHD_Result *ret);
void cv_page_site_ended(struct cv_page_site *page, void **request);
void cv_page_site_wake(struct cv_page_site *page);
/* As cv_page_close() and cv_page_free(). */
void cv_page_site_close(struct cv_page_site *page);
void cv_page_site_free(struct cv_page_site *page);

#endif
