/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of `crowdveil up`, which runs all parties: the third-party's history (mirror.h), with the truth from the
 * campaign file, the broker's progress, and what each party holds of an item.
 */
#ifndef CV_LAUNCHER_JOINED_H
#define CV_LAUNCHER_JOINED_H

#include "common/page/site.h"
#include "deploy/launcher/mirror.h"
#include "prepare/prepare.h"
#include "proto/codec/order.h"

struct cv_joined;

/* An answer that is asked for from the parties. */
struct cv_joined_answer {
  struct cv_joined_asked {
    struct cv_joined *joined;
    struct cv_joined_answer *answer;
    int party; /* 0: the broker, 1: the third-party */
  } asked[2];
  bool is_asked, is_ready;
  uint64_t arm, at_ms;
  uint64_t state; /* of the campaign when it was asked for, as struct cv_mirror counts */
  int status[2];
  char *text[2]; /* of the broker, of the third-party; owned */
  unsigned open;
  struct cv_upstream *upstream[2];
};

struct cv_joined {
  uv_loop_t *loop;
  const struct cv_prepared *prepared;
  char thirdparty[1200], broker[1200]; /* admin sockets */
  struct cv_page_settings settings;
  char listen[32];
  struct cv_page_site site;
  struct cv_mirror mirror;
  uint64_t campaign; /* the broker's number; 0: not accepted yet */
  struct cv_progress progress;
  uint64_t live; /* grows with each progress */
  double reward, regret;
  struct cv_joined_answer boundary, table;
  struct {
    bool is_there; /* UNSAFE: a worker shows its score and token */
    uint64_t worker;
    uint64_t arm;
    double score, token;
  } shown;
  bool is_open;
};

/* Binds the port (0: the system chooses) on 127.0.0.1. `joined` is zeroed; borrows `prepared`. */
CV_MUST_USE enum cv_err cv_joined_open(struct cv_joined *joined, uv_loop_t *loop, const struct cv_prepared *prepared,
                                       uint64_t port, struct cv_rng *rng, struct cv_why *why);
/* Prints the link. */
void cv_joined_say(const struct cv_joined *joined, FILE *to);
/* The third-party is ready: begins to watch it. The sockets are borrowed. */
void cv_joined_watch(struct cv_joined *joined);
void cv_joined_progress(struct cv_joined *joined, const struct cv_progress *progress);
void cv_joined_finished(struct cv_joined *joined, const struct cv_finished *finished);
/* UNSAFE: a line of the worker that shows its scores. */
void cv_joined_shown(struct cv_joined *joined, const char *line);
/* Also if it was never opened. The loop finishes that; then cv_joined_fini(). */
void cv_joined_close(struct cv_joined *joined);
void cv_joined_fini(struct cv_joined *joined);

#endif
