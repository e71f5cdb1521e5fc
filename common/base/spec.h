/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A campaign as the broker and the third-party may know it: arm numbers and public parameters. Where scores come from,
 * file paths and the truth stay with the requester and the workers.
 */
#ifndef CV_BASE_SPEC_H
#define CV_BASE_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/params.h"

enum { CV_NAME_BYTES = 64, CV_ARMS_MAX = 4096 };

struct cv_label {
  char text[CV_NAME_BYTES];
};

/* An algorithm by name with its parameters. */
struct cv_choice {
  char name[CV_PARAM_TEXT];
  struct cv_params params;
};

struct cv_spec {
  char name[CV_NAME_BYTES];
  uint32_t arms;          /* 1 .. CV_ARMS_MAX */
  struct cv_label *names; /* `arms` item names, owned; NULL unless the campaign says share_names */
  struct cv_choice policy;
  struct cv_choice mechanism;
  struct cv_choice privatizer;
  uint64_t epsilon_micro; /* what the mechanism may spend per arm's stream */
  uint32_t tokens_per_worker;
  bool thirdparty_trusted;
  uint64_t tokens;      /* limit of accepted tokens over all arms */
  uint64_t deadline_ms; /* after Submit; 0 = none */
  uint64_t idle_ms;     /* without an accepted token; 0 = none */
};

void cv_spec_fini(struct cv_spec *spec);
/* A deep copy into storage that is not initialised. */
CV_MUST_USE enum cv_err cv_spec_copy(const struct cv_spec *from, struct cv_spec *ret_to);
/* Range checks that need no algorithm table: name, arms, epsilon, tokens. */
CV_MUST_USE enum cv_err cv_spec_check(const struct cv_spec *spec, struct cv_why *why);
/* One line of a name: printable UTF-8 (text.h), 1 .. CV_NAME_BYTES - 1 bytes. */
bool cv_name_is_valid(const char *text);

/* The stored form, little-endian, with a version byte. Decoding takes only what encoding gave. */
void cv_spec_encode(const struct cv_spec *spec, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_spec_decode(struct cv_reader *in, struct cv_spec *ret_spec);

#endif
