/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/arena.h"

#include <stdlib.h>
#include <string.h>

/* In front of each further block. */
struct more {
  struct more *next;
  size_t pad; /* the memory behind it has the alignment of any type */
};

enum cv_err cv_arena_init(struct cv_arena *arena, size_t size) {
  size_t first = size < CV_ARENA_BLOCK ? size : CV_ARENA_BLOCK;
  uint8_t *base = malloc(first);
  if (base == NULL) {
    return CV_ERR_NOMEM;
  }
  *arena = (struct cv_arena){.base = base, .size = first, .blocks = first, .most = size, .bound = size, .first = base};
  return CV_OK;
}

static void free_more(struct cv_arena *arena) {
  struct more *more = arena->more;
  while (more != NULL) {
    struct more *next = more->next;
    free(more);
    more = next;
  }
  arena->more = NULL;
}

void cv_arena_fini(struct cv_arena *arena) {
  if (arena == NULL) {
    return;
  }
  free_more(arena);
  free(arena->first);
  *arena = (struct cv_arena){0};
}

/* Makes a block with room for n bytes the current one; what is left of the last one stays unused. */
static bool add_block(struct cv_arena *arena, size_t n) {
  size_t left = arena->bound - arena->blocks;
  size_t size = n > CV_ARENA_BLOCK ? n : CV_ARENA_BLOCK;
  size = size < left ? size : left;
  struct more *more = size < n ? NULL : malloc(sizeof(*more) + size);
  if (more == NULL) {
    return false;
  }
  more->next = arena->more;
  arena->more = more;
  arena->base = (uint8_t *)(more + 1);
  arena->size = size;
  arena->used = 0;
  arena->blocks += size;
  return true;
}

void *cv_arena_alloc(struct cv_arena *arena, size_t n) {
  /* Before rounding up, which could wrap. */
  if (n > arena->bound) {
    return NULL;
  }
  /* 16 bytes: the alignment of any type, as malloc() gives it. */
  size_t rounded = (n + 15) & ~(size_t)15;
  if (arena->size - arena->used < rounded && (arena->bound <= arena->blocks || !add_block(arena, rounded))) {
    return NULL;
  }
  void *at = arena->base + arena->used;
  arena->used += rounded;
  return at;
}

void *cv_arena_array(struct cv_arena *arena, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    return NULL;
  }
  void *at = cv_arena_alloc(arena, bytes);
  if (at != NULL) {
    memset(at, 0, bytes);
  }
  return at;
}

void cv_arena_reset(struct cv_arena *arena) {
  free_more(arena);
  arena->base = arena->first;
  arena->size = arena->blocks = arena->most < CV_ARENA_BLOCK ? arena->most : CV_ARENA_BLOCK;
  arena->used = 0;
  arena->bound = arena->most;
}

void cv_arena_bound(struct cv_arena *arena, size_t size) {
  size = size < arena->most ? size : arena->most;
  arena->bound = size > arena->blocks ? size : arena->blocks;
}
