/* SPDX-License-Identifier: Apache-2.0 */
/* The hello: the first message on every connection, in both directions, with the sender's wire version. */
#ifndef CV_BASE_HELLO_H
#define CV_BASE_HELLO_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

enum { CV_WIRE_VERSION = 3 };

/* The reasons for which every party closes a connection that does not begin with exactly one Hello. */
#define CV_HELLO_MISSING  "the first message is not Hello"
#define CV_HELLO_REPEATED "second Hello; expected one per connection"

/* What a co-broker's operator allows a campaign. */
struct cv_hello_limits {
  uint64_t epsilon_micro, delta_pico, worker_epsilon_micro, tokens;
  uint32_t release_tokens, arms;
};

struct cv_hello {
  bool present;
  uint32_t version;
  const char *program;
  uint64_t term; /* of a broker, to its third-party; 0: none */
  bool has_limits;
  struct cv_hello_limits limits; /* of a co-broker, to its broker */
};

/*
 * Returns CV_ERR_VERSION if the peer's wire version differs from ours; `why` then says which side to upgrade. `them`
 * and `us` name the two roles: "worker", "broker".
 */
CV_MUST_USE enum cv_err cv_hello_check(const struct cv_hello *hello, const char *them, const char *us,
                                       struct cv_why *why);

#endif
