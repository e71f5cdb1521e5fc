/* SPDX-License-Identifier: Apache-2.0 */
/* The lower bound on epsilon that counts of an event certify. */
#ifndef CV_LAB_AUDIT_EVIDENCE_H
#define CV_LAB_AUDIT_EVIDENCE_H

#include <stdint.h>

/*
 * A lower bound on epsilon from the counts of one event on two neighbouring inputs, `runs` runs each: ln((p - delta)/q)
 * with p bounded below and q above. Wrong with probability at most `error`; may be negative, and is -INFINITY if the
 * counts imply no bound.
 */
double cv_audit_certified(uint64_t hits_p, uint64_t hits_q, uint64_t runs, double delta, double error);

/*
 * An approximation of cv_audit_certified() in a few operations, from Wilson's score intervals; `z` is the deviation
 * that a standard normal variable exceeds with probability error/2. For choosing among many events; the choice is then
 * tested exactly.
 */
double cv_audit_estimate(uint64_t hits_p, uint64_t hits_q, uint64_t runs, double delta, double z);

#endif
