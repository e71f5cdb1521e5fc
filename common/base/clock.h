/* SPDX-License-Identifier: Apache-2.0 */
/* The two clocks. Only shells read them; pure code takes times as arguments. */
#ifndef CV_BASE_CLOCK_H
#define CV_BASE_CLOCK_H

#include <stdint.h>

/* Monotonic milliseconds since an unspecified start. */
uint64_t cv_clock_mono_ms(void);
/* Milliseconds since 1970, UTC; may jump. */
uint64_t cv_clock_wall_ms(void);

#endif
