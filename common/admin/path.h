/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the path of an admin socket to a socket address. */
#ifndef CV_ADMIN_PATH_H
#define CV_ADMIN_PATH_H

#include <sys/un.h>

#include "common/base/err.h"

/* CV_ERR_LIMIT if the path is empty or too long. */
CV_MUST_USE enum cv_err cv_admin_path(const char *path, struct sockaddr_un *ret, struct cv_why *why);

#endif
