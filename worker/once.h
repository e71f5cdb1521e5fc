/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The questions that each worker of a pool has answered in one campaign, of which none is answered twice. Pure. Workers
 * are numbered from 0, and questions as in common/base/answered.h.
 */
#ifndef CV_WORKER_ONCE_H
#define CV_WORKER_ONCE_H

#include "common/base/answered.h"
#include "common/base/terms.h"

/* What is recorded. */
struct cv_once_rule {
  uint64_t questions; /* 0: nothing */
  uint32_t most;      /* answers of a worker */
  bool by_name;       /* in the record of all campaigns of the name, which is kept elsewhere */
};

/* All zero records nothing. */
struct cv_once {
  struct cv_once_rule rule;
  char name[CV_NAME_BYTES]; /* of the campaign */
  struct cv_answered asked;
  uint32_t *answers; /* per worker; owned */
  uint64_t total;
};

/* Each question about so many arms, or pairs of them, is asked of a worker once, and it answers at most `most`. */
struct cv_once_rule cv_once_rule(uint32_t arms, bool pairs, uint64_t most);

/* CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_once_init(struct cv_once *once, const struct cv_once_rule *rule, const char *name,
                                     uint64_t workers);
void cv_once_fini(struct cv_once *once);
/* Whether the record is one by this rule, for the campaign of this name. */
bool cv_once_fits(const struct cv_once *once, const struct cv_once_rule *rule, const char *name);

/* Whether there is nothing left to ask the worker. */
bool cv_once_is_full(const struct cv_once *once, uint64_t worker);
/* Whether so many questions, all different, may be asked of the worker in one assignment. */
bool cv_once_may_ask(struct cv_once *once, uint64_t worker, const uint64_t *question, uint32_t questions);
/* Records an answer; nothing if it is recorded. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_once_note(struct cv_once *once, uint64_t worker, uint64_t question);
/* The question may be asked again. */
void cv_once_forget(struct cv_once *once, uint64_t worker, uint64_t question);

#endif
