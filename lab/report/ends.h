/* SPDX-License-Identifier: Apache-2.0 */
/* Names at the ends of a figure's lines: where they stand so that none covers another. */
#ifndef CV_LAB_ENDS_H
#define CV_LAB_ENDS_H

#include <stdbool.h>
#include <stddef.h>

/* Heights are shares of the plot's, 0 at the bottom. */
struct cv_lab_end {
  size_t series; /* the caller's number of the line */
  double at;     /* where the line ends */
  double place;  /* where its name stands */
};

/*
 * Sorts the ends by height and sets the places, each as near to its line's end as the others permit: at least `apart`
 * from the next, and within 0 and 1 as far as they fit. Returns whether every name stands less than `apart` from its
 * line's end, so that a reader needs no legend.
 */
bool cv_lab_ends_place(struct cv_lab_end *end, size_t n, double apart);

#endif
