/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that must succeed; else the error's line fails the test. Include after cmocka.h. */
#ifndef CV_TESTS_LAB_GOOD_H
#define CV_TESTS_LAB_GOOD_H

#include "common/base/err.h"

static struct cv_why why; /* of the last call that failed */

#define assert_good(expression)                  \
  do {                                           \
    if ((expression) != CV_OK) {                 \
      fail_msg("%s: %s", #expression, why.text); \
    }                                            \
  } while (0)

#endif
