/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/answered.h"

#include <stddef.h>

/*
 * A record is a row of units: bits, or the numbers of a list, 0 for none. Several records share a chunk, or several
 * chunks hold one; a unit lies within one chunk.
 */
struct unit {
  uint64_t chunk;
  uint32_t bit; /* its first one in the chunk */
};

static uint32_t width_of(const struct cv_answered *asked) {
  return asked->width == 0 ? 1 : asked->width;
}

static uint64_t units_of(const struct cv_answered *asked) {
  return asked->width == 0 ? asked->questions : asked->each;
}

static struct unit find(const struct cv_answered *asked, uint64_t worker, uint64_t index) {
  uint32_t width = width_of(asked);
  uint64_t fit = CV_CHUNK_BITS / width, units = units_of(asked);
  if (units <= fit) {
    uint64_t records = fit / units;
    return (struct unit){.chunk = worker / records, .bit = (uint32_t)((worker % records * units + index) * width)};
  }
  uint64_t chunks = (units + fit - 1) / fit;
  return (struct unit){.chunk = worker * chunks + index / fit, .bit = (uint32_t)(index % fit * width)};
}

static uint64_t get(const struct cv_chunk *chunk, uint32_t bit, uint32_t width) {
  uint64_t number = 0;
  for (uint32_t i = 0; i < width;) {
    uint32_t at = bit + i, left = 8 - at % 8, n = left < width - i ? left : width - i;
    uint64_t piece = (uint64_t)(chunk->as.bytes[at / 8] >> at % 8) & ((1U << n) - 1);
    number |= piece << i;
    i += n;
  }
  return number;
}

static void put(struct cv_chunk *chunk, uint32_t bit, uint32_t width, uint64_t number) {
  for (uint32_t i = 0; i < width;) {
    uint32_t at = bit + i, left = 8 - at % 8, n = left < width - i ? left : width - i, mask = (1U << n) - 1;
    uint8_t *byte = &chunk->as.bytes[at / 8];
    *byte = (uint8_t)((*byte & ~(mask << at % 8)) | (uint32_t)(number >> i & mask) << at % 8);
    i += n;
  }
}

static uint32_t bits_for(uint64_t number) {
  return number == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(number);
}

uint64_t cv_answered_question(uint32_t item, uint32_t opponent) {
  if (opponent == 0) {
    return item;
  }
  uint64_t other = opponent - 1, high = item > other ? item : other, low = item > other ? other : item;
  return high * (high - 1) / 2 + low;
}

void cv_answered_init(struct cv_answered *asked, uint64_t questions, uint32_t each, uint32_t most) {
  uint32_t width = bits_for(questions);
  *asked = (struct cv_answered){
      .questions = questions, .each = each, .width = questions <= (uint64_t)each * width ? 0 : width};
  cv_chunks_init(&asked->chunks, most);
}

void cv_answered_fini(struct cv_answered *asked) {
  cv_chunks_fini(&asked->chunks);
}

/* The entry of the list that is `number`; `n` if none of the first n is. */
static uint32_t find_number(struct cv_answered *asked, uint64_t worker, uint32_t n, uint64_t number) {
  uint64_t fit = CV_CHUNK_BITS / asked->width; /* of a record in several chunks, so many are in each but the last */
  for (uint64_t from = 0; from < n; from += fit) {
    const struct unit first = find(asked, worker, from);
    const struct cv_chunk *chunk = cv_chunks_find(&asked->chunks, first.chunk);
    uint64_t left = n - from < fit ? n - from : fit;
    for (uint32_t i = 0; chunk != NULL && i < left; i++) {
      if (get(chunk, first.bit + i * asked->width, asked->width) == number) {
        return (uint32_t)from + i;
      }
    }
  }
  return n;
}

bool cv_answered_has(struct cv_answered *asked, uint64_t worker, uint64_t question) {
  if (asked->questions == 0) {
    return false;
  }
  if (asked->width > 0) {
    return find_number(asked, worker, asked->each, question + 1) < asked->each;
  }
  const struct unit unit = find(asked, worker, question);
  const struct cv_chunk *chunk = cv_chunks_find(&asked->chunks, unit.chunk);
  return chunk != NULL && get(chunk, unit.bit, 1) != 0;
}

static struct unit unit_of(const struct cv_answered *asked, uint64_t worker, uint32_t nth, uint64_t question) {
  return find(asked, worker, asked->width == 0 ? question : nth);
}

enum cv_err cv_answered_touch(struct cv_answered *asked, uint64_t worker, uint32_t nth, uint64_t question,
                              struct cv_chunk **ret) {
  *ret = NULL;
  return asked->questions == 0 ? CV_OK
                               : cv_chunks_touch(&asked->chunks, unit_of(asked, worker, nth, question).chunk, ret);
}

void cv_answered_set(const struct cv_answered *asked, struct cv_chunk *chunk, uint64_t worker, uint32_t nth,
                     uint64_t question) {
  put(chunk, unit_of(asked, worker, nth, question).bit, width_of(asked), asked->width == 0 ? 1 : question + 1);
}

void cv_answered_clear(struct cv_answered *asked, uint64_t worker, uint32_t n, uint64_t question) {
  if (asked->questions == 0) {
    return;
  }
  uint32_t at = asked->width == 0 ? 0 : find_number(asked, worker, n, question + 1);
  if (at == n) {
    return;
  }
  struct unit unit = unit_of(asked, worker, at, question);
  struct cv_chunk *chunk = cv_chunks_find(&asked->chunks, unit.chunk);
  uint64_t last = 0;
  if (asked->width > 0) {
    const struct unit end = find(asked, worker, n - 1);
    struct cv_chunk *its = cv_chunks_find(&asked->chunks, end.chunk);
    last = get(its, end.bit, asked->width);
    put(its, end.bit, asked->width, 0);
  }
  /* The last entry itself is gone already. */
  if (chunk != NULL && (asked->width == 0 || at + 1 < n)) {
    put(chunk, unit.bit, width_of(asked), last);
  }
}

/* Bits are counted byte by byte, as there may be very many. */
static uint64_t count_in(const struct cv_chunk *chunk, uint32_t width) {
  uint64_t count = 0;
  for (uint32_t i = 0; width == 0 && i < CV_CHUNK_BYTES; i++) {
    count += (uint64_t)__builtin_popcount(chunk->as.bytes[i]);
  }
  for (uint32_t i = 0; width > 0 && i < CV_CHUNK_BITS / width; i++) {
    count += get(chunk, i * width, width) != 0;
  }
  return count;
}

uint64_t cv_answered_count(const struct cv_answered *asked) {
  uint64_t count = 0;
  for (const struct cv_chunk *chunk = asked->chunks.all; chunk != NULL; chunk = chunk->hh.next) {
    count += count_in(chunk, asked->width);
  }
  return count;
}

bool cv_answered_has_room(struct cv_answered *asked, uint64_t worker, uint32_t nth, uint64_t question, uint64_t first,
                          uint64_t last) {
  return asked->questions == 0 ||
         cv_chunks_has_room(&asked->chunks, unit_of(asked, worker, nth, question).chunk, find(asked, first, 0).chunk,
                            find(asked, last, units_of(asked) - 1).chunk);
}
