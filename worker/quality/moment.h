/* SPDX-License-Identifier: Apache-2.0 */
/* The position of a token in its campaign: the fields of an assignment besides the arm. */
#ifndef CV_QUALITY_MOMENT_H
#define CV_QUALITY_MOMENT_H

#include <stdint.h>

struct cv_moment {
  uint64_t place; /* number of the token in the arm's stream, from 0 */
  uint64_t round; /* number of the token in the whole campaign, in planned order, from 0 */
  /* How many rounds ago another arm was asked for, 1 = in the round before; 0: in none of CV_MEMORY_MAX rounds. */
  uint32_t switched;
  uint32_t opponent; /* 1 + the arm that the asked one is compared with; 0: none */
};

#endif
