/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/slots.h"

#include <stdlib.h>

#include "common/base/table.h"

enum { BLOCK_SLOTS = 512, WORD_BITS = 64, BLOCK_WORDS = BLOCK_SLOTS / WORD_BITS };

/* The slots of all workers in a row, worker by worker, in blocks. */
struct cv_slots_block {
  uint64_t number;
  uint64_t used[BLOCK_WORDS], settled[BLOCK_WORDS];
  UT_hash_handle hh;
};

/* Where a slot is. */
struct place {
  uint64_t block;
  uint32_t word;
  uint64_t bit;
};

static struct place place_of(const struct cv_slots *slots, uint64_t worker, uint32_t slot) {
  uint64_t at = worker * slots->each + slot;
  return (struct place){.block = at / BLOCK_SLOTS,
                        .word = (uint32_t)(at % BLOCK_SLOTS / WORD_BITS),
                        .bit = UINT64_C(1) << at % WORD_BITS};
}

static struct cv_slots_block *find(const struct cv_slots *slots, const struct place *place) {
  struct cv_slots_block *block;
  HASH_FIND(hh, slots->blocks, &place->block, sizeof(place->block), block);
  return block;
}

enum cv_err cv_slots_init(struct cv_slots *slots, uint64_t workers, uint32_t each) {
  *slots = (struct cv_slots){.each = each, .open = calloc(workers, sizeof(*slots->open))};
  return slots->open == NULL ? CV_ERR_NOMEM : CV_OK;
}

void cv_slots_fini(struct cv_slots *slots) {
  CV_TABLE_DRAIN(slots->blocks, free);
  free(slots->open);
  *slots = (struct cv_slots){0};
}

enum cv_slot cv_slots_at(const struct cv_slots *slots, uint64_t worker, uint32_t slot) {
  const struct place place = place_of(slots, worker, slot);
  const struct cv_slots_block *block = find(slots, &place);
  return block == NULL || (block->used[place.word] & place.bit) == 0 ? CV_SLOT_FREE
         : (block->settled[place.word] & place.bit) == 0             ? CV_SLOT_USED
                                                                     : CV_SLOT_SETTLED;
}

enum cv_err cv_slots_use(struct cv_slots *slots, uint64_t worker, uint32_t slot) {
  const struct place place = place_of(slots, worker, slot);
  struct cv_slots_block *block = find(slots, &place);
  if (block == NULL) {
    block = calloc(1, sizeof(*block));
    if (block == NULL) {
      return CV_ERR_NOMEM;
    }
    block->number = place.block;
    if (CV_TABLE_ADD(slots->blocks, number, block) != CV_OK) {
      free(block);
      return CV_ERR_NOMEM;
    }
  }
  slots->open[worker] += (block->used[place.word] & place.bit) == 0;
  block->used[place.word] |= place.bit;
  return CV_OK;
}

void cv_slots_settle(struct cv_slots *slots, uint64_t worker, uint32_t slot) {
  const struct place place = place_of(slots, worker, slot);
  struct cv_slots_block *block = find(slots, &place);
  CV_REQUIRE(block != NULL && (block->used[place.word] & place.bit) != 0);
  slots->open[worker] -= (block->settled[place.word] & place.bit) == 0;
  block->settled[place.word] |= place.bit;
}
