/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/chunks.h"

#include <stdlib.h>

void cv_chunks_init(struct cv_chunks *chunks, uint32_t most) {
  *chunks = (struct cv_chunks){.most = most};
}

void cv_chunks_fini(struct cv_chunks *chunks) {
  if (chunks == NULL) {
    return;
  }
  CV_TABLE_DRAIN(chunks->all, free);
  chunks->last = NULL;
  chunks->count = 0;
}

struct cv_chunk *cv_chunks_find(struct cv_chunks *chunks, uint64_t number) {
  if (chunks->last != NULL && chunks->last->number == number) {
    return chunks->last;
  }
  struct cv_chunk *chunk;
  HASH_FIND(hh, chunks->all, &number, sizeof(number), chunk);
  if (chunk != NULL) {
    chunks->last = chunk;
  }
  return chunk;
}

enum cv_err cv_chunks_touch(struct cv_chunks *chunks, uint64_t number, struct cv_chunk **ret) {
  struct cv_chunk *chunk = cv_chunks_find(chunks, number);
  if (chunk == NULL) {
    if (chunks->count >= chunks->most) {
      return CV_ERR_LIMIT;
    }
    chunk = calloc(1, sizeof(*chunk));
    if (chunk == NULL) {
      return CV_ERR_NOMEM;
    }
    chunk->number = number;
    if (CV_TABLE_ADD(chunks->all, number, chunk) != CV_OK) {
      free(chunk);
      return CV_ERR_NOMEM;
    }
    chunks->count++;
    chunks->last = chunk;
  }
  *ret = chunk;
  return CV_OK;
}

void cv_chunks_drop(struct cv_chunks *chunks, struct cv_chunk *chunk) {
  if (chunks->last == chunk) {
    chunks->last = NULL;
  }
  HASH_DEL(chunks->all, chunk);
  free(chunk);
  chunks->count--;
}

bool cv_chunks_bit(struct cv_chunks *chunks, uint64_t index) {
  struct cv_chunk *chunk = cv_chunks_find(chunks, index / CV_CHUNK_BITS);
  uint32_t bit = (uint32_t)(index % CV_CHUNK_BITS);
  return chunk != NULL && (chunk->as.bytes[bit / 8] >> (bit % 8) & 1) != 0;
}

enum cv_err cv_chunks_set(struct cv_chunks *chunks, uint64_t index, struct cv_chunk **ret) {
  struct cv_chunk *chunk;
  CV_TRY(cv_chunks_touch(chunks, index / CV_CHUNK_BITS, &chunk));
  uint32_t bit = (uint32_t)(index % CV_CHUNK_BITS);
  chunk->as.bytes[bit / 8] |= (uint8_t)(1U << (bit % 8));
  *ret = chunk;
  return CV_OK;
}

void cv_chunks_clear(struct cv_chunks *chunks, uint64_t index) {
  struct cv_chunk *chunk = cv_chunks_find(chunks, index / CV_CHUNK_BITS);
  if (chunk != NULL) {
    uint32_t bit = (uint32_t)(index % CV_CHUNK_BITS);
    chunk->as.bytes[bit / 8] &= (uint8_t) ~(1U << (bit % 8));
  }
}

uint64_t cv_chunks_count(struct cv_chunks *chunks, uint64_t from, uint64_t n) {
  uint64_t count = 0;
  while (n > 0) {
    uint64_t here = CV_CHUNK_BITS - from % CV_CHUNK_BITS;
    here = here < n ? here : n;
    if (cv_chunks_find(chunks, from / CV_CHUNK_BITS) != NULL) {
      for (uint64_t i = 0; i < here; i++) {
        count += cv_chunks_bit(chunks, from + i);
      }
    }
    from += here;
    n -= here;
  }
  return count;
}
