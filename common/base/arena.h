/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bump allocator of a bounded size. Single allocations are never freed; cv_arena_reset() frees all of them. The first
 * block of up to CV_ARENA_BLOCK bytes is kept; a larger arena has further ones only between a use that needs them and
 * the next reset.
 */
#ifndef CV_BASE_ARENA_H
#define CV_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

enum { CV_ARENA_BLOCK = 4 * 1024 * 1024 };

struct cv_arena {
  uint8_t *base;  /* the current block */
  size_t size;    /* of the current block, bytes */
  size_t used;    /* of the current block */
  size_t blocks;  /* bytes of all blocks */
  size_t most;    /* bytes of all blocks, at most */
  size_t bound;   /* the same until the next reset */
  uint8_t *first; /* private */
  void *more;     /* private: further blocks */
};

/* An arena of at most `size` bytes. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_arena_init(struct cv_arena *arena, size_t size);
void cv_arena_fini(struct cv_arena *arena);
/* Returns `n` bytes, 16-byte aligned and not cleared; NULL if the arena is exhausted. */
void *cv_arena_alloc(struct cv_arena *arena, size_t n);
/* Returns an array of `count` zeroed elements; NULL if the arena is exhausted or the product overflows. */
void *cv_arena_array(struct cv_arena *arena, size_t count, size_t size);
void cv_arena_reset(struct cv_arena *arena);
/* Until the next reset the arena takes at most `size` bytes, if that is less than its own bound and more than its first
 * block. */
void cv_arena_bound(struct cv_arena *arena, size_t size);

#endif
