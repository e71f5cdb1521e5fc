/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal to proto/codec: encodes and decodes base.proto, packing and unpacking in an arena.
 *
 * put functions build protobuf messages in the scratch arena and borrow the caller's strings and arrays; CV_ERR_LIMIT
 * if the scratch arena is exhausted. take functions check a received message and convert it into plain structs;
 * CV_ERR_FORMAT (a field out of its range) or CV_ERR_LIMIT (the arena is exhausted). After an error their output may be
 * half-written; the frame's decoder then discards it.
 */
#ifndef CV_CODEC_BASE_H
#define CV_CODEC_BASE_H

#include <base.pb-c.h>

#include "common/base/digest.h"
#include "common/base/terms.h"
#include "proto/codec/frame.h"

/* Unpacks at most `most` bytes into `arena`, after resetting it. */
CV_MUST_USE enum cv_err cv_codec_unpack(const ProtobufCMessageDescriptor *descriptor, const void *bytes, size_t n,
                                        size_t most, struct cv_arena *arena, ProtobufCMessage **ret);
/* Appends to `out`. CV_ERR_LIMIT if the message is over `most` bytes; then nothing is appended. */
CV_MUST_USE enum cv_err cv_codec_pack(const ProtobufCMessage *message, size_t most, struct cv_buf *out);

/* Allocates `count` uninitialised elements, which the caller sets; NULL if the arena is exhausted. */
void *cv_codec_room(struct cv_arena *arena, size_t count, size_t size);
/* Allocates the rows of a repeated message field and the pointers to them; false if the arena is exhausted. */
#define CV_CODEC_ROWS(arena, count, row, pointer)                       \
  (((row) = cv_codec_room((arena), (count), sizeof(*(row)))) != NULL && \
   ((pointer) = cv_codec_room((arena), (count), sizeof(*(pointer)))) != NULL)

/* Moves up to `most` elements of one of a frame's arrays. */
#define CV_CODEC_MOVE(rest, part, array, count, most)                                  \
  do {                                                                                 \
    (part)->array = (rest)->array;                                                     \
    (part)->count = (rest)->count < (most) ? (rest)->count : (most);                   \
    (rest)->count -= (part)->count;                                                    \
    (rest)->array = (part)->count > 0 ? (rest)->array + (part)->count : (rest)->array; \
  } while (0)

/* Casts const away: protobuf-c does not use const, but packing does not write. */
static inline void *cv_codec_borrow(const void *bytes) {
  return (void *)(uintptr_t)bytes;
}
static inline ProtobufCBinaryData cv_codec_bytes(const uint8_t *bytes, size_t n) {
  return (ProtobufCBinaryData){.len = n, .data = cv_codec_borrow(bytes)};
}
static inline bool cv_codec_end_fits(Crowdveil__Base__End end) {
  return (unsigned)end < CV_END_COUNT;
}
/* The reason why something ended; END_NONE, "still running", is invalid. */
static inline bool cv_codec_is_reason(Crowdveil__Base__End end) {
  return cv_codec_end_fits(end) && end != CROWDVEIL__BASE__END__END_NONE;
}

/* Returns a text of fewer than `size` bytes, cut and cleaned if necessary; NULL counts as empty. Returns NULL if the
 * arena is exhausted. */
char *cv_codec_put_text(const char *text, size_t size, struct cv_arena *scratch);
/* Puts the reason of a refusal; NULL: not refused. */
CV_MUST_USE enum cv_err cv_codec_put_refused(const char *refused, struct cv_arena *scratch, char **ret);
/* Text of a peer: what turns a line or is hidden in it is replaced (cv_text_clean()), in the frame and in the copy.
 * False and CV_ERR_FORMAT: not clean text of fewer than `size` bytes. */
bool cv_codec_text_fits(char *text, size_t size);
CV_MUST_USE enum cv_err cv_codec_take_text(const char *text, char *to, size_t size);

/* A seed is 8 bytes, little-endian. */
CV_MUST_USE enum cv_err cv_codec_put_seed(uint64_t seed, struct cv_arena *scratch, ProtobufCBinaryData *ret);
CV_MUST_USE enum cv_err cv_codec_take_seed(const ProtobufCBinaryData *in, uint64_t *ret);
CV_MUST_USE enum cv_err cv_codec_take_digest(const ProtobufCBinaryData *in, struct cv_digest *ret);
/* Takes exactly `size` bytes. */
CV_MUST_USE enum cv_err cv_codec_take_bytes(const ProtobufCBinaryData *in, void *to, size_t size);

/* Both messages may be absent; then the pointer is NULL. */
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
/* Checks formats only; cv_spec_check() checks the meaning and explains errors. NULL is CV_ERR_FORMAT. The names are as
 * they came: a broker refuses those that are not normal (normal.h); who gets a campaign from a broker cleans them. */
CV_MUST_USE enum cv_err cv_codec_take_spec(const Crowdveil__Base__Spec *in, struct cv_arena *arena,
                                           struct cv_spec *ret);

/* Cleans the names of a campaign that was just taken from a frame. */
void cv_codec_clean_names(struct cv_spec *spec);

CV_MUST_USE enum cv_err cv_codec_put_terms(const struct cv_terms *terms, struct cv_arena *scratch,
                                           Crowdveil__Base__Terms *ret);
/* NULL is CV_ERR_FORMAT. */
CV_MUST_USE enum cv_err cv_codec_take_terms(const Crowdveil__Base__Terms *in, struct cv_terms *ret);

CV_MUST_USE enum cv_err cv_codec_put_release(uint64_t campaign, const struct cv_release *release,
                                             struct cv_arena *scratch, Crowdveil__Base__Release *ret);
CV_MUST_USE enum cv_err cv_codec_take_release(const Crowdveil__Base__Release *in, struct cv_release *ret);

CV_MUST_USE enum cv_err cv_codec_put_plan(uint64_t campaign, const struct cv_plan *plan, struct cv_arena *scratch,
                                          Crowdveil__Base__Plan *ret);
CV_MUST_USE enum cv_err cv_codec_take_plan(const Crowdveil__Base__Plan *in, struct cv_arena *arena,
                                           struct cv_plan *ret);
/* Takes an accepted plan: its number is not 0, and it names each arm at most once, below CV_ARMS_MAX. */
CV_MUST_USE enum cv_err cv_codec_take_accepted_plan(const Crowdveil__Base__Plan *in, struct cv_arena *arena,
                                                    struct cv_plan *ret);

CV_MUST_USE enum cv_err cv_codec_put_standings(const struct cv_standing *standing, size_t n, struct cv_arena *scratch,
                                               Crowdveil__Base__Standing ***ret);
CV_MUST_USE enum cv_err cv_codec_take_standings(Crowdveil__Base__Standing **in, size_t n, struct cv_arena *arena,
                                                uint32_t *ret_n, struct cv_standing **ret);

#endif
