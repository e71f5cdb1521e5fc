/* SPDX-License-Identifier: Apache-2.0 */
/* The subjects of an audit: each mechanism, privatizer and pipeline, at several n and epsilon. */
#ifndef CV_LAB_AUDIT_PLAN_H
#define CV_LAB_AUDIT_PLAN_H

#include "lab/audit/subject.h"

struct cv_audit_plan;

/*
 * Makes a plan; the caller frees it. `only`, borrowed for the call: the name of the only part to audit, or NULL for all
 * (CV_ERR_NOT_FOUND for an unknown name). `full` adds more n, epsilon and items.
 */
CV_MUST_USE enum cv_err cv_audit_plan_new(const char *only, bool full, struct cv_audit_plan **ret, struct cv_why *why);
void cv_audit_plan_free(struct cv_audit_plan *plan);
/* The subjects, owned by the plan. */
const struct cv_audit_subject *cv_audit_plan_subjects(const struct cv_audit_plan *plan, size_t *ret_count);

#endif
