/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker is told about a campaign before it gives a token: by its broker, and with two brokers by both. */
#ifndef CV_BASE_TERMS_H
#define CV_BASE_TERMS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/spec.h"
#include "common/base/split.h"

struct cv_terms {
  uint64_t id;
  char name[CV_NAME_BYTES];
  char requester[CV_NAME_BYTES]; /* the name in the requester's certificate */
  struct cv_choice privatizer, mechanism;
  uint64_t epsilon_micro;
  uint32_t tokens_per_worker;
  uint32_t arms;
  bool pairs;            /* each assignment names an opponent */
  bool repeat;           /* a worker may be asked the same question again (cv_spec) */
  struct cv_scale scale; /* of the scores in data files */
  uint32_t lease_ms;     /* time to answer an assignment; 0: not told, and so by a co-broker */
  struct cv_split split; /* split.score_bits: 0 with one broker */
};

#endif
