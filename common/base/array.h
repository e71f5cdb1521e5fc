/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growing arrays: a pointer, the number of elements and the capacity (`cap`, in elements); all zero is an empty array.
 * The owner holds the three fields, may read them at any time and frees the pointer. `cap` is 0 or a power of two and
 * at least doubles when the array grows. The only error is CV_ERR_NOMEM, which leaves the array unchanged.
 */
#ifndef CV_BASE_ARRAY_H
#define CV_BASE_ARRAY_H

#include <stddef.h>

#include "common/base/err.h"

/* Makes room for `wanted` elements in total. `array`, `count` and `cap` are lvalues, here and below. */
#define CV_ARRAY_ROOM(array, wanted, cap) cv_array_grow(&(array), (wanted), &(cap), sizeof(*(array)))
/* Appends one uninitialised element and returns its address; NULL if memory runs out. */
#define CV_ARRAY_PUSH(array, count, cap) (CV_ARRAY_ROOM(array, (count) + 1, cap) == CV_OK ? &(array)[(count)++] : NULL)
/* Makes room for one more element in a ring: element i is at (head + i) % cap. Growing may change `head`. */
#define CV_ARRAY_RING_ROOM(ring, head, count, cap) \
  cv_array_grow_ring(&(ring), &(head), (count), &(cap), sizeof(*(ring)))

/* `array` points to the pointer to the first element; `size` is the size of one element, not 0. */
CV_MUST_USE enum cv_err cv_array_grow(void *array, size_t wanted, size_t *cap, size_t size);
CV_MUST_USE enum cv_err cv_array_grow_ring(void *ring, size_t *head, size_t count, size_t *cap, size_t size);

#endif
