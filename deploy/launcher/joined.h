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

/* What is asked of a party: its column, or with two brokers whether the co-broker is well. */
enum cv_joined_party {
  CV_JOINED_BROKER,
  CV_JOINED_THIRDPARTY,
  CV_JOINED_COBROKER,
  CV_JOINED_HEALTH,
  CV_JOINED_PARTIES
};

/* An answer that is asked for from the parties. */
struct cv_joined_answer {
  struct cv_joined_asked {
    struct cv_joined *joined;
    struct cv_joined_answer *answer;
    enum cv_joined_party party;
  } asked[CV_JOINED_PARTIES];
  bool is_asked, is_ready;
  uint64_t arm, at_ms;
  uint64_t state; /* of the campaign when it was asked for, as struct cv_mirror counts */
  int status[CV_JOINED_PARTIES];
  char *text[CV_JOINED_PARTIES]; /* owned */
  unsigned open;
  struct cv_upstream *upstream[CV_JOINED_PARTIES];
};

struct cv_joined {
  uv_loop_t *loop;
  const struct cv_prepared *prepared;
  char thirdparty[1200], broker[1200], cobroker[1200]; /* admin sockets; the last one empty without a co-broker */
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
    char share[2][17]; /* of that token, for each broker, as hexadecimal digits; empty: none was shown */
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
