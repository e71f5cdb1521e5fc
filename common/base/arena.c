/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/arena.h"

#include <stdlib.h>
#include <string.h>

enum cv_err cv_arena_init(struct cv_arena *arena, size_t size) {
  uint8_t *base = malloc(size);
  if (base == NULL) {
    return CV_ERR_NOMEM;
  }
  *arena = (struct cv_arena){.base = base, .size = size};
  return CV_OK;
}

void cv_arena_fini(struct cv_arena *arena) {
  if (arena == NULL) {
    return;
  }
  free(arena->base);
  *arena = (struct cv_arena){0};
}

void *cv_arena_alloc(struct cv_arena *arena, size_t n) {
  /* Before rounding up, which could wrap. */
  if (n > arena->size) {
    return NULL;
  }
  /* 16 bytes: the alignment of any type, as malloc() gives it. */
  size_t rounded = (n + 15) & ~(size_t)15;
  if (arena->size - arena->used < rounded) {
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
  arena->used = 0;
}
