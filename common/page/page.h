/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the page asks for, over HTTP (docs/page.md has the protocol): the list of campaigns, a campaign's history once,
 * then its events as they come. The party answers through a table of functions; this file has the requests, the
 * connections that wait, and the two ways in: a loopback TCP port behind a token (front.h), and the admin socket,
 * which only its owner may open.
 *
 * An open event stream costs nothing while nothing happens: its connection is suspended. What it sends is taken from
 * the party's history when its socket has room, so a slow reader holds no memory but one piece, and is dropped when it
 * takes nothing for half a minute. A connection whose other end is gone is closed within seconds.
 */
#ifndef CV_PAGE_PAGE_H
#define CV_PAGE_PAGE_H

#include <uv.h>

#include "common/admin/httpd.h"
#include "common/base/buf.h"
#include "common/page/door.h"
#include "common/page/files.h"

enum { CV_PAGE_STREAMS_MAX = 64 };

struct cv_page;

enum cv_page_found {
  CV_PAGE_HERE,
  CV_PAGE_LATER,  /* ask again after the next cv_page_wake() */
  CV_PAGE_ABSENT, /* there is no such campaign or item */
  CV_PAGE_FAILED, /* the answer cannot be made: no memory, or damage */
};

/* How far a stream has come; begins with zeros, but for `after` and `has_after` of a client that comes again. */
struct cv_page_cursor {
  unsigned part;
  bool has_after;
  uint64_t after;             /* the last step that was sent, if has_after */
  uint64_t state, live, link; /* the versions that were sent, from 1 */
};
enum cv_page_next { CV_PAGE_MORE, CV_PAGE_WAIT, CV_PAGE_END };

/* Each function appends to `out`; what was appended before an error is not sent. A path whose function is NULL is
 * unknown; `campaigns` stands for all but `boundary`. */
struct cv_page_ops {
  /* JSON. */
  enum cv_page_found (*campaigns)(void *data, struct cv_buf *out);
  /* Makes a campaign's history ready; the next functions follow only CV_PAGE_HERE. */
  enum cv_page_found (*find)(void *data, uint64_t id);
  /* The next piece of the history as JSON; never CV_PAGE_WAIT. */
  enum cv_page_next (*history)(void *data, uint64_t id, struct cv_page_cursor *at, struct cv_buf *out);
  /* The next events (text/event-stream). */
  enum cv_page_next (*events)(void *data, uint64_t id, struct cv_page_cursor *at, struct cv_buf *out);
  /* A whole HTML page; id 0: of the newest campaign, or one that says that there is none. */
  enum cv_page_found (*table)(void *data, uint64_t id, struct cv_buf *out);
  /* JSON: what the parties hold of an item. */
  enum cv_page_found (*boundary)(void *data, uint64_t id, uint64_t arm, struct cv_buf *out);
  bool has_whole_boundary;           /* of all parties; a single one's is not for the page's own port */
  const struct cv_page_files *files; /* on the page's own port; NULL: the party has no such port */
};

CV_MUST_USE enum cv_err cv_page_new(uv_loop_t *loop, const struct cv_page_ops *ops, void *data, struct cv_page **ret,
                                    struct cv_why *why);
/*
 * Answers a request of a server, the page's own port (front.h) or the admin socket, if the page knows its path;
 * otherwise returns false.
 * That server passes its arguments on, calls cv_page_ended() at the end of every request, also of those that the page
 * does not know, and stops between cv_page_close() and cv_page_free().
 */
bool cv_page_serve(struct cv_page *page, struct MHD_Connection *connection, const char *url, void **request,
                   enum MHD_Result *ret);
void cv_page_ended(struct cv_page *page, void **request);

/* Something has changed: requests and streams that wait are served again, within a twentieth of a second. */
void cv_page_wake(struct cv_page *page);
/* The static files. */
const struct cv_page_files *cv_page_files(const struct cv_page *page);
/* Whether the page's own port answers /api/boundary. */
bool cv_page_has_boundary(const struct cv_page *page);
/* True while any request or stream is open. */
bool cv_page_is_watched(const struct cv_page *page);

/* Ends all streams; then its servers may stop. NULL does nothing, here and below. */
void cv_page_close(struct cv_page *page);
/* After every server has stopped; the loop frees the rest. */
void cv_page_free(struct cv_page *page);

#endif
