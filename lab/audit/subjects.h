/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the subjects of an audit: mechanisms, privatizers, whole pipelines with one broker and with two, verifier
 * shares, gateways whose broker lies, data files, gold items, and two samplers of Laplace noise. */
#ifndef CV_LAB_AUDIT_SUBJECTS_H
#define CV_LAB_AUDIT_SUBJECTS_H

#include "broker/mechanism/mechanism.h"
#include "common/base/spec.h"
#include "lab/audit/subject.h"

/* The adversary sees F(1) .. F(items). CV_ERR_INVALID if the mechanism cannot process the stream. */
CV_MUST_USE enum cv_err cv_audit_mechanism(const struct cv_mechanism_class *class, uint64_t epsilon_micro,
                                           const struct cv_audit_stream *stream, struct cv_audit_subject *ret);

/*
 * The scores of a stream, all through the same privatizer; the claim is that for the stream's arm. The adversary sees
 * all tokens. `choice`, a privatizer for `arms` arms, must outlive the subject.
 */
CV_MUST_USE enum cv_err cv_audit_privatizer(const struct cv_choice *choice, uint32_t arms,
                                            const struct cv_audit_stream *stream, struct cv_audit_subject *ret,
                                            struct cv_why *why);

/*
 * Campaigns through the cores of worker and broker: two arms with stream->items releases each, of one token each; one
 * worker's score differs. The adversary sees all that the third-party receives. `spec` must outlive the subject.
 *
 * If a worker may give several tokens, and is not hired, then workers are asked, all about the first arm, and what
 * differs is the answer of the worker with the number of the changed item.
 */
CV_MUST_USE enum cv_err cv_audit_pipeline(const struct cv_spec *spec, const struct cv_audit_stream *stream,
                                          struct cv_audit_subject *ret);

/*
 * The same with two brokers, through the cores of worker, broker and co-broker. The adversary is one of the brokers,
 * with the third-party: it sees all that the other one sends, and knows its own noise and its own shares. The claim is
 * the epsilon that the other broker's noise alone has to keep. There are at most CV_INSIDER_ROUNDS releases of an arm.
 *
 * It may lie. Then a run ends with what comes of it: a slot in two places, or a second answer of a worker to one
 * question under another slot, may show no more than one token's epsilon; with a token under another arm, the adversary
 * looks only at that arm's releases, and there, as after a short closing or with another verify key, it may learn
 * nothing at all, so that the claim is 0. A short closing and a second answer need two tokens in each release, the
 * latter also two tokens of a worker, and every lie a stream whose first item is changed, on arm 0.
 */
CV_MUST_USE enum cv_err cv_audit_two_brokers(const struct cv_spec *spec, const struct cv_audit_stream *stream,
                                             const struct cv_audit_brokers *brokers, struct cv_audit_subject *ret);

/* What the co-broker learns from the broker's verifier share of one token, if it is made once, or under a second key,
 * too. Both claim 0: that it learns nothing. */
void cv_audit_verify_key(bool second, struct cv_audit_subject *ret);

/*
 * Gateways that answer a broker which lies to learn one opinion; `at` counts the lies, below cv_audit_gateways(). The
 * opinion is a row of a data file, a person (all of its rows) or a program's answer. The adversary sees all tokens, -1
 * where none came. The claim is one token's epsilon, and for tokens under two laws the sum of both.
 */
size_t cv_audit_gateways(void);
CV_MUST_USE enum cv_err cv_audit_gateway(size_t at, struct cv_audit_subject *ret);

/* The noisy sum of a data file of which one row differs, read with a declared scale, or with one that follows from its
 * rows. Both claim epsilon, that of noise for a sum which one row changes by a score of 1. */
void cv_audit_scale(bool is_declared, uint64_t epsilon_micro, struct cv_audit_subject *ret);

/* The numbers of neutral tokens that a requester learns (common/base/gold.h), of a worker that gold items find, or not.
 * The claim is what the worker's tokens are charged for them. */
void cv_audit_gold(uint64_t epsilon_micro, struct cv_audit_subject *ret);

/*
 * Mironov, "On Significance of the Least Significant Bits for Differential Privacy" (2012): Laplace noise of scale
 * 1/epsilon on 0 or 1, by the inverse of its distribution function in double precision (the textbook), or by the
 * discrete sampler on the grid. The adversary sees whether that inverse can give the sum from 0, and whether from 1.
 * Both claim epsilon.
 */
void cv_audit_laplace(bool textbook, double epsilon, struct cv_audit_subject *ret);

#endif
