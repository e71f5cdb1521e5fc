/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker that lies to gateways to learn one opinion; each lie is a script. It has the privatizer's claim against it:
 * whatever it repeats, renames or forgets, it may learn no more than from one token. Every other opinion has the score
 * 0, and it knows that: a token of one that shares random bits with the audited one would tell.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/grid.h"
#include "lab/audit/stage.h"
#include "lab/audit/subjects.h"

enum { TOKENS = 4, SEEN_MAX = 5 };

struct lie {
  const char *name;
  struct cv_stage_setting of;
  uint32_t share;
  enum cv_err (*tell)(struct cv_stage *stage);
  uint32_t seen;
  const char *label[SEEN_MAX];
  bool is_unsound; /* known to disclose more than the claim */
};

/* ---- the lies ---- */

static enum cv_err ask_again(struct cv_stage *stage) {
  CV_TRY(cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_FIRST, 1, .verdict = CV_VERDICT_EXPIRED}));
  CV_TRY(cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_FIRST, 2, .verdict = CV_VERDICT_REFUSED}));
  CV_TRY(cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_FIRST, 3, .verdict = CV_VERDICT_NONE}));
  CV_TRY(cv_stage_meet_again(stage, stage->row++));
  return cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_SECOND, 4, .verdict = CV_VERDICT_ACCEPTED});
}

static enum cv_err tell_again(struct cv_stage *stage) {
  return cv_stage_gateway(stage, 1, ask_again);
}

static enum cv_err ask_once(struct cv_stage *stage) {
  return cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_FIRST, 1, .verdict = CV_VERDICT_ACCEPTED});
}

static enum cv_err tell_restart(struct cv_stage *stage) {
  CV_TRY(cv_stage_gateway(stage, 1, ask_once));
  return cv_stage_gateway(stage, 1, ask_once);
}

static enum cv_err ask_second(struct cv_stage *stage) {
  return cv_stage_ask(stage,
                      (struct cv_stage_demand){CV_STAGE_FIRST, 1 + CV_STAGE_WORKERS, .verdict = CV_VERDICT_ACCEPTED});
}

static enum cv_err tell_one_key(struct cv_stage *stage) {
  CV_TRY(cv_stage_gateway(stage, 1, ask_once));
  return cv_stage_gateway(stage, 1 + CV_STAGE_WORKERS, ask_second);
}

static enum cv_err tell_two_keys(struct cv_stage *stage) {
  CV_TRY(cv_stage_gateway(stage, 1, ask_once));
  cv_stage_draw_key(stage);
  return cv_stage_gateway(stage, 1 + CV_STAGE_WORKERS, ask_second);
}

static enum cv_err ask_beside(struct cv_stage *stage) {
  CV_TRY(cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_FIRST, 1, .arm = 0, .place = 0}));
  CV_TRY(cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_FIRST, 2, .arm = 0, .place = 1}));
  CV_TRY(cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_FIRST, 3, .arm = 1, .place = 0}));
  return cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_OTHER, 4, .arm = 0, .place = 0});
}

static enum cv_err tell_beside(struct cv_stage *stage) {
  return cv_stage_gateway(stage, 1, ask_beside);
}

static enum cv_err ask_opponents(struct cv_stage *stage) {
  CV_TRY(cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_FIRST, 1, .arm = 0, .opponent = 1 + 1}));
  return cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_FIRST, 2, .arm = 0, .opponent = 1 + 2});
}

static enum cv_err tell_opponents(struct cv_stage *stage) {
  return cv_stage_gateway(stage, 1, ask_opponents);
}

static enum cv_err ask_weaker(struct cv_stage *stage) {
  CV_TRY(cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_FIRST, 1}));
  return cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_SECOND, 2});
}

static enum cv_err tell_weaker(struct cv_stage *stage) {
  return cv_stage_gateway(stage, 1, ask_weaker);
}

/* Places differ, since here a place has random bits of its own: that a row leaves once is up to the count alone. */
static enum cv_err ask_part(struct cv_stage *stage) {
  CV_TRY(cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_FIRST, 1, .place = 0, .verdict = CV_VERDICT_EXPIRED}));
  return cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_FIRST, 2, .place = 1, .verdict = CV_VERDICT_REFUSED});
}

static enum cv_err ask_part_later(struct cv_stage *stage) {
  return cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_FIRST, 1, .place = 2, .verdict = CV_VERDICT_ACCEPTED});
}

static enum cv_err tell_part(struct cv_stage *stage) {
  CV_TRY(cv_stage_gateway(stage, 1, ask_part));
  return cv_stage_gateway(stage, 1, ask_part_later);
}

static enum cv_err ask_expired(struct cv_stage *stage) {
  CV_TRY(cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_FIRST, 1, .verdict = CV_VERDICT_EXPIRED}));
  return cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_FIRST, 1, .verdict = CV_VERDICT_EXPIRED});
}

/* A worker whose broker broke the protocol does not come again: so another one is asked alone. */
static enum cv_err ask_twice_at_once(struct cv_stage *stage) {
  static const uint32_t arms[] = {0, 0};
  struct cv_assign assign = {.campaign = CV_STAGE_FIRST, .worker = 1, .arms = 2, .arm = {.many = arms}};
  struct cv_crowd_frame sent;
  CV_TRY(cv_stage_say(stage, &(struct cv_crowd_frame){.assigns = 1, .assign = &assign}, &sent));
  for (size_t i = 0; i < CV_COUNT(arms); i++) {
    *stage->row++ = sent.tokens == 0 ? CV_STAGE_NOTHING : sent.token[0].value[i];
  }
  return cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_FIRST, 2, .verdict = CV_VERDICT_ACCEPTED});
}

static enum cv_err tell_at_once(struct cv_stage *stage) {
  return cv_stage_gateway(stage, 1, ask_twice_at_once);
}

static enum cv_err tell_expired(struct cv_stage *stage) {
  return cv_stage_gateway(stage, 1, ask_expired);
}

/* The worker could give more tokens: only what it has answered says that this is none of them. */
static enum cv_err ask_answered(struct cv_stage *stage) {
  CV_TRY(cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_FIRST, 1, .place = 0, .verdict = CV_VERDICT_EXPIRED}));
  CV_TRY(cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_FIRST, 1, .place = 1}));
  CV_TRY(cv_stage_meet_again(stage, &(int64_t){0}));
  return cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_FIRST, 1, .place = 2});
}

static enum cv_err ask_answered_later(struct cv_stage *stage) {
  return cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_FIRST, 1, .place = 3});
}

static enum cv_err tell_answered(struct cv_stage *stage) {
  CV_TRY(cv_stage_gateway(stage, 1, ask_answered));
  return cv_stage_gateway(stage, 1, ask_answered_later);
}

/* Between other pairs, so that the answer is neither the first one nor the last one in the worker's record. */
static enum cv_err ask_answered_pair(struct cv_stage *stage) {
  CV_TRY(cv_stage_ask(
      stage, (struct cv_stage_demand){CV_STAGE_FIRST, 1, .arm = 2, .opponent = 1 + 3, .verdict = CV_VERDICT_ACCEPTED}));
  CV_TRY(cv_stage_ask(
      stage, (struct cv_stage_demand){CV_STAGE_FIRST, 1, .arm = 0, .opponent = 1 + 1, .verdict = CV_VERDICT_ACCEPTED}));
  CV_TRY(cv_stage_ask(
      stage, (struct cv_stage_demand){CV_STAGE_FIRST, 1, .arm = 4, .opponent = 1 + 5, .verdict = CV_VERDICT_ACCEPTED}));
  return cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_FIRST, 1, .arm = 1, .opponent = 1 + 0});
}

static enum cv_err ask_reverse(struct cv_stage *stage) {
  return cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_FIRST, 1, .arm = 1, .opponent = 1 + 0});
}

static enum cv_err tell_answered_pair(struct cv_stage *stage) {
  CV_TRY(cv_stage_gateway(stage, 1, ask_answered_pair));
  return cv_stage_gateway(stage, 1, ask_reverse);
}

static enum cv_err ask_number(struct cv_stage *stage) {
  return cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_SECOND, 1, .verdict = CV_VERDICT_ACCEPTED});
}

static enum cv_err ask_name(struct cv_stage *stage) {
  return cv_stage_ask(stage, (struct cv_stage_demand){CV_STAGE_OTHER, 1, .verdict = CV_VERDICT_ACCEPTED});
}

static enum cv_err ask_other_campaigns(struct cv_stage *stage) {
  CV_TRY(ask_once(stage));
  CV_TRY(ask_number(stage));
  return ask_name(stage);
}

static enum cv_err tell_renumbered(struct cv_stage *stage) {
  CV_TRY(cv_stage_gateway(stage, 1, ask_once));
  return cv_stage_gateway(stage, 1, ask_number);
}

static enum cv_err tell_limited(struct cv_stage *stage) {
  CV_TRY(cv_stage_gateway(stage, 1, ask_other_campaigns));
  return cv_stage_gateway(stage, 1, ask_name);
}

#define RESPONSE "randomized-response"
#define AGAIN                                                         \
  tell_again, 5, {                                                    \
    "token", "again", "unanswered", "repeated", "in another campaign" \
  }
#define ANSWERED                                                 \
  tell_answered, 4, {                                            \
    "token", "again", "on another connection", "after a restart" \
  }
#define TWICE \
  { "token", "second token" }

static const struct lie lies[] = {
    {"again", {RESPONSE, .5, 2, TOKENS}, 8, AGAIN},
    {"again", {RESPONSE, 1, 2, TOKENS}, 8, AGAIN},
    {"again", {"laplace", 1, 2, TOKENS}, 16, AGAIN},
    {"restarted", {RESPONSE, 1, 1, TOKENS}, 8, tell_restart, 2, TWICE},
    {"one key", {RESPONSE, 1, 1, TOKENS}, 8, tell_one_key, 2, TWICE},
    {"two keys", {RESPONSE, 1, 1, TOKENS}, 8, tell_two_keys, 2, TWICE, .is_unsound = true},
    {"beside", {RESPONSE, 1, 3, TOKENS}, 8, tell_beside, 4, {"token", "another place", "another arm", "another file"}},
    {"beside, pairs", {RESPONSE, 1, 1, TOKENS, .pairs = true}, 8, tell_opponents, 2, {"token", "another opponent"}},
    {"two laws", {RESPONSE, .5, 2, TOKENS, .second = 1}, 8, tell_weaker, 2, {"token", "weaker token"}},
    {"two laws", {"laplace", .5, 2, TOKENS, .second = 1}, 16, tell_weaker, 2, {"token", "weaker token"}},
    {"part", {RESPONSE, 1, 1, TOKENS, CV_FROM_PART}, 8, tell_part, 3, {"row", "next row", "row after a restart"}},
    {"person", {RESPONSE, 1, 1, 1, CV_FROM_PERSON}, 8, tell_expired, 2, TWICE},
    {"person again", {RESPONSE, 1, 1, TOKENS, CV_FROM_PERSON}, 8, ANSWERED},
    {"program", {RESPONSE, 1, 1, 1, CV_FROM_PROGRAM}, 8, tell_expired, 2, TWICE},
    {"program twice",
     {RESPONSE, 1, 1, 1, CV_FROM_PROGRAM},
     8,
     tell_at_once,
     3,
     {"token", "second token", "token alone"}},
    {"program limit",
     {RESPONSE, 1, 3, TOKENS, CV_FROM_PROGRAM, .limit = 1},
     8,
     tell_limited,
     4,
     {"token", "under another number", "under another name", "after a restart"}},
    {"program renumbered", {RESPONSE, 1, 2, TOKENS, CV_FROM_PROGRAM}, 8, tell_renumbered, 2, TWICE},
    {"program again", {RESPONSE, 1, 1, TOKENS, CV_FROM_PROGRAM}, 8, ANSWERED},
    {"program again", {"laplace", 1, 1, TOKENS, CV_FROM_PROGRAM}, 16, ANSWERED},
    {"program repeat", {RESPONSE, 1, 1, TOKENS, CV_FROM_PROGRAM, .repeat = true}, 8, ANSWERED},
    {"program, pairs",
     {RESPONSE, 1, 1, TOKENS, CV_FROM_PROGRAM, .limit = TOKENS, .pairs = true},
     8,
     tell_answered_pair,
     5,
     {"a pair before", "token", "a pair after", "reverse", "reverse after a restart"}},
};

/* ---- the subject ---- */

static enum cv_err sample(const struct cv_audit_subject *self, bool neighbour, uint64_t stream, uint64_t runs,
                          int64_t *row) {
  const struct lie *lie = self->thing;
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, stream, CV_RNG_PRIVATIZER, 0, 0);
  for (uint64_t run = 0; run < runs; run++, row += self->width) {
    struct cv_stage stage = {.setting = &lie->of, .audited = neighbour ? CV_GRID : 0, .rng = &seeded.rng, .row = row};
    cv_stage_init(&stage);
    CV_TRY(lie->tell(&stage));
    CV_REQUIRE(stage.row == row + self->width);
  }
  return CV_OK;
}

static void label(const struct cv_audit_subject *self, uint32_t at, char text[CV_AUDIT_TEXT]) {
  (void)snprintf(text, CV_AUDIT_TEXT, "%s", ((const struct lie *)self->thing)->label[at]);
}

size_t cv_audit_gateways(void) {
  return CV_COUNT(lies);
}

enum cv_err cv_audit_gateway(size_t at, struct cv_audit_subject *ret) {
  const struct lie *lie = &lies[at];
  double claim;
  CV_TRY(cv_stage_claim(&lie->of, &claim));
  *ret = (struct cv_audit_subject){
      .is_sound = !lie->is_unsound,
      .epsilon = claim,
      .share = lie->share,
      .width = lie->seen,
      .series = lie->seen,
      .keys = lie->seen,
      .sample = sample,
      .label = label,
      .thing = lie,
  };
  for (uint32_t i = 0; i < ret->keys; i++) {
    ret->key[i] = (uint16_t)i;
  }
  (void)snprintf(ret->part, sizeof(ret->part), "gateway");
  (void)snprintf(ret->setting, sizeof(ret->setting), "%s, %s", lie->name, lie->of.privatizer);
  return CV_OK;
}
