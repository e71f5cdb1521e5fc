/* SPDX-License-Identifier: Apache-2.0 */
/* The other end of POST /backup on a daemon's admin socket. */
#ifndef CV_ADMIN_RECEIVE_H
#define CV_ADMIN_RECEIVE_H

#include <stdint.h>

#include "common/base/err.h"

/*
 * Asks the daemon at the socket `path` for a copy of its database, waits while the daemon makes it, and writes it to
 * `fd`. CV_ERR_CLOSED if no daemon listens there; CV_ERR_STATE with the daemon's reason if it makes no copy; CV_ERR_IO
 * if the copy does not arrive whole or cannot be written.
 */
CV_MUST_USE enum cv_err cv_admin_receive(const char *path, int fd, uint64_t *ret_bytes, struct cv_why *why);

#endif
