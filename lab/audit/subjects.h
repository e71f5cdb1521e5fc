/* SPDX-License-Identifier: Apache-2.0 */
/* What can be audited: mechanisms, privatizers, a whole pipeline, and two ways to draw Laplace noise. */
#ifndef CV_LAB_AUDIT_SUBJECTS_H
#define CV_LAB_AUDIT_SUBJECTS_H

#include "broker/mechanism/mechanism.h"
#include "common/base/spec.h"
#include "lab/audit/subject.h"

/* Sees F(1) .. F(items). CV_ERR_INVALID if the mechanism takes no such stream. */
CV_MUST_USE enum cv_err cv_audit_mechanism(const struct cv_mechanism_class *class, uint64_t epsilon_micro,
                                           const struct cv_audit_stream *stream, struct cv_audit_subject *ret);

/*
 * The scores of a stream, each through the same privatizer, for the stream's arm; the claim is that arm's. Sees all
 * tokens. `choice` is borrowed for as long as the subject; it is one for `arms` arms.
 */
CV_MUST_USE enum cv_err cv_audit_privatizer(const struct cv_choice *choice, uint32_t arms,
                                            const struct cv_audit_stream *stream, struct cv_audit_subject *ret,
                                            struct cv_why *why);

/*
 * Campaigns through the cores of worker and broker: two arms, stream->items releases of each, of a token each; one
 * worker's score differs. Sees all that the third-party is sent. `spec` is borrowed for as long as the subject.
 */
CV_MUST_USE enum cv_err cv_audit_pipeline(const struct cv_spec *spec, const struct cv_audit_stream *stream,
                                          struct cv_audit_subject *ret);

/*
 * Mironov, "On Significance of the Least Significant Bits for Differential Privacy" (2012): Laplace noise of scale
 * 1/epsilon on 0 or 1, by the inverse of its distribution function in double precision, or by the discrete sampler on
 * the grid. Sees whether the sum could have come from 0, and whether from 1, by that inverse. The textbook's way claims
 * epsilon as well.
 */
void cv_audit_laplace(bool textbook, double epsilon, struct cv_audit_subject *ret);

#endif
