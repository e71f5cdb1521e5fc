/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sparse array in chunks of 4 KiB: single bits (which places are filled, which slots of which worker are used) or
 * 32-bit counters (what a worker has spent). Untouched chunks cost nothing; the number of chunks is bounded by the
 * caller.
 *
 * For storage each chunk remembers the commit that first changed it since it was last written.
 */
#ifndef CV_BROKER_CHUNKS_H
#define CV_BROKER_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/table.h"

enum { CV_CHUNK_BYTES = 4096, CV_CHUNK_BITS = CV_CHUNK_BYTES * 8, CV_CHUNK_CELLS = CV_CHUNK_BYTES / 4 };

struct cv_chunk {
  uint64_t number;
  uint64_t written;     /* commit whose content is stored; 0 = none */
  uint64_t dirty_since; /* commit of the first change that is not stored; 0 = clean */
  UT_hash_handle hh;
  union {
    uint8_t bytes[CV_CHUNK_BYTES]; /* bit i is bit i % 8 of byte i / 8 */
    uint32_t cell[CV_CHUNK_CELLS]; /* in the host's order in memory, little-endian when stored */
  } as;
};

struct cv_chunks {
  struct cv_chunk *all;  /* by number */
  struct cv_chunk *last; /* the one used last: neighbours come together */
  uint64_t *number;      /* of all, ascending; owned */
  uint32_t count, most, cap;
};

/* At most `most` chunks. */
void cv_chunks_init(struct cv_chunks *chunks, uint32_t most);
void cv_chunks_fini(struct cv_chunks *chunks);

/* NULL if it was never touched. */
struct cv_chunk *cv_chunks_find(struct cv_chunks *chunks, uint64_t number);
/* Makes it, all zero, if need be; CV_ERR_LIMIT when `most` is reached. */
CV_MUST_USE enum cv_err cv_chunks_touch(struct cv_chunks *chunks, uint64_t number, struct cv_chunk **ret);
/* Forgets a chunk that is there. */
void cv_chunks_drop(struct cv_chunks *chunks, struct cv_chunk *chunk);

/*
 * Whether the chunk is there or may be made by somebody whose own are those from `first` to `last`, both included: who
 * holds as many as are left for all others makes none, so that no range fills the table.
 */
bool cv_chunks_has_room(struct cv_chunks *chunks, uint64_t number, uint64_t first, uint64_t last);

/* Bits are numbered through all chunks; one whose chunk was never touched is 0. */
bool cv_chunks_bit(struct cv_chunks *chunks, uint64_t index);
/* Sets the bit in its chunk, made if need be; CV_ERR_LIMIT as above. */
CV_MUST_USE enum cv_err cv_chunks_set(struct cv_chunks *chunks, uint64_t index, struct cv_chunk **ret);
/* Clears the bit, if its chunk is there. */
void cv_chunks_clear(struct cv_chunks *chunks, uint64_t index);
/* Bits set among the `n` from `from` on. Chunks that were never touched cost one look each. */
uint64_t cv_chunks_count(struct cv_chunks *chunks, uint64_t from, uint64_t n);
/* The first bit from `from` on that is 0; `end` if all before it are 1. Looks at 64 of them at once. */
uint64_t cv_chunks_unset(struct cv_chunks *chunks, uint64_t from, uint64_t end);
/* Bits 64 x number to 64 x number + 63, the first one lowest. */
uint64_t cv_chunks_word(struct cv_chunks *chunks, uint64_t number);

#endif
