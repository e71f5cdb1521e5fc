/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the Host header of a request against DNS rebinding: a web page from elsewhere whose name was made to
 * resolve to this machine sends another Host. */
#ifndef CV_ADMIN_HOST_H
#define CV_ADMIN_HOST_H

#include <stdbool.h>

/* True for "localhost" in any case, "127.0.0.1" and "[::1]", alone or followed by a colon and a port. */
bool cv_host_is_local(const char *host);

#endif
