/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal to proto/codec: base.proto in both directions, and packing and unpacking in an arena.
 *
 * put functions build protobuf messages in the scratch arena and borrow the caller's strings and arrays; they fail with
 * CV_ERR_LIMIT when the scratch is exhausted. take functions check what came in, and convert it into plain structs;
 * they fail with CV_ERR_FORMAT (a field out of its range) or CV_ERR_LIMIT (the arena is exhausted) and may leave their
 * output half-written, which the frame's decoder then drops.
 */
#ifndef CV_CODEC_BASE_H
#define CV_CODEC_BASE_H

#include <base.pb-c.h>

#include "common/base/digest.h"
#include "proto/codec/frame.h"

/* Unpacks into `arena`, which is reset first. */
CV_MUST_USE enum cv_err cv_codec_unpack(const ProtobufCMessageDescriptor *descriptor, const void *bytes, size_t n,
                                        struct cv_arena *arena, ProtobufCMessage **ret);
/* Appends to `out`; CV_ERR_LIMIT, and nothing appended, over CV_FRAME_BYTES. */
CV_MUST_USE enum cv_err cv_codec_pack(const ProtobufCMessage *message, struct cv_buf *out);

/* Room for `count` elements that the caller will set, all of them; NULL when exhausted. */
void *cv_codec_room(struct cv_arena *arena, size_t count, size_t size);
/* Room for the rows of a repeated message field and the pointers to them: false when exhausted. */
#define CV_CODEC_ROWS(arena, count, row, pointer)                       \
  (((row) = cv_codec_room((arena), (count), sizeof(*(row)))) != NULL && \
   ((pointer) = cv_codec_room((arena), (count), sizeof(*(pointer)))) != NULL)

/* protobuf-c has no const; packing does not write. */
static inline void *cv_codec_borrow(const void *bytes) {
  return (void *)(uintptr_t)bytes;
}
static inline ProtobufCBinaryData cv_codec_bytes(const uint8_t *bytes, size_t n) {
  return (ProtobufCBinaryData){.len = n, .data = cv_codec_borrow(bytes)};
}
static inline bool cv_codec_end_fits(Crowdveil__Base__End end) {
  return (unsigned)end < CV_END_COUNT;
}

/* A text of fewer than `size` bytes, cut and cleaned if need be; NULL counts as empty. NULL when exhausted. */
char *cv_codec_put_text(const char *text, size_t size, struct cv_arena *scratch);
/* True for clean text of fewer than `size` bytes. */
bool cv_codec_text_fits(const char *text, size_t size);
CV_MUST_USE enum cv_err cv_codec_take_text(const char *text, char *to, size_t size);

/* 8 bytes, little-endian. */
CV_MUST_USE enum cv_err cv_codec_put_seed(uint64_t seed, struct cv_arena *scratch, ProtobufCBinaryData *ret);
CV_MUST_USE enum cv_err cv_codec_take_seed(const ProtobufCBinaryData *in, uint64_t *ret);
CV_MUST_USE enum cv_err cv_codec_take_digest(const ProtobufCBinaryData *in, struct cv_digest *ret);

/* Both may be absent: *ret NULL. */
CV_MUST_USE enum cv_err cv_codec_put_greetings(const struct cv_hello *hello, const char *goodbye,
                                               struct cv_arena *scratch, Crowdveil__Base__Hello **ret_hello,
                                               Crowdveil__Base__Goodbye **ret_goodbye);
CV_MUST_USE enum cv_err cv_codec_take_greetings(const Crowdveil__Base__Hello *hello,
                                                const Crowdveil__Base__Goodbye *goodbye, struct cv_hello *ret_hello,
                                                const char **ret_goodbye);

CV_MUST_USE enum cv_err cv_codec_put_choice(const struct cv_choice *choice, struct cv_arena *scratch,
                                            Crowdveil__Base__Choice **ret);
/* NULL gives an empty choice. */
CV_MUST_USE enum cv_err cv_codec_take_choice(const Crowdveil__Base__Choice *in, struct cv_choice *ret);

CV_MUST_USE enum cv_err cv_codec_put_spec(const struct cv_spec *spec, struct cv_arena *scratch,
                                          Crowdveil__Base__Spec **ret);
/* Shapes only: whether the spec makes sense is for cv_spec_check, which can say why not. NULL is CV_ERR_FORMAT. */
CV_MUST_USE enum cv_err cv_codec_take_spec(const Crowdveil__Base__Spec *in, struct cv_arena *arena,
                                           struct cv_spec *ret);

CV_MUST_USE enum cv_err cv_codec_put_release(uint64_t campaign, const struct cv_release *release,
                                             struct cv_arena *scratch, Crowdveil__Base__Release *ret);
CV_MUST_USE enum cv_err cv_codec_take_release(const Crowdveil__Base__Release *in, struct cv_release *ret);

CV_MUST_USE enum cv_err cv_codec_put_plan(uint64_t campaign, const struct cv_plan *plan, struct cv_arena *scratch,
                                          Crowdveil__Base__Plan *ret);
CV_MUST_USE enum cv_err cv_codec_take_plan(const Crowdveil__Base__Plan *in, struct cv_arena *arena,
                                           struct cv_plan *ret);
/* One that has been accepted: its number is not 0, it names each arm once, and none beyond CV_ARMS_MAX. */
CV_MUST_USE enum cv_err cv_codec_take_accepted_plan(const Crowdveil__Base__Plan *in, struct cv_arena *arena,
                                                    struct cv_plan *ret);

CV_MUST_USE enum cv_err cv_codec_put_standings(const struct cv_standing *standing, size_t n, struct cv_arena *scratch,
                                               Crowdveil__Base__Standing ***ret);
CV_MUST_USE enum cv_err cv_codec_take_standings(Crowdveil__Base__Standing **in, size_t n, struct cv_arena *arena,
                                                uint32_t *ret_n, struct cv_standing **ret);

#endif
