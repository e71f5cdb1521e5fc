/* SPDX-License-Identifier: Apache-2.0 */
/* Frames between requester and broker: order.proto as plain structs. One request or answer per frame. */
#ifndef CV_CODEC_ORDER_H
#define CV_CODEC_ORDER_H

#include "common/base/gold.h"
#include "proto/codec/frame.h"
#include "proto/codec/rank.h"

enum { CV_CLIENT_KEY_BYTES = 16 };

enum cv_order_kind {
  CV_ORDER_NONE, /* only a hello or a goodbye */
  CV_ORDER_SUBMIT,
  CV_ORDER_WATCH,
  CV_ORDER_CANCEL,
  CV_ORDER_EXPORT,
  CV_ORDER_STATUS,
  CV_ORDER_ACCEPTED,
  CV_ORDER_PROGRESS,
  CV_ORDER_FINISHED,
  CV_ORDER_PART,
  CV_ORDER_STATUS_ANSWER,
  CV_ORDER_LEDGER,
  CV_ORDER_STATEMENT,
  CV_ORDER_DESCRIPTION,
  CV_ORDER_ERROR,
  CV_ORDER_PURGE,
  CV_ORDER_PURGED,
  CV_ORDER_STANDINGS,
};

enum { CV_USED_UP_SHOWN = 8, CV_DECLINED_SHOWN = 4, CV_DECLINED_BYTES = 96 };

/* An arm whose data are used up: the tokens that it gave, of those that the plans wanted of it. */
struct cv_used_up {
  uint32_t arm;
  uint64_t tokens, wanted;
};

/* A reason why workers declined a campaign, cleaned and cut, and how many connections gave it. */
struct cv_declined {
  char why[CV_DECLINED_BYTES];
  uint32_t connections;
};

struct cv_progress {
  uint64_t campaign;
  char name[CV_NAME_BYTES];
  uint64_t tokens, tokens_limit, releases, plans, elapsed_ms;
  uint32_t arms, decided, classes;
  uint32_t parked;         /* arms that no plan asks for any more and that have no class of their own */
  uint32_t contradictions; /* arms the limits of whose mean contradict each other */
  uint64_t epsilon_spent_micro;
  uint32_t workers;
  enum cv_end end;
  bool thirdparty_connected;
  uint64_t paid_micro, budget_micro; /* recruitment only */
  char waits_for[CV_NAME_BYTES]; /* the third-party that opened the campaign, if another one is connected; else empty */
  bool waits_for_cobroker, cobroker_connected; /* two brokers only */
  uint32_t used_up_arms, used_ups;             /* all arms without data; those listed, the first */
  struct cv_used_up used_up[CV_USED_UP_SHOWN];
  uint32_t declined_all, declineds; /* connections that declined; the reasons listed, the commonest first */
  struct cv_declined declined[CV_DECLINED_SHOWN];
  char why[CV_END_WHY_BYTES]; /* it ended; "" while it runs, and of a complete one */
};

/* Whether no more arms are decided or parked, or contradict, than there are. */
static inline bool cv_progress_counts_fit(const struct cv_progress *progress) {
  return progress->decided <= progress->arms && progress->parked <= progress->arms - progress->decided &&
         progress->contradictions <= progress->arms;
}

struct cv_submit {
  uint8_t client_key[CV_CLIENT_KEY_BYTES];
  struct cv_spec spec; /* names in the arena (decode) or borrowed (encode) */
  struct cv_gold gold; /* its items likewise */
};

/* The campaign's spec as submitted, with the mechanism's parameters filled in. */
struct cv_description {
  uint64_t campaign;
  struct cv_spec spec; /* names in the arena (decode) or borrowed (encode) */
};

struct cv_standings {
  uint64_t campaign;
  uint32_t standings;
  struct cv_standing *standing;
};

struct cv_finished {
  struct cv_progress progress;
  uint32_t standings;
  struct cv_standing *standing;
};

struct cv_part {
  uint64_t campaign;
  bool first; /* spec, seed and progress are set */
  struct cv_spec spec;
  uint64_t seed;
  struct cv_progress progress;
  size_t plans, releases;
  struct cv_plan *plan;
  struct cv_release *release;
  uint32_t standings;
  struct cv_standing *standing;
  bool last;
  uint32_t neutrals; /* in the last part of an ended campaign that counts neutral tokens: its arms; else 0 */
  int64_t *neutral;  /* with noise of scale 1/epsilon */
  uint64_t neutral_epsilon_micro;
};

struct cv_status {
  size_t campaigns;
  struct cv_progress *campaign;
  const char *broker;
  uint64_t uptime_ms; /* since this process has been active */
  uint64_t term;      /* 0: no other process may take over */
};

/* Asks for the statement of a campaign, or of a plan before it is submitted. */
struct cv_statement_request {
  uint64_t campaign;
  bool has_plan;
  struct cv_spec plan; /* names in the arena (decode) or borrowed (encode) */
  struct cv_gold gold; /* of the plan; its items likewise */
};

struct cv_account {
  uint64_t spent_micro, lost_micro, releases, tokens;
  uint64_t worker, hires, paid_micro; /* recruitment only */
};

struct cv_statement {
  uint64_t campaign;
  char name[CV_NAME_BYTES];
  char mechanism[CV_PARAM_TEXT], privatizer[CV_PARAM_TEXT];
  char guarantee[CV_WHY_BYTES];
  bool is_exact;
  uint64_t epsilon_micro, worker_epsilon_micro, lifetime_epsilon_micro, floor_micro;
  uint64_t delta_pico;
  uint32_t release_tokens;    /* smallest number of tokens in a release */
  char why[CV_END_WHY_BYTES]; /* the campaign ended, as in the progress */
  uint64_t budget_micro;      /* recruitment only; else 0 */
  uint32_t tokens_per_worker;
  enum cv_end end;
  uint32_t arms;
  struct cv_account *account;
};

struct cv_order_frame {
  struct cv_hello hello;
  const char *goodbye;
  enum cv_order_kind kind;
  union {
    struct cv_submit submit;
    uint64_t campaign; /* cancel, export, purge */
    uint64_t purged;   /* number of campaigns */
    struct {
      uint64_t campaign;
      bool describe;  /* the broker sends a description first */
      bool standings; /* and the standings after each plan */
    } watch;
    struct {
      uint64_t campaign;
      bool existed;
    } accepted;
    struct cv_progress progress;
    struct cv_description description;
    struct cv_standings standings;
    struct cv_finished finished;
    struct cv_part part;
    struct cv_status status;
    struct cv_statement_request ledger;
    struct cv_statement statement;
    const char *error;
  } as;
};

/* As cv_crowd_encode() and cv_crowd_decode() (crowd.h). */
CV_MUST_USE enum cv_err cv_order_encode(const struct cv_order_frame *frame, struct cv_arena *scratch,
                                        struct cv_buf *out);
CV_MUST_USE enum cv_err cv_order_decode(const void *bytes, size_t n, struct cv_arena *arena,
                                        struct cv_order_frame *ret);

/* The schema for a daemon's lanes. */
extern const struct cv_wire CV_ORDER_WIRE;

#endif
