/* SPDX-License-Identifier: Apache-2.0 */
/* When a token is given: what an assignment says besides the arm. */
#ifndef CV_QUALITY_MOMENT_H
#define CV_QUALITY_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

struct cv_moment {
  uint64_t place; /* number of the token in the arm's stream, from 0 */
  uint64_t round; /* number of the token in the whole campaign, as it was planned, from 0 */
  bool switched;  /* the round before asked for another arm */
};

#endif
