/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gateways, one at a time, and the broker's side of their connection. The gateways are the deployed core of a worker
 * with a privatizer; of their folder `state` they have the key, the rows and the answers, in memory. Whatever the
 * broker sees goes to a row of numbers.
 */
#ifndef CV_LAB_AUDIT_STAGE_H
#define CV_LAB_AUDIT_STAGE_H

#include "worker/core.h"

/* A pool has that many workers. Of so many pairs a worker's record is a list, of so few arms a bit for each. */
enum { CV_STAGE_WORKERS = 4, CV_STAGE_ARMS = 3, CV_STAGE_ARMS_IN_PAIRS = 64 };
/* The numbers of the campaigns: the second one has the same name, the third one is about another data file. */
enum { CV_STAGE_FIRST = 7, CV_STAGE_SECOND, CV_STAGE_OTHER };

enum { CV_STAGE_NOTHING = -1 }; /* in the row: no token came */
enum { CV_STAGE_NOTES_MAX = 8, CV_STAGE_PERSON_ROWS = 4, CV_STAGE_OPEN_MAX = 2 };

/* Whose opinions they are. */
enum cv_stage_source { CV_FROM_FILE, CV_FROM_PART, CV_FROM_PERSON, CV_FROM_PROGRAM };

struct cv_stage_setting {
  const char *privatizer;
  double epsilon;
  uint32_t campaigns, tokens; /* tokens: of a worker in a campaign */
  enum cv_stage_source source;
  double second;  /* epsilon of the second campaign; 0: the same */
  uint64_t limit; /* accept.tokens; 0: none */
  bool pairs;     /* the opinion is about arm 0 and its opponent, arm 1 */
  bool repeat;    /* the broker says that the campaigns repeat questions */
};

struct cv_stage {
  const struct cv_stage_setting *setting;
  int64_t audited; /* the score of the audited opinion: about arm 0, at place 0. All others are 0 */
  struct cv_rng *rng;
  int64_t *row; /* where the next thing that the broker sees goes */
  /* The rest is its own. First, what a restart finds. */
  uint8_t key[CV_COIN_KEY_BYTES];
  uint32_t given[CV_STAGE_WORKERS];
  uint64_t taken[CV_STAGE_ARMS];
  size_t notes;
  struct cv_stage_note {
    uint64_t campaign, worker, question;
  } note[CV_STAGE_NOTES_MAX]; /* what workers have answered */
  size_t rows_given;
  uint32_t row_given[CV_STAGE_PERSON_ROWS]; /* by the person */
  struct cv_work work[2];
  struct cv_worker *pool;
  struct cv_stock *stock;
  uint64_t now_ms, tickets;
  size_t questions;
  struct cv_stage_open {
    uint64_t number;
    int64_t score;
  } open[CV_STAGE_OPEN_MAX];
};

struct cv_stage_demand {
  uint64_t campaign, worker;
  uint32_t arm;
  uint64_t place;
  uint32_t opponent;       /* 1 + the arm that it is compared with; 0: none */
  enum cv_verdict verdict; /* on the token; CV_VERDICT_NONE: no word of it */
};

/* What a broker charges for one token, by its account; under two laws for one under each. */
CV_MUST_USE enum cv_err cv_stage_claim(const struct cv_stage_setting *setting, double *ret);

/* Sets what is its own. `stage` must not move afterwards. */
void cv_stage_init(struct cv_stage *stage);
/* Another key, as at a gateway that does not share its key. */
void cv_stage_draw_key(struct cv_stage *stage);
/* A gateway of the workers from `first` on, with the key and the state that the stage has. Opens a connection, calls
 * tell() for the broker, and stops the gateway. */
CV_MUST_USE enum cv_err cv_stage_gateway(struct cv_stage *stage, uint64_t first,
                                         enum cv_err (*tell)(struct cv_stage *stage));

/* For tell(). A new connection: all terms again. *ret_token: a token that was not acknowledged on the one before. */
CV_MUST_USE enum cv_err cv_stage_meet_again(struct cv_stage *stage, int64_t *ret_token);
/* Sends a frame and sees what comes back; valid until the next call. The gateway closes a connection on which the
 * broker breaks the protocol. */
CV_MUST_USE enum cv_err cv_stage_say(struct cv_stage *stage, const struct cv_crowd_frame *frame,
                                     struct cv_crowd_frame *sent);
/* Asks a worker for a token and adds what came to the row. */
CV_MUST_USE enum cv_err cv_stage_ask(struct cv_stage *stage, struct cv_stage_demand demand);

#endif
