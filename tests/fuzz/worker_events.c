/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool of workers under a sequence of events that the input encodes: a broker that sends any message in any order,
 * valid or not, connections that open and close, time that passes. Whatever the broker sends, a token leaves only under
 * terms that the pool's owner accepts, only for an assignment to a worker that waited for one, always the same for the
 * same ticket, never more tokens than the owner's limit and the terms permit, and never two that count about the same
 * item, unless the terms repeat questions. Some pools are persons with rows of
 * their own: then each row leaves once, for its arm, after it was offered for storing, and a worker that wishes for an
 * arm has a row of it left. Others serve only a pair of brokers, whose co-broker says anything, too: then a token
 * leaves in two shares, bound to its place and slot, which only these two accept, and which are never the same for
 * another ticket.
 *
 * Others have two data files, each whole or in parts, and a record of the rows, and may start again (worker_rows.h):
 * then a row of a part leaves for one ticket of a campaign, after it was recorded, and a row has one token under each
 * law.
 *
 * First byte: the pool. Then two bytes for each event: its kind and its details.
 */
#include "worker/core.h"

#include "common/base/grid.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/worker_rows.h"
#include "tests/sim/seen.h"
#include "tests/support/duo.h"

enum {
  WORKERS = 12,
  CAMPAIGNS = 4,
  TICKETS = 200,
  ARMS = 3,
  ROWS = 40,
  PERSONS = WORKERS + 2,
  OWN_ROWS = 3 * PERSONS,
  EVENTS = 500,
  EPSILON_MICRO = 500000
};

/* An assignment; its ticket carries its number. */
struct ticket {
  uint64_t worker, campaign;
  uint32_t arms, tokens_per_worker;
  uint32_t arm;  /* if it is a known one */
  uint32_t slot; /* with two brokers, as the next two */
  uint64_t plan, place;
  struct cv_digest shares; /* over those that left */
  bool again;              /* not the first of its slot that left */
  bool once;               /* its campaign asks each item of a worker once */
  uint32_t asks;           /* its items, as bits */
  bool good;               /* made to a worker that waited, under terms that are acceptable */
  bool left;               /* its token was sent */
  bool undone;             /* acknowledged as expired: it does not count against the terms */
  bool declined;
  int64_t value[CV_VALUES_MAX];
  /* As scored: what each value discloses, and the first score. */
  uint32_t law, rows;
  struct disclosure said[CV_VALUES_MAX];
  int64_t score;
};

struct world {
  struct cv_worker *pool;
  struct cv_worker_config config;
  struct cv_work work;
  bool of_files; /* its scores are rows of data files */
  struct files files;
  struct ticket *asked;      /* the assignment that is told now */
  struct cv_persons persons; /* all zero: workers are not persons */
  struct cv_stock *stock;
  bool kept[OWN_ROWS];
  uint32_t row_left[OWN_ROWS]; /* 1 + the ticket it has left with */
  struct cv_rng_seeded rng;
  uint64_t now_ms;
  uint32_t before[WORKERS], told[WORKERS]; /* scores that each worker had given at the start, and has now */
  bool open, greeted;
  bool waits[WORKERS + 1];
  struct cv_terms terms[CAMPAIGNS + 1]; /* as last sent; id 0: never sent */
  bool retold[CAMPAIGNS + 1];           /* with other terms than at first */
  struct ticket ticket[TICKETS];
  size_t tickets;
  size_t passed; /* those before are of an earlier start */
  bool of_two;   /* the pool serves a pair of brokers, and nobody else */
  struct duo duo;
  bool co_open, stood[CAMPAIGNS + 1]; /* a session was begun, with the terms that the broker tells */
  uint8_t sessions;
  struct seen nonces;
};

static enum cv_err score_of(void *data, uint32_t arm, const struct cv_moment *at, int64_t *ret_score) {
  const struct world *world = data;
  CV_REQUIRE(arm < ARMS);
  if (at->place >= ROWS) {
    return CV_ERR_LIMIT;
  }
  *ret_score = (int64_t)(cv_mix64(at->place << 8 | arm) % (CV_GRID + 1));
  if (world->of_two && world->duo.split.score_bits == CV_SPLIT_BIT) {
    *ret_score = *ret_score % 2 * CV_GRID;
  }
  return CV_OK;
}

static void show(void *data, uint64_t worker, uint32_t arm, int64_t score, int64_t value) {
  struct world *world = data;
  struct ticket *ticket = world->asked;
  if (ticket == NULL) { /* a session has begun */
    return;
  }
  CV_REQUIRE(ticket->worker == worker && ticket->rows < CV_VALUES_MAX);
  ticket->score = ticket->rows == 0 ? score : ticket->score;
  ticket->said[ticket->rows++] = (struct disclosure){.file = files_find(&world->terms[ticket->campaign]),
                                                     .law = ticket->law,
                                                     .arm = arm,
                                                     .row = world->files.row,
                                                     .at = world->files.at,
                                                     .value = value};
}

static void give(void *data, uint64_t worker, uint32_t scores) {
  struct world *world = data;
  CV_REQUIRE(worker >= world->config.first && worker <= world->config.last && scores > world->told[worker - 1]);
  world->told[worker - 1] = scores;
}

static void note(void *data, const char *text) {
  (void)data;
  fuzz_line(text);
}

static bool is_same_split(const struct cv_split *a, const struct cv_split *b) {
  return a->score_bits == b->score_bits && memcmp(a->database, b->database, sizeof(a->database)) == 0 &&
         cv_digest_is_same(&a->spec, &b->spec) && cv_digest_is_same(&a->key, &b->key);
}

static bool acceptable(const struct world *world, const struct cv_terms *terms) {
  bool is_of_two = terms->split.score_bits != 0;
  bool has_laws = world->of_files || world->stock != NULL;
  bool is_named = strcmp(terms->name, "fuzz") == 0 || (world->of_files && strcmp(terms->name, "other") == 0);
  return terms->id != 0 && is_of_two == world->of_two && is_named && !world->files.denied[terms->id] &&
         (has_laws || strcmp(terms->privatizer.name, "none") == 0) &&
         strcmp(terms->privatizer.name, "unheard-of") != 0 && terms->scale.high <= 1 &&
         (strcmp(terms->requester, "alice") == 0 || strcmp(terms->requester, "bob") == 0) &&
         (strcmp(terms->mechanism.name, "hybrid") == 0 || strcmp(terms->mechanism.name, "batch") == 0) &&
         terms->epsilon_micro <= EPSILON_MICRO && terms->arms == ARMS;
}

/* ---- what the pool says ---- */

/* For a person: its own row of the arm, stored before and for no other ticket. */
static void hear_row(struct world *world, const struct ticket *ticket, uint32_t number) {
  const struct cv_persons *persons = &world->persons;
  uint64_t row = persons->start[ticket->worker - 1], to = persons->start[ticket->worker];
  while (row < to && (persons->value[row] != ticket->score || persons->arm[row] != ticket->arm)) {
    row++;
  }
  CV_REQUIRE(row < to && world->kept[row] && (world->row_left[row] == 0 || world->row_left[row] == number + 1));
  world->row_left[row] = number + 1;
}

static bool has_row_left(const struct world *world, uint64_t worker, uint32_t arm) {
  const struct cv_persons *persons = &world->persons;
  for (uint64_t row = persons->start[worker - 1]; row < persons->start[worker]; row++) {
    if (world->row_left[row] == 0 && (arm == CV_WISH_NONE || persons->arm[row] == arm)) {
      return true;
    }
  }
  return false;
}

/* Whether a token of the same slot has left already. */
static bool is_again(const struct world *world, const struct ticket *ticket) {
  for (size_t i = 0; i < world->tickets; i++) {
    const struct ticket *each = &world->ticket[i];
    if (each->left && each->worker == ticket->worker && each->campaign == ticket->campaign &&
        each->slot == ticket->slot) {
      return true;
    }
  }
  return false;
}

/* Both brokers together find the score in the shares, for this place and slot; the same bytes come again, and no other
 * token has the nonce. */
static void hear_shares(struct world *world, struct ticket *ticket, const struct cv_token_share *share) {
  struct cv_split_token at = {
      .plan = ticket->plan, .arm = ticket->arm, .place = ticket->place, .worker = ticket->worker, .slot = ticket->slot};
  struct cv_digest context, shares;
  int64_t score;
  cv_sha256(share->leader, share->leader_bytes, share->sealed, sizeof(share->sealed), &shares);
  CV_REQUIRE(!ticket->left || cv_digest_is_same(&shares, &ticket->shares));
  if (!ticket->left) {
    uint64_t nonce;
    memcpy(&nonce, share->nonce, sizeof(nonce));
    CV_REQUIRE(world->stood[ticket->campaign] && seen_add(&world->nonces, nonce | 1));
    memcpy(at.nonce, share->nonce, sizeof(at.nonce));
    cv_split_context(&world->duo.split, &world->duo.keys, ticket->campaign, cv_sha256, &context);
    int64_t measurement = duo_judge(&world->duo, share, &context, &at);
    int64_t scale = (int64_t)cv_split_scale(world->duo.split.score_bits);
    CV_REQUIRE(measurement >= 0 && ticket->arms == 1);
    CV_REQUIRE(score_of(world, ticket->arm, &(struct cv_moment){.place = ticket->place}, &score) == CV_OK);
    CV_REQUIRE(measurement * scale > score - scale && measurement * scale < score + scale);
  }
  ticket->again = ticket->again || (!ticket->left && is_again(world, ticket));
  ticket->shares = shares;
  ticket->left = true;
}

/* Nothing that counts has left about these items since the pool began; of a person nothing at all. */
static void check_is_new(const struct world *world, const struct ticket *ticket) {
  for (size_t i = world->stock == NULL ? world->passed : 0; ticket->once && i < world->tickets; i++) {
    const struct ticket *each = &world->ticket[i];
    bool is_same = each != ticket && each->left && each->worker == ticket->worker && (each->asks & ticket->asks) != 0;
    CV_REQUIRE(!is_same || (world->stock == NULL && (each->campaign != ticket->campaign || each->undone)));
  }
}

static void hear_token(struct world *world, const struct cv_token *token) {
  uint32_t number;
  memcpy(&number, token->ticket, sizeof(number));
  CV_REQUIRE(number < world->tickets);
  struct ticket *ticket = &world->ticket[number];
  CV_REQUIRE(ticket->good && !ticket->declined && (token->share != NULL) == world->of_two);
  if (!ticket->left) {
    check_is_new(world, ticket);
  }
  if (world->of_two) {
    hear_shares(world, ticket, token->share);
    return;
  }
  CV_REQUIRE(token->values == ticket->arms);
  for (size_t i = 0; i < token->values; i++) {
    CV_REQUIRE(ticket->law == 3 || (token->value[i] >= 0 && token->value[i] <= CV_GRID));
    CV_REQUIRE(!ticket->left || token->value[i] == ticket->value[i]);
    ticket->value[i] = token->value[i];
    if (world->of_files) {
      CV_REQUIRE(i < ticket->rows && ticket->said[i].value == token->value[i]);
      files_hear(&world->files, ticket->campaign, number, &ticket->said[i]);
    }
  }
  ticket->left = true;
  if (world->stock != NULL) {
    hear_row(world, ticket, number);
  }
}

static void hear_decline(struct world *world, const struct cv_decline *decline) {
  uint32_t number;
  fuzz_line(decline->why);
  if (decline->has_ticket) {
    memcpy(&number, decline->ticket, sizeof(number));
    CV_REQUIRE(decline->campaign == 0 && number < world->tickets);
    struct ticket *ticket = &world->ticket[number];
    CV_REQUIRE(
        ticket->good && !ticket->left && !ticket->declined &&
        (world->config.accept.tokens > 0 || world->stock != NULL || world->of_two || decline->used_up || ticket->once));
    ticket->declined = true;
  }
}

/* With two brokers each slot counts once, and for ever; so does a token of a person behind a privatizer. */
static void check_limits(const struct world *world) {
  for (uint64_t worker = 1; worker <= WORKERS; worker++) {
    uint64_t sum = world->before[worker - 1], given[CAMPAIGNS + 1] = {0};
    for (size_t i = world->passed; i < world->tickets; i++) {
      const struct ticket *ticket = &world->ticket[i];
      bool counts = ticket->worker == worker && ticket->left && !ticket->again;
      sum += counts ? ticket->arms : 0;
      bool is_known = world->of_two || (world->stock != NULL && ticket->law > 0);
      given[ticket->campaign] += counts && (is_known || !ticket->undone);
      CV_REQUIRE(!counts || world->retold[ticket->campaign] || given[ticket->campaign] <= ticket->tokens_per_worker);
    }
    CV_REQUIRE(sum <= world->told[worker - 1]); /* scores are reported as given before they leave */
    CV_REQUIRE(world->config.accept.tokens == 0 || sum <= world->config.accept.tokens);
  }
}

static void hear_arrive(struct world *world, const struct cv_arrive *arrive) {
  CV_REQUIRE(arrive->credit == world->config.concurrency);
  CV_REQUIRE(arrive->workers == 0 || (arrive->wish != NULL) == (world->stock != NULL));
  for (size_t i = 0; i < arrive->workers; i++) {
    uint64_t worker = arrive->worker[i];
    CV_REQUIRE(worker >= world->config.first && worker <= world->config.last && !world->waits[worker]);
    CV_REQUIRE(world->stock == NULL || has_row_left(world, worker, arrive->wish[i]));
    world->waits[worker] = true;
  }
}

static void keep_rows(struct world *world) {
  size_t rows = 0;
  const uint32_t *row = world->stock == NULL ? NULL : cv_stock_taken(world->stock, &rows);
  for (size_t i = 0; i < rows; i++) {
    CV_REQUIRE(!world->kept[row[i]]);
    world->kept[row[i]] = true;
  }
  if (world->stock != NULL) {
    cv_stock_kept(world->stock);
  }
}

static void flush(struct world *world) {
  struct cv_crowd_frame frame;
  struct cv_worker_figures figures;
  bool says = cv_worker_flush(world->pool, world->now_ms, &frame);
  (void)cv_worker_is_done(world->pool);
  cv_worker_figures(world->pool, &figures);
  keep_rows(world);
  if (!says) {
    return;
  }
  CV_REQUIRE(world->open && (world->greeted || frame.hello.present) && frame.arrives <= 1);
  CV_REQUIRE(frame.campaigns + frame.assigns + frame.acks + frame.backoffs + frame.dones == 0);
  world->greeted = true;
  for (size_t i = 0; i < frame.tokens; i++) {
    hear_token(world, &frame.token[i]);
  }
  for (size_t i = 0; i < frame.arrives; i++) {
    hear_arrive(world, &frame.arrive[i]);
  }
  for (size_t i = 0; i < frame.declines; i++) {
    hear_decline(world, &frame.decline[i]);
  }
  check_limits(world);
}

static void shut(struct world *world) {
  if (world->open) {
    cv_worker_leave(world->pool);
    world->open = false;
    memset(world->waits, 0, sizeof(world->waits));
  }
}

/* ---- what the broker says ---- */

/* False if the pool refused the frame: then nothing in it counts. */
static bool say(struct world *world, const struct cv_crowd_frame *frame) {
  struct cv_why why = {.text = ""};
  if (world->open && cv_worker_on_crowd(world->pool, frame, world->now_ms, &why) == CV_OK) {
    return true;
  }
  if (world->open) {
    fuzz_line(why.text);
    shut(world);
  }
  return false;
}

static void on_open(struct world *world, uint8_t how) {
  shut(world);
  struct cv_digest key = world->duo.keys.broker;
  key.bytes[0] ^= (how & 0x1f) == 0x1f; /* another broker */
  cv_worker_join(world->pool, &key, world->now_ms);
  world->open = true;
  world->greeted = false;
  if (how < 0xf0) {
    struct cv_hello hello = {.present = true, .version = CV_WIRE_VERSION + (how > 0xe8), .program = "broker"};
    (void)say(world, &(struct cv_crowd_frame){.hello = hello});
  }
}

static void start_pool(struct world *world) {
  struct cv_why why = {.text = ""};
  CV_REQUIRE(cv_worker_new(&world->config, &world->pool, &why) == CV_OK);
}

/* A gateway of data files may start again, with its record, and what the broker has told is gone. */
static void on_shut(struct world *world, uint8_t how) {
  shut(world);
  if (world->of_files && how % 4 == 3) {
    cv_worker_free(world->pool);
    memcpy(world->before, world->told, sizeof(world->before));
    memset(world->terms, 0, sizeof(world->terms));
    memset(world->retold, 1, sizeof(world->retold)); /* it does not know how many tokens have left */
    world->passed = world->tickets;
    start_pool(world);
  }
}

/* Terms with a law, and of a data file mostly with its scale. */
static void set_terms(const struct world *world, uint8_t how, struct cv_terms *terms) {
  uint32_t law = how >> 5 & 1U;
  (void)snprintf(terms->mechanism.name, sizeof(terms->mechanism.name), "%s", (how & 16) != 0 ? "batch" : "hybrid");
  if (world->of_files) {
    law |= how >> 2 & 2U;
    terms->epsilon_micro = EPSILON_MICRO;
    terms->scale = (struct cv_scale){.low = 0, .high = how == 0x75 ? 2 : 1};
  }
  if (strcmp(terms->privatizer.name, "none") == 0) {
    files_set_law(&terms->privatizer, law);
  }
}

static void on_terms(struct world *world, uint8_t how) {
  static const char *const mechanisms[] = {"hybrid", "batch", "none", "segments"};
  struct cv_terms terms = {.id = 1 + (how & 3U), .name = "fuzz", .privatizer = {.name = "none"}, .arms = ARMS};
  (void)snprintf(terms.requester, sizeof(terms.requester), "%s",
                 how == 0x77    ? "Alice"
                 : how % 2 == 0 ? "alice"
                                : "bob");
  terms.tokens_per_worker = 1 + (how >> 2 & 1U);
  terms.epsilon_micro = EPSILON_MICRO + (how >> 3 & 1U);
  terms.repeat = (how & 0x40) != 0;
  (void)snprintf(terms.mechanism.name, sizeof(terms.mechanism.name), "%s", mechanisms[how >> 4 & 3]);
  if ((how & 0xc0) == 0xc0) {
    (void)snprintf(terms.name, sizeof(terms.name), "other");
  } else if ((how & 0xc0) == 0x80) {
    terms.arms++;
  } else if (how == 0x7b) {
    (void)snprintf(terms.privatizer.name, sizeof(terms.privatizer.name), "unheard-of");
  } else if (how == 0x7f) {
    terms.tokens_per_worker = UINT32_MAX;
  }
  if (world->of_files || world->stock != NULL) {
    set_terms(world, how, &terms);
  }
  if (world->of_two) {
    terms.split = how == 0x31 ? (struct cv_split){0} : world->duo.split;
    terms.split.score_bits += how == 0x33;
    terms.split.key.bytes[0] ^= how == 0x35;
    terms.lease_ms = 4000;
  }
  struct cv_terms *known = &world->terms[terms.id];
  world->files.denied[terms.id] = false;
  if (say(world, &(struct cv_crowd_frame){.campaigns = 1, .campaign = &terms})) {
    bool differs =
        known->id != 0 && (known->tokens_per_worker != terms.tokens_per_worker ||
                           files_law(known) != files_law(&terms) || !is_same_split(&known->split, &terms.split));
    world->retold[terms.id] = world->retold[terms.id] || differs;
    *known = terms;
  }
}

static void put_number(uint8_t ticket[CV_TICKET_BYTES], uint32_t number) {
  memset(ticket, 0, CV_TICKET_BYTES);
  memcpy(ticket, &number, sizeof(number));
}

/* To a worker that waits, most of the time. */
static void on_assign(struct world *world, uint8_t how) {
  uint32_t many[4] = {0, 1, 2, (how >> 6 & 1) != 0 ? ARMS : 0}; /* the last one is unknown, or there twice */
  uint64_t worker = how % (WORKERS + 1);
  for (uint64_t i = 0; i <= WORKERS && !world->waits[worker]; i++) {
    worker = (worker + 1) % (WORKERS + 1);
  }
  if (world->tickets == TICKETS || !world->open) {
    return;
  }
  struct ticket *ticket = &world->ticket[world->tickets];
  *ticket = (struct ticket){.worker = worker,
                            .campaign = 1 + (how >> 4 & 3U),
                            .arms = (how & 15) != 15 ? 1
                                    : how >> 7       ? 4
                                                     : 3};
  const struct cv_terms *terms = &world->terms[ticket->campaign];
  ticket->good = world->waits[worker] && acceptable(world, terms);
  ticket->tokens_per_worker = terms->tokens_per_worker;
  ticket->once = !terms->repeat && (world->of_files || !world->work.hires);
  struct cv_assign assign = {.campaign = ticket->campaign, .worker = worker, .arms = ticket->arms};
  assign.place = world->of_files ? how % 4 : world->tickets % (ROWS + 4); /* of files the same ones again */
  assign.arm.one = ticket->arm = how >> 5 & 3;
  ticket->asks = 1U << ticket->arm;
  if (assign.arms > 1) {
    assign.arm.many = many;
    ticket->asks = (1U << ARMS) - 1;
  }
  if (world->of_two) {
    ticket->plan = assign.plan = 1 + (how & 1U);
    ticket->slot = assign.slot = (uint32_t)(world->tickets >> 2) % (terms->tokens_per_worker > 8 ? 8 : 3);
    ticket->place = assign.place;
  }
  put_number(assign.ticket, (uint32_t)world->tickets++);
  world->waits[worker] = false;
  ticket->law = files_law(terms);
  world->asked = ticket;
  (void)say(world, &(struct cv_crowd_frame){.assigns = 1, .assign = &assign});
  world->asked = NULL;
}

static void on_ack(struct world *world, uint8_t how) {
  struct cv_crowd_ack ack = {.verdict = (enum cv_verdict)(1 + (how & 3)), .why = (how & 4) != 0 ? "no" : NULL};
  size_t number = world->tickets == 0 ? 0 : world->tickets - 1 - (how >> 3) % world->tickets;
  if (!world->open || world->tickets == 0) {
    return;
  }
  put_number(ack.ticket, (uint32_t)number);
  struct ticket *ticket = &world->ticket[number];
  if (say(world, &(struct cv_crowd_frame){.acks = 1, .ack = &ack})) {
    ticket->undone = ticket->undone || ack.verdict == CV_VERDICT_EXPIRED;
  }
}

static void on_backoff(struct world *world, uint8_t how) {
  uint64_t worker[3] = {how % (WORKERS + 1), (how >> 2) % (WORKERS + 1), 1000};
  struct cv_backoff backoff = {.workers = 1 + (how >> 6) % 3, .worker = worker, .why = "later"};
  backoff.delay_ms = (how & 8) != 0 ? 700 : 0;
  backoff.campaign = (how & 16) != 0 ? 1 + (how & 3U) : 0;
  if (!say(world, &(struct cv_crowd_frame){.backoffs = 1, .backoff = &backoff})) {
    return;
  }
  for (size_t i = 0; i < backoff.workers; i++) {
    if (worker[i] <= WORKERS) {
      world->waits[worker[i]] = false;
    }
  }
}

static void on_done(struct world *world, uint8_t how) {
  uint64_t campaign = how % (CAMPAIGNS + 1);
  (void)say(world,
            &(struct cv_crowd_frame){.dones = 1, .done = &campaign, .goodbye = how >= 0xf0 ? "going down" : NULL});
}

static void on_time(struct world *world, uint8_t how) {
  world->now_ms += how * 20U;
}

static void on_flush(struct world *world, uint8_t how) {
  (void)how;
  flush(world);
}

/* ---- what the co-broker says ---- */

static void on_shut_co(struct world *world, uint8_t how) {
  (void)how;
  if (world->co_open) {
    cv_worker_leave_co(world->pool);
    world->co_open = false;
  }
}

static bool say_co(struct world *world, const struct cv_share_frame *frame) {
  struct cv_why why = {.text = ""};
  if (world->co_open && cv_worker_on_share(world->pool, frame, world->now_ms, &why) == CV_OK) {
    return true;
  }
  if (world->co_open) {
    fuzz_line(why.text);
    on_shut_co(world, 0);
  }
  return false;
}

static void on_open_co(struct world *world, uint8_t how) {
  struct cv_digest key = world->duo.keys.cobroker;
  on_shut_co(world, 0);
  key.bytes[0] ^= (how & 0x1f) == 0x1f; /* another co-broker */
  cv_worker_join_co(world->pool, &key);
  world->co_open = true;
  if (how < 0xf0) {
    struct cv_hello hello = {.present = true, .version = CV_WIRE_VERSION + (how > 0xe8), .program = "co-broker"};
    (void)say_co(world, &(struct cv_share_frame){.hello = hello});
  }
}

static void on_flush_co(struct world *world, uint8_t how) {
  struct cv_share_frame frame;
  (void)how;
  if (cv_worker_flush_share(world->pool, world->now_ms, &frame)) {
    CV_REQUIRE(world->co_open && frame.opens + frame.batches + frame.closes + frame.sessions + frame.turned == 0);
    for (size_t i = 0; i < frame.enters; i++) {
      CV_REQUIRE(frame.enter[i] >= 1 && frame.enter[i] <= CAMPAIGNS);
    }
  }
}

/* With the terms that the broker has told last, or others. */
static void on_session(struct world *world, uint8_t how) {
  struct cv_share_session session = {.terms = world->terms[1 + (how & 3U)], .id = {++world->sessions}};
  session.terms.id = 1 + (how & 3U);
  session.terms.lease_ms = 0;
  session.terms.arms += (how & 0xf8) == 0xf8;
  session.terms.tokens_per_worker += (how & 0xf8) == 0xf0;
  session.terms.split.database[1] ^= (how & 0xf8) == 0xe8;
  bool is_same = how < 0xe8 && is_same_split(&session.terms.split, &world->duo.split);
  if (say_co(world, &(struct cv_share_frame){.sessions = 1, .session = &session})) {
    world->stood[session.terms.id] = world->stood[session.terms.id] || is_same;
  }
}

static void on_turned(struct world *world, uint8_t how) {
  struct cv_share_turned turned = {.campaign = 1 + (how & 3U), .why = "later", .again_ms = (how >> 3) * 100U};
  uint64_t number = 1;
  struct cv_share_frame frame = {.turned = 1, .turn = &turned};
  if (how == 0xff) { /* what only a worker says */
    frame = (struct cv_share_frame){.enters = 1, .enter = &number};
  }
  (void)say_co(world, &frame);
}

typedef void event_fn(struct world *world, uint8_t how);
static event_fn *const events[] = {on_open, on_shut, on_terms, on_assign, on_ack, on_backoff, on_done, on_time,
                                   on_flush, on_flush,
                                   /* with two brokers */
                                   on_open_co, on_session, on_turned, on_flush_co, on_shut_co, on_flush};
enum { EVENTS_OF_ONE = 10 };

/* Persons 1 and above have 0 to 3 rows, some of one arm; the second person has given one before. */
static void start_stock(struct world *world) {
  struct cv_persons *persons = &world->persons;
  uint64_t row = 0;
  CV_REQUIRE(cv_persons_init(persons, PERSONS, OWN_ROWS) == CV_OK);
  for (uint32_t i = 0; i < PERSONS; i++) {
    for (uint32_t j = 0; j < i % 4; j++, row++) {
      persons->arm[row] = (i + j / 2) % ARMS;
      persons->value[row] = (uint32_t)row;
    }
    persons->start[i + 1] = row;
  }
  const struct cv_stock_config config = {.persons = persons,
                                         .first_worker = 1,
                                         .first = world->config.first,
                                         .last = world->config.last,
                                         .arms = ARMS,
                                         .seed = 1};
  CV_REQUIRE(cv_stock_new(&config, &world->stock) == CV_OK && cv_stock_mark(world->stock, 0));
  CV_REQUIRE(!cv_stock_mark(world->stock, row));
  world->kept[0] = true;
  world->row_left[0] = UINT32_MAX;
  world->config.stock = world->stock;
}

static void start_files(struct world *world, uint8_t parts) {
  world->of_files = true;
  files_start(&world->files, parts);
  world->config.record = &world->files.record;
  world->config.work = world->files.work;
  world->config.works = FILES;
}

static void start(struct world *world, uint8_t how) {
  *world = (struct world){.now_ms = 1000};
  cv_rng_seeded_init(&world->rng, 1, CV_RNG_PRIVATIZER, 0, 0);
  duo_init(&world->duo, (how & 0x10) != 0 ? CV_SPLIT_BIT : CV_SPLIT_SCORE);
  world->of_two = (how & 0x26) == 0x26;
  world->work =
      (struct cv_work){.data = world, .campaign = "fuzz", .arms = ARMS, .hires = (how & 1) != 0, .score = score_of};
  world->config = (struct cv_worker_config){
      .first = 1,
      .last = 1 + how % WORKERS,
      .concurrency = 1 + (how >> 4 & 3U),
      .arrival_rate = (how & 0x40) != 0 ? 2 : 0,
      .accept = {.requesters = "alice, bob",
                 .privatizers = "none",
                 .mechanisms = "hybrid, batch",
                 .epsilon_micro = EPSILON_MICRO},
      .work = &world->work,
      .works = 1,
      .given = world->before,
      .give = give,
      .give_data = world,
      .rng = &world->rng.rng,
      .coin_key = (const uint8_t *)"32 bytes, the same at each start.",
      .show = show,
      .note = note,
      .note_data = world,
  };
  world->config.accept.tokens = how >> 7 ? 2 : 0;
  if (world->of_two) {
    world->config.accept.pair = &world->duo.keys;
    world->config.accept.pairs = 1;
    world->config.session = &world->duo.ops;
  } else if ((how & 13) == 13) { /* persons are not hired */
    world->work.hires = false;
    start_stock(world);
  } else if ((how & 6) == 4) {
    start_files(world, how >> 5 & 3);
  }
  if (world->of_files || world->stock != NULL) {
    world->config.accept.privatizers = "none, randomized-response, laplace";
  }
  world->before[0] = world->told[0] = how >> 7 & how >> 3 & 1;
  start_pool(world);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  static struct world world; /* large */
  struct cv_reader in = cv_reader_over(bytes, n);
  start(&world, cv_read_u8(&in));
  for (int i = 0; i < EVENTS && in.at < in.end; i++) {
    uint8_t what = cv_read_u8(&in);
    events[what % (world.of_two ? CV_COUNT(events) : EVENTS_OF_ONE)](&world, cv_read_u8(&in));
  }
  flush(&world);
  cv_worker_free(world.pool);
  CV_REQUIRE(world.duo.open == 0); /* no key is left */
  seen_fini(&world.nonces);
  cv_stock_free(world.stock);
  cv_persons_fini(&world.persons);
  return 0;
}
