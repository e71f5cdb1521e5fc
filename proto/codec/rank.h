/* SPDX-License-Identifier: Apache-2.0 */
/* Frames between broker and third-party: rank.proto as plain structs. */
#ifndef CV_CODEC_RANK_H
#define CV_CODEC_RANK_H

#include "common/base/digest.h"
#include "proto/codec/frame.h"

/* The state of one side in one campaign. */
struct cv_position {
  uint64_t campaign;
  uint64_t releases, plans;
  struct cv_digest releases_hash, plans_hash; /* zero when there is none */
};

struct cv_rank_open {
  struct cv_spec spec; /* names in the arena (decode) or borrowed (encode): do not call cv_spec_fini() */
  struct cv_position position;
  bool has_seed;
  uint64_t seed;
  enum cv_end stop;
};

struct cv_rank_opened {
  struct cv_position position;
  uint64_t seed;
  const char *refused; /* NULL unless refused */
};

struct cv_rank_release {
  uint64_t campaign;
  struct cv_release release;
};

/* A plan, with standings (third-party to broker) or without (recorded). */
struct cv_rank_plan {
  uint64_t campaign;
  struct cv_plan plan;
  uint32_t standings;
  struct cv_standing *standing;
};

struct cv_rank_number {
  uint64_t campaign;
  uint64_t number;
};

struct cv_rank_refused {
  uint64_t campaign, plan;
  enum cv_end reason;
  const char *why;
  uint64_t asked, left;
};

struct cv_rank_stop {
  uint64_t campaign;
  enum cv_end reason;
};

struct cv_rank_result {
  uint64_t campaign;
  enum cv_end reason;
  uint32_t standings;
  struct cv_standing *standing;
};

struct cv_rank_frame {
  struct cv_hello hello;
  const char *goodbye;
  /* broker to third-party */
  size_t opens, recorded, releases, accepted, refused, stops, closed;
  struct cv_rank_open *open;
  struct cv_rank_plan *record;
  struct cv_rank_release *release;
  struct cv_rank_number *accept;
  struct cv_rank_refused *refuse;
  struct cv_rank_stop *stop;
  uint64_t *close;
  /* third-party to broker */
  size_t opened, acks, plans, results;
  struct cv_rank_opened *answer;
  struct cv_rank_number *ack;
  struct cv_rank_plan *plan;
  struct cv_rank_result *result;
};

/* As cv_crowd_encode() and cv_crowd_decode() (crowd.h). */
CV_MUST_USE enum cv_err cv_rank_encode(const struct cv_rank_frame *frame, struct cv_arena *scratch, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_rank_decode(const void *bytes, size_t n, struct cv_arena *arena, struct cv_rank_frame *ret);

/* The schema for a daemon's lanes. */
extern const struct cv_wire CV_RANK_WIRE;

#endif
