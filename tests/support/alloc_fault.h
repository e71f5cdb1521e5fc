/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A heap that fails on demand. A program that links alloc_fault.c has its own malloc, calloc, realloc, reallocarray and
 * free; the C library's functions that allocate (strdup, asprintf, ...) and every shared library (SQLite, OpenSSL,
 * libyaml, jansson, protobuf-c, libuv) call them too. Between armed and paused, allocations are counted and the n-th
 * one, or all from the n-th on, fail; outside they pass. Thread-safe; counts are of the whole program.
 *
 * A test runs the same steps again and again with n = 1, 2, 3, ... until no allocation fails any more:
 *
 *   ALLOC_FAULT_EACH(fault, .rest = false) { set up; alloc_fault_arm(); step; alloc_fault_pause(); assert; clean up }
 *
 * In the environment, ALLOC_FAULT_SHOW makes each round say its number, ALLOC_FAULT_FROM=n begins with n, and
 * ALLOC_FAULT_STEP=n goes on in steps of n (1: every one, where a test skips some to save time); ALLOC_FAULT_TIMES=n
 * makes the steps of each test n times as long. In a debugger a breakpoint on `refuse` shows the allocation that fails.
 */
#ifndef CV_TESTS_ALLOC_FAULT_H
#define CV_TESTS_ALLOC_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

struct alloc_fault {
  uint64_t nth;  /* the allocation that fails in this round, from 1 */
  uint64_t step; /* added to nth from round to round; 0: 1 */
  bool rest;     /* all later ones fail, too, until the end of the round */
  uint64_t rounds;
};

/* The rest of the arguments are initialisers of the struct above. */
#define ALLOC_FAULT_EACH(fault, ...) for (struct alloc_fault fault = {__VA_ARGS__}; alloc_fault_next(&fault);)

/* Begins the next round, paused; false if the last round had no failure. */
bool alloc_fault_next(struct alloc_fault *fault);
/* Counts, and lets allocations fail, from here on; counting continues where it was paused. */
void alloc_fault_arm(void);
void alloc_fault_pause(void);
/* Inside a step: pauses, for what the test itself allocates there. Returns whether to arm again afterwards. */
CV_MUST_USE bool alloc_fault_aside(void);
/* Whether an allocation has failed in this round. */
bool alloc_fault_hit(void);
/* The number of allocations that are not yet freed, in the whole program; in a sanitizer build always 0. */
int64_t alloc_fault_live(void);

#endif
