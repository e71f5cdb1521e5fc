/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sparse array in chunks of 4 KiB: single bits (filled places, used slots of workers) or 32-bit counters (the
 * spending of workers). Untouched chunks use no memory; the caller bounds the number of chunks.
 *
 * For storage, each chunk records the commit of its first change since it was last written.
 */
#ifndef CV_BASE_CHUNKS_H
#define CV_BASE_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/table.h"

enum { CV_CHUNK_BYTES = 4096, CV_CHUNK_BITS = CV_CHUNK_BYTES * 8, CV_CHUNK_CELLS = CV_CHUNK_BYTES / 4 };

struct cv_chunk {
  uint64_t number;
  uint64_t written;     /* commit at which it was last stored; 0 = never */
  uint64_t dirty_since; /* commit of the first change not yet stored; 0 = clean */
  UT_hash_handle hh;
  union {
    uint8_t bytes[CV_CHUNK_BYTES]; /* bit i is bit i % 8 of byte i / 8 */
    uint32_t cell[CV_CHUNK_CELLS]; /* host byte order in memory, little-endian when stored */
  } as;
};

struct cv_chunks {
  struct cv_chunk *all;  /* by number */
  struct cv_chunk *last; /* the chunk used last: consecutive accesses often hit the same chunk */
  uint64_t *number;      /* of all, ascending; owned */
  uint32_t count, most;
  size_t cap; /* of `number` */
};

/* An empty table of at most `most` chunks. */
void cv_chunks_init(struct cv_chunks *chunks, uint32_t most);
void cv_chunks_fini(struct cv_chunks *chunks);

/* NULL if the chunk was never touched. */
struct cv_chunk *cv_chunks_find(struct cv_chunks *chunks, uint64_t number);
/* Finds the chunk or creates it, all zero. CV_ERR_LIMIT if the table already has `most` chunks; CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_chunks_touch(struct cv_chunks *chunks, uint64_t number, struct cv_chunk **ret);
/* Frees a chunk of the table. */
void cv_chunks_drop(struct cv_chunks *chunks, struct cv_chunk *chunk);

/*
 * Whether the chunk exists or may be created by the owner of the chunks `first` to `last`, both included. An owner that
 * already has as many chunks as are left for all others may not create more, so that no range can fill the table.
 */
bool cv_chunks_has_room(struct cv_chunks *chunks, uint64_t number, uint64_t first, uint64_t last);

/* Bits are numbered through all chunks; a bit in an untouched chunk is 0. */
bool cv_chunks_bit(struct cv_chunks *chunks, uint64_t index);
/* Sets the bit; creates its chunk if needed. CV_ERR_LIMIT, CV_ERR_NOMEM as above. */
CV_MUST_USE enum cv_err cv_chunks_set(struct cv_chunks *chunks, uint64_t index, struct cv_chunk **ret);
/* Number of bits set among the `n` bits from `from` on. Each untouched chunk costs one lookup. */
uint64_t cv_chunks_count(struct cv_chunks *chunks, uint64_t from, uint64_t n);
/* The first bit from `from` on that is 0; `end` if all bits before `end` are 1. Tests 64 bits at once. */
uint64_t cv_chunks_unset(struct cv_chunks *chunks, uint64_t from, uint64_t end);
/* Bits 64 * number to 64 * number + 63; the first one is the lowest. */
uint64_t cv_chunks_word(struct cv_chunks *chunks, uint64_t number);

#endif
