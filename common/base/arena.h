/* SPDX-License-Identifier: Apache-2.0 */
/* Bump allocator over one block, which the arena owns. Single allocations are never freed; cv_arena_reset() frees
 * all of them. */
#ifndef CV_BASE_ARENA_H
#define CV_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct cv_arena {
  uint8_t *base;
  size_t size, used; /* bytes */
};

/* Allocates the block of `size` bytes. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_arena_init(struct cv_arena *arena, size_t size);
void cv_arena_fini(struct cv_arena *arena);
/* Returns `n` bytes, 16-byte aligned and not cleared; NULL if the block is exhausted. */
void *cv_arena_alloc(struct cv_arena *arena, size_t n);
/* Returns an array of `count` zeroed elements; NULL if the block is exhausted or the product overflows. */
void *cv_arena_array(struct cv_arena *arena, size_t count, size_t size);
void cv_arena_reset(struct cv_arena *arena);

#endif
