/* SPDX-License-Identifier: Apache-2.0 */
/* The port of a page. */
#ifndef CV_PAGE_BIND_H
#define CV_PAGE_BIND_H

#include <stdbool.h>

#include "common/base/err.h"

/*
 * Opens a listening, non-blocking socket at HOST:PORT (port 0: the system chooses; *ret_port has it). Unless
 * `anywhere`, the address must be this machine's own (loopback). `what` is the setting, for messages: "page".
 * CV_ERR_FORMAT, CV_ERR_INVALID or CV_ERR_IO.
 */
CV_MUST_USE enum cv_err cv_page_bind(const char *what, const char *address, bool anywhere, int *ret_socket,
                                     unsigned *ret_port, struct cv_why *why);

#endif
