/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/chunks.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"

enum { WORD = 64, CHUNK_WORDS = CV_CHUNK_BITS / WORD };

void cv_chunks_init(struct cv_chunks *chunks, uint32_t most) {
  *chunks = (struct cv_chunks){.most = most};
}

void cv_chunks_fini(struct cv_chunks *chunks) {
  if (chunks == NULL) {
    return;
  }
  CV_TABLE_DRAIN(chunks->all, free);
  free(chunks->number);
  chunks->number = NULL;
  chunks->last = NULL;
  chunks->count = 0;
  chunks->cap = 0;
}

/* The number of chunks with a lower number. */
static uint32_t lower(const struct cv_chunks *chunks, uint64_t number) {
  uint32_t low = 0, high = chunks->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (chunks->number[middle] < number) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/* The sorted numbers answer how many chunks a range of workers has, which the hash table cannot. */
static void enlist(struct cv_chunks *chunks, uint64_t number) {
  uint32_t at = lower(chunks, number);
  memmove(chunks->number + at + 1, chunks->number + at, (chunks->count - at) * sizeof(*chunks->number));
  chunks->number[at] = number;
  chunks->count++;
}

static void strike(struct cv_chunks *chunks, uint64_t number) {
  uint32_t at = lower(chunks, number);
  chunks->count--;
  memmove(chunks->number + at, chunks->number + at + 1, (chunks->count - at) * sizeof(*chunks->number));
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
    CV_TRY(CV_ARRAY_ROOM(chunks->number, (size_t)chunks->count + 1, chunks->cap));
    chunk = calloc(1, sizeof(*chunk));
    if (chunk == NULL) {
      return CV_ERR_NOMEM;
    }
    chunk->number = number;
    if (CV_TABLE_ADD(chunks->all, number, chunk) != CV_OK) {
      free(chunk);
      return CV_ERR_NOMEM;
    }
    enlist(chunks, number);
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
  strike(chunks, chunk->number);
  free(chunk);
}

bool cv_chunks_has_room(struct cv_chunks *chunks, uint64_t number, uint64_t first, uint64_t last) {
  if (cv_chunks_find(chunks, number) != NULL) {
    return true;
  }
  /* An owner may create chunks while it has fewer than are left, so that one certificate takes at most half of the
   * table. */
  uint32_t left = chunks->count < chunks->most ? chunks->most - chunks->count : 0;
  return lower(chunks, last + 1) - lower(chunks, first) < left;
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

static uint64_t word_of(const struct cv_chunk *chunk, uint64_t at) {
  uint64_t word;
  /* Bit i of the array is bit i of the word on every machine, because chunks are stored byte by byte. */
  memcpy(&word, chunk->as.bytes + at * sizeof(word), sizeof(word));
  return le64toh(word);
}

uint64_t cv_chunks_word(struct cv_chunks *chunks, uint64_t number) {
  const struct cv_chunk *chunk = cv_chunks_find(chunks, number / CHUNK_WORDS);
  return chunk == NULL ? 0 : word_of(chunk, number % CHUNK_WORDS);
}

uint64_t cv_chunks_unset(struct cv_chunks *chunks, uint64_t from, uint64_t end) {
  while (from < end) {
    const struct cv_chunk *chunk = cv_chunks_find(chunks, from / CV_CHUNK_BITS);
    if (chunk == NULL) {
      return from;
    }
    uint64_t unset = 0, base = from / CV_CHUNK_BITS * CV_CHUNK_BITS;
    uint64_t at = from % CV_CHUNK_BITS / WORD;
    unset = ~word_of(chunk, at) & UINT64_MAX << from % WORD;
    while (unset == 0 && ++at < CHUNK_WORDS) {
      unset = ~word_of(chunk, at);
    }
    if (unset != 0) {
      from = base + at * WORD + (uint64_t)__builtin_ctzll(unset);
      return from < end ? from : end;
    }
    from = base + CV_CHUNK_BITS;
  }
  return end;
}
