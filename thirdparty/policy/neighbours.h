/* SPDX-License-Identifier: Apache-2.0 */
/* A campaign's feedback graph, for walking from an arm to its neighbours. */
#ifndef CV_THIRDPARTY_NEIGHBOURS_H
#define CV_THIRDPARTY_NEIGHBOURS_H

#include <stdint.h>

#include "common/base/spec.h"

struct cv_neighbours {
  uint32_t *first; /* the neighbours of arm a are arm[first[a]] .. arm[first[a + 1] - 1]; owned */
  uint32_t *arm;   /* owned */
};

/* The edges must be those of a checked spec. */
CV_MUST_USE enum cv_err cv_neighbours_init(const struct cv_spec *spec, struct cv_neighbours *ret);
void cv_neighbours_fini(struct cv_neighbours *neighbours);

#endif
