/* SPDX-License-Identifier: Apache-2.0 */
/* Bump allocation out of one block that the caller owns: nothing is freed alone, all of it is reset at once. */
#ifndef CV_BASE_ARENA_H
#define CV_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct cv_arena {
  uint8_t *base;
  size_t size, used; /* bytes */
};

/* Takes `size` bytes from the heap, once; pages are touched only when used. */
CV_MUST_USE enum cv_err cv_arena_init(struct cv_arena *arena, size_t size);
void cv_arena_fini(struct cv_arena *arena);
/* 16-byte aligned, not cleared; NULL when the block is exhausted. */
void *cv_arena_alloc(struct cv_arena *arena, size_t n);
/* An array of `count` cleared elements; NULL when exhausted or if the product overflows. */
void *cv_arena_array(struct cv_arena *arena, size_t count, size_t size);
void cv_arena_reset(struct cv_arena *arena);

#endif
