/* SPDX-License-Identifier: Apache-2.0 */
/* The position of a token in its campaign: the fields of an assignment besides the arm. */
#ifndef CV_QUALITY_MOMENT_H
#define CV_QUALITY_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

struct cv_moment {
  uint64_t place; /* number of the token in the arm's stream, from 0 */
  uint64_t round; /* number of the token in the whole campaign, in planned order, from 0 */
  bool switched;  /* the previous round asked for another arm */
};

#endif
