/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The form: people with a browser give the scores, one item at a time. A person has a link with a token, which stands
 * for one worker of the gateway's range; so its limits (tokens of a campaign, accept.tokens, the lifetime epsilon) are
 * those of that worker. A worker arrives at the broker only while its person waits for a question.
 *
 * With a privatizer the browser sends a token (form/privatizer.js) and a score is refused: none is ever in this
 * process. Without one it is here until it is sent to the broker.
 */
#ifndef CV_WORKER_FORM_H
#define CV_WORKER_FORM_H

#include <uv.h>

#include "common/admin/forwarded.h"
#include "common/base/rng.h"
#include "worker/core.h"
#include "worker/invited.h"

struct cv_form_settings {
  char *listen; /* HOST:PORT; NULL: no form */
  char *hosts;  /* names by which others find it; NULL: only this machine's */
  char *people; /* file (invited.h) */
  uint64_t steps;
  bool has_tls; /* browsers come over a reverse proxy with TLS */
  char *proxy;  /* its addresses; NULL: with has_tls those of this machine, else none */
};

struct cv_form;

struct cv_form_config {
  uv_loop_t *loop;
  const struct cv_form_settings *settings;
  const struct cv_invited *invited;
  uint64_t first, last; /* the gateway's workers */
  int socket;           /* bound; taken, also on failure */
  unsigned port;
  struct cv_proxies proxies;
  struct cv_rng *rng;
  /* The pool's functions of the same names; called from the loop, never from within a function of the asker. */
  enum cv_err (*answer)(void *data, uint64_t question, const struct cv_score_answer *answer, struct cv_why *why);
  void (*pass)(void *data, uint64_t question, const char *reason);
  bool (*come)(void *data, uint64_t worker);
  uint64_t (*used_limit)(void *data, uint64_t worker);
  void *data;
};

/* CV_ERR_INVALID if a person's number is beyond the range, CV_ERR_IO or CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_form_start(const struct cv_form_config *config, struct cv_form **ret, struct cv_why *why);
/* For the pool; borrowed. */
const struct cv_asker *cv_form_asker(struct cv_form *form);
/* Call several times a second. */
void cv_form_tick(struct cv_form *form, uint64_t now_ms);
/* Closes what it has on the loop, and frees the rest. NULL does nothing. */
void cv_form_stop(struct cv_form *form);

#endif
