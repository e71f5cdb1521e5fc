/* SPDX-License-Identifier: Apache-2.0 */
/* The first message on every connection, both ways: what the sender speaks. */
#ifndef CV_BASE_HELLO_H
#define CV_BASE_HELLO_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

enum { CV_WIRE_VERSION = 2 };

struct cv_hello {
  bool present;
  uint32_t version;
  const char *program;
};

/*
 * CV_ERR_VERSION unless it is of our version; then the line says who has to be upgraded. `them` and `us` are what the
 * two are called: "worker", "broker".
 */
CV_MUST_USE enum cv_err cv_hello_check(const struct cv_hello *hello, const char *them, const char *us,
                                       struct cv_why *why);

#endif
