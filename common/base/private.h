/* SPDX-License-Identifier: Apache-2.0 */
/* Files with a secret, which are closed to others than their owner. */
#ifndef CV_BASE_PRIVATE_H
#define CV_BASE_PRIVATE_H

#include "common/base/err.h"

/* CV_ERR_DENIED if others than its owner may read or write the open file. It is refused, not repaired: they may know
 * the secret. */
CV_MUST_USE enum cv_err cv_private_check(int fd, const char *path, struct cv_why *why);

#endif
