/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams to a Unix socket of another program: the journal's, the service manager's. The socket is opened and
 * connected before the sandbox, and the same descriptor also finds a receiver that has bound the address again.
 */
#ifndef CV_DAEMON_DATAGRAM_H
#define CV_DAEMON_DATAGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/base/err.h"

struct cv_datagram {
  int fd; /* -1: not open */
  struct sockaddr_un address;
  socklen_t length; /* of the address */
  bool is_slow;     /* the receiver took nothing for CV_DATAGRAM_WAIT_MS: it is not waited for until it does */
};

enum { CV_DATAGRAM_WAIT_MS = 100 };

/* `path` is absolute, or "@name" for an abstract address. CV_ERR_INVALID for another path; CV_ERR_IO, CV_ERR_DENIED or
 * CV_ERR_NOT_FOUND if it cannot be opened: then *ret is unchanged. */
CV_MUST_USE enum cv_err cv_datagram_open(const char *path, struct cv_datagram *ret, struct cv_why *why);
/* CV_ERR_CLOSED: nobody receives. CV_ERR_LIMIT: the receiver did not take it within CV_DATAGRAM_WAIT_MS. */
CV_MUST_USE enum cv_err cv_datagram_send(struct cv_datagram *to, const void *bytes, size_t n);

#endif
