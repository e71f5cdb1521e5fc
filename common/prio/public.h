/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few bits that are public although they are computed from secrets. Every branch on such a bit passes it through
 * cv_prio_public(), so that they can be counted, and so that the test that searches for other branches on secrets
 * knows them.
 */
#ifndef CV_PRIO_PUBLIC_H
#define CV_PRIO_PUBLIC_H

#include <stdbool.h>

#ifdef CV_PRIO_MEMCHECK
#include <valgrind/memcheck.h>
#endif

static inline bool cv_prio_public(bool bit) {
#ifdef CV_PRIO_MEMCHECK
  (void)VALGRIND_MAKE_MEM_DEFINED(&bit, sizeof(bit));
#endif
  return bit;
}

#endif
