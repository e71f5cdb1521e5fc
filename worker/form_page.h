/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of the form, in HTML. They need no script, unless the score has to be privatized in the browser. Pure. */
#ifndef CV_WORKER_FORM_PAGE_H
#define CV_WORKER_FORM_PAGE_H

#include "common/base/buf.h"
#include "common/base/local.h"
#include "proto/codec/crowd.h"

/* What became of the last answer. */
enum cv_form_notice {
  CV_FORM_NO_NOTICE,
  CV_FORM_COUNTED,
  CV_FORM_TOO_LATE, /* another person has answered */
  CV_FORM_LEFT,     /* no answer within the time: another person is asked */
  CV_FORM_REFUSED,
  CV_FORM_OVER, /* the campaign has ended */
  CV_FORM_SKIPPED,
  CV_FORM_UNCONFIRMED,
  CV_FORM_SEVERAL, /* the campaign asks for several items at once */
  CV_FORM_NOTICES,
};

struct cv_form_view {
  enum cv_form_notice notice;
  const char *noticed; /* the item that the notice is about */
  /* Of a question. */
  const char *campaign, *item, *secret;
  const char *versus; /* the item that it is compared with; NULL: it is scored */
  uint64_t question, steps, left_s;
  uint64_t
      limit; /* at the end: the answers that this person has given, which are all that the gateway permits; else 0 */
  uint32_t arm;
  const struct cv_terms *terms;
  const struct cv_local *law;
};

/* Each appends a whole page; the caller asks cv_buf_ok(). */
void cv_form_put_question(const struct cv_form_view *view, struct cv_buf *out);
/* No question yet: the page asks again by itself. */
void cv_form_put_wait(const struct cv_form_view *view, struct cv_buf *out);
/* Nothing is asked of this person any more. */
void cv_form_put_end(const struct cv_form_view *view, struct cv_buf *out);
/* No access, or a post that is none. */
void cv_form_put_refusal(const char *reason, struct cv_buf *out);

#endif
