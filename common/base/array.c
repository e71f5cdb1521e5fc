/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CAP_LEAST = 8 };

enum cv_err cv_array_grow(void *array, size_t wanted, size_t *cap, size_t size) {
  if (wanted <= *cap) {
    return CV_OK;
  }
  if (wanted > SIZE_MAX / 2) {
    return CV_ERR_NOMEM;
  }
  size_t more = *cap > 0 ? *cap : CAP_LEAST;
  /* Doubled, so that n additions copy O(n) elements, and capacities stay powers of two. */
  while (more < wanted) {
    more *= 2;
  }
  void *first; /* memcpy, because `array` points to a pointer of another type */
  memcpy(&first, array, sizeof(first));
  void *grown = reallocarray(first, more, size);
  if (grown == NULL) {
    return CV_ERR_NOMEM;
  }
  memcpy(array, &grown, sizeof(grown));
  *cap = more;
  return CV_OK;
}

enum cv_err cv_array_grow_ring(void *ring, size_t *head, size_t count, size_t *cap, size_t size) {
  size_t before = *cap;
  CV_TRY(cv_array_grow(ring, count + 1, cap, size));
  if (*cap > before &&
      *head > 0) { /* the full ring wrapped at the head: move the part from the head on to the new end */
    char *first;
    memcpy(&first, ring, sizeof(first));
    size_t n = before - *head;
    memcpy(first + (*cap - n) * size, first + *head * size, n * size);
    *head = *cap - n;
  }
  return CV_OK;
}
