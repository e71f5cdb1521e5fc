/* SPDX-License-Identifier: Apache-2.0 */
/* What is mixed into the generators of a process. All machines are copies of one: only this makes the difference. */
#ifndef CV_SIM_MIX_H
#define CV_SIM_MIX_H

#include <stdint.h>

/* 0 until something is mixed in; then a digest of what came last. */
void mix_forget(void);
uint64_t mix_last(void);

#endif
