/* SPDX-License-Identifier: Apache-2.0 */
/* The Host of a request: a page from elsewhere whose name has been bent to this machine says another one. */
#ifndef CV_ADMIN_HOST_H
#define CV_ADMIN_HOST_H

#include <stdbool.h>

/* True for "localhost" in any case, "127.0.0.1" and "[::1]", alone or with a colon and a port behind. */
bool cv_host_is_local(const char *host);

#endif
