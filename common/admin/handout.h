/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer to POST /backup: the request waits while the daemon makes the copy, then the file is streamed. One request
 * at a time. A client that reads nothing for 30 s, or less than 1 MiB a second on the whole, is cut off.
 */
#ifndef CV_ADMIN_HANDOUT_H
#define CV_ADMIN_HANDOUT_H

#include <stdbool.h>

#include "common/admin/httpd.h"

struct cv_handout {
  struct MHD_Connection *connection; /* of the request, or of the last one */
  bool waits;                        /* the request waits for the copy */
  bool is_busy;                      /* from the request to the end of its answer */
  int fd;                            /* of the copy; -1: none */
  uint64_t bytes, until_ms;
  struct cv_why why; /* without a copy: the reason */
};

/* Begins the copy; cv_handout_made() follows, never from inside this call. */
typedef enum cv_err cv_handout_begin_fn(void *data, struct cv_why *why);

/* All calls of MHD for one request of /backup. `request` is MHD's, and set to `handout`. */
enum MHD_Result cv_handout_request(struct cv_handout *handout, struct MHD_Connection *connection, size_t *upload_n,
                                   void **request, cv_handout_begin_fn *begin, void *data);
/* The copy is made: takes `fd`; or `fd` is -1 and `why` has the reason. */
void cv_handout_made(struct cv_handout *handout, int fd, uint64_t bytes, const struct cv_why *why);
/* MHD is done with this request of /backup, whatever became of it. */
void cv_handout_ended(struct cv_handout *handout);
/* Before MHD is stopped: no request may wait then. */
void cv_handout_stop(struct cv_handout *handout);

#endif
