/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowdveil-worker: one worker, or a gateway that speaks for a range of virtual ones. The range is that of its own
 * certificate; where scores come from is said by the campaign file, or by several.
 *
 * What can fail: the broker (dialled again, for ever), the data (the campaign is declined). SIGTERM and SIGINT close
 * the connection and exit 0. SIGHUP reads the TLS files again and keeps the old ones if the new ones are no good.
 */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "common/admin/admin.h"
#include "common/admin/probe.h"
#include "common/base/clock.h"
#include "common/base/grid.h"
#include "common/base/log.h"
#include "common/config/link.h"
#include "common/crypto/crypto.h"
#include "common/daemon/turn.h"
#include "common/net/peer.h"
#include "common/net/signals.h"
#include "common/sandbox/sandbox.h"
#include "worker/core.h"
#include "worker/given.h"
#include "worker/works.h"

enum {
  TICK_MS = 20,
  SLICE = 2000,             /* tokens, and arrivals, in one frame */
  TOKEN_BYTES = 64,         /* of a token in a frame, at most, without its values */
  VALUE_BYTES = 10,         /* of a value, at most */
  SLICE_BYTES = 160 * 1024, /* of tokens in one frame */
};

static const char program[] = "crowdveil-worker";

struct settings {
  char *broker, *broker_name, *campaign, *requesters, *state, *admin;
  struct cv_link_settings link;
  uint64_t seed, concurrency;
  double arrival_rate, accept_epsilon, accept_delta;
  char *accept_privatizers, *accept_mechanisms;
  uint64_t accept_tokens;
  bool exit_when_done;
  struct cv_sandbox_settings sandbox;
  bool probe;
};

#define NO_TOKENS UINT64_MAX
#define AT(field) offsetof(struct settings, field)

static const struct cv_config_rule rules[] = {
    {.key = "broker",
     .type = CV_CONFIG_TEXT,
     .offset = AT(broker),
     .fallback = "127.0.0.1:7401",
     .help = "HOST:PORT of the broker"},
    {.key = "broker_name",
     .type = CV_CONFIG_PARTY,
     .offset = AT(broker_name),
     .required = true,
     .help = "name in the broker's certificate; another one there is refused"},
    {.key = "campaign",
     .type = CV_CONFIG_PATH,
     .offset = AT(campaign),
     .required = true,
     .help = "campaign file that says where scores come from, or a folder of them"},
    {.key = "requesters",
     .type = CV_CONFIG_PARTIES,
     .offset = AT(requesters),
     .required = true,
     .help = "whose campaigns it serves"},
    CV_ADMIN_RULES(struct settings),
    CV_LINK_RULES(AT(link)),
    {.key = "seed",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(seed),
     .low = 0,
     .high = 9e15,
     .help = "of instance and scores; without it the campaign file's, else random"},
    {.key = "concurrency",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(concurrency),
     .low = 1,
     .high = 8192,
     .fallback = "2048",
     .help = "assignments held at once"},
    {.key = "arrival_rate",
     .type = CV_CONFIG_REAL,
     .offset = AT(arrival_rate),
     .low = 0,
     .high = 1e9,
     .fallback = "0",
     .help = "workers a second; 0: as fast as they are taken"},
    {.key = "accept.privatizers",
     .type = CV_CONFIG_WORDS,
     .offset = AT(accept_privatizers),
     .choices = cv_local_names,
     .fallback = "none",
     .help = "privatizers it accepts, separated by commas"},
    {.key = "accept.mechanisms",
     .type = CV_CONFIG_WORDS,
     .offset = AT(accept_mechanisms),
     .choices = cv_accept_mechanisms,
     .fallback = "hybrid",
     .help = "mechanisms it accepts, separated by commas"},
    {.key = "accept.epsilon",
     .type = CV_CONFIG_REAL,
     .offset = AT(accept_epsilon),
     .low = 0,
     .high = 4000,
     .fallback = "10",
     .help = "largest epsilon it accepts"},
    {.key = "accept.delta",
     .type = CV_CONFIG_REAL,
     .offset = AT(accept_delta),
     .low = 0,
     .high = 1,
     .fallback = "0",
     .help = "largest delta of a privatizer it accepts: the chance that a token shows more than epsilon permits"},
    {.key = "accept.tokens",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(accept_tokens),
     .low = 0,
     .high = UINT32_MAX,
     .help = "tokens each worker gives in all; 0: no limit of its own; without it 1 if a privatizer other than none "
             "is accepted, else 0"},
    {.key = "state",
     .type = CV_CONFIG_PATH,
     .offset = AT(state),
     .help = "folder for what each worker has given; needed with a limit of tokens and with a data file's "
             "items.worker, which a restart would forget"},
    {.key = "exit_when_done",
     .type = CV_CONFIG_BOOL,
     .offset = AT(exit_when_done),
     .fallback = "false",
     .help = "end when its campaigns are over or every token is given"},
    CV_SANDBOX_RULES(AT(sandbox)),
};

static const struct cv_config_table table = {
    .program = program,
    .about = "scores what it is assigned and sends privatized tokens to the broker",
    .rules = rules,
    .count = CV_COUNT(rules),
};

struct daemon {
  const struct settings *settings;
  uv_loop_t loop;
  struct cv_works works;
  struct cv_drbg drbg;
  struct cv_tls *tls;
  struct cv_dialer *dialer;
  struct cv_admin *admin; /* NULL: nobody may look in */
  struct cv_peer *peer;
  struct cv_given *given; /* NULL: nobody keeps it */
  struct cv_stock *stock; /* NULL: the data do not tell persons apart */
  struct cv_crew *crew;
  struct cv_arena in, scratch;
  struct cv_buf out;
  struct cv_turn turn;
  struct cv_crowd_frame frame; /* of this turn */
  bool due, speaks;            /* the loop has turned since the last flush; there is a frame */
  uv_check_t check;
  uv_timer_t tick;
  struct cv_signals signals;
  bool announced, stopping;
  struct cv_hush hush;
};

/* Whatever a worker has to say is about its broker. */
static void note(void *data, const char *text) {
  struct daemon *daemon = data;
  cv_log_peer(&daemon->hush, "broker", text, cv_clock_mono_ms());
}

static void give(void *data, uint64_t worker, uint32_t scores) {
  struct daemon *daemon = data;
  cv_given_note(daemon->given, worker, scores);
}

static void stop(struct daemon *daemon) {
  if (!daemon->stopping) {
    daemon->stopping = true;
    cv_dialer_stop(daemon->dialer);
    cv_admin_stop(daemon->admin);
    daemon->admin = NULL;
    uv_close((uv_handle_t *)&daemon->check, NULL);
    uv_close((uv_handle_t *)&daemon->tick, NULL);
  }
}

/* ---- the turn ---- */

static void send_frame(struct daemon *daemon, const struct cv_crowd_frame *frame) {
  cv_buf_clear(&daemon->out);
  enum cv_err err = cv_crowd_encode(frame, &daemon->scratch, &daemon->out);
  if (err == CV_OK) {
    err = cv_peer_send(daemon->peer, daemon->out.data, daemon->out.len);
  }
  if (err != CV_OK && err != CV_ERR_CLOSED) {
    cv_peer_close(daemon->peer, err == CV_ERR_LIMIT ? "the broker does not read" : cv_err_text(err));
  }
}

/* How many of the tokens go into one frame. */
static size_t fitting(const struct cv_token *token, size_t tokens) {
  size_t n = 0;
  for (size_t bytes = 0; n < tokens && n < SLICE; n++) {
    bytes += TOKEN_BYTES + VALUE_BYTES * token[n].values;
    if (bytes > SLICE_BYTES) {
      break;
    }
  }
  return n;
}

/* Cuts what the crew has to say into frames that fit. */
static void send_sliced(struct daemon *daemon, const struct cv_crowd_frame *whole) {
  struct cv_crowd_frame part = *whole;
  size_t tokens = whole->tokens;
  struct cv_arrive arrive;
  size_t workers = whole->arrives > 0 ? whole->arrive->workers : 0;
  bool first = true;
  do {
    part.tokens = fitting(part.token, tokens);
    tokens -= part.tokens;
    if (part.arrives > 0) {
      arrive = *whole->arrive;
      arrive.wish += arrive.wish == NULL ? 0 : arrive.workers - workers;
      arrive.worker += arrive.workers - workers;
      arrive.workers = workers < SLICE ? workers : SLICE;
      workers -= arrive.workers;
      part.arrive = &arrive;
    }
    send_frame(daemon, &part);
    part.token += part.tokens;
    part.hello.present = false;
    part.declines = first ? 0 : part.declines;
    part.arrives = workers > 0;
    first = false;
  } while (tokens > 0 || workers > 0);
}

static bool is_pending(void *data) {
  const struct daemon *daemon = data;
  return daemon->due;
}

/* The rows that the frame gives away are to be kept with the rest. */
static enum cv_err note_rows(struct daemon *daemon) {
  size_t rows = 0;
  const uint32_t *row = daemon->stock == NULL ? NULL : cv_stock_taken(daemon->stock, &rows);
  if (rows > 0) {
    CV_TRY(cv_given_note_rows(daemon->given, row, rows));
    cv_stock_kept(daemon->stock);
  }
  return CV_OK;
}

/* What the frame gives away is in `given` by now; noted is not kept. */
static enum cv_err flush(void *data, bool *ret_store) {
  struct daemon *daemon = data;
  daemon->due = false;
  daemon->speaks = daemon->peer != NULL && cv_crew_flush(daemon->crew, cv_clock_mono_ms(), &daemon->frame);
  *ret_store = daemon->given != NULL;
  return cv_crew_has_failed(daemon->crew) ? CV_ERR_NOMEM : note_rows(daemon);
}

static enum cv_err commit(void *data, struct cv_why *why) {
  struct daemon *daemon = data;
  return cv_given_keep(daemon->given, why);
}

static void say(void *data) {
  struct daemon *daemon = data;
  if (daemon->speaks) {
    send_sliced(daemon, &daemon->frame);
  }
  if (daemon->settings->exit_when_done && cv_crew_is_done(daemon->crew)) {
    stop(daemon);
  }
}

static void on_failure(void *data, const char *what, const struct cv_why *why) {
  struct daemon *daemon = data;
  cv_log(CV_LOG_ERROR, "%s: %s; stopping, what has not been acknowledged will be asked of others", what, why->text);
  stop(daemon);
}

static const struct cv_turn_ops turn_ops = {
    .is_pending = is_pending, .flush = flush, .commit = commit, .say = say, .fail = on_failure};

static void turn_over(struct daemon *daemon) {
  daemon->due = true;
  cv_turn_over(&daemon->turn);
}

static void on_turn(uv_check_t *check) {
  turn_over(check->data);
}

static void on_tick(uv_timer_t *timer) {
  struct daemon *daemon = timer->data;
  turn_over(daemon);
  cv_log_hushed(&daemon->hush, cv_clock_mono_ms(), false);
}

static struct cv_tls_files tls_files(const struct settings *settings) {
  return (struct cv_tls_files)CV_LINK_FILES(&settings->link);
}

static void reload(struct daemon *daemon) {
  const struct cv_tls_files files = tls_files(daemon->settings);
  struct cv_tls *tls;
  struct cv_why why;
  if (cv_tls_renew(daemon->tls, &files, &tls, &why) != CV_OK) {
    cv_log(CV_LOG_ERROR, "going on with the certificates as they were: %s", why.text);
    return;
  }
  cv_dialer_set_tls(daemon->dialer, tls);
  cv_tls_unref(daemon->tls);
  daemon->tls = tls;
  cv_log(CV_LOG_INFO, "certificates read again");
}

static void on_signal(void *data, int number) {
  struct daemon *daemon = data;
  if (number != SIGHUP) {
    stop(daemon);
  } else if (!daemon->stopping) {
    reload(daemon);
  }
}

/* ---- the broker ---- */

static void on_opened(struct cv_peer *peer, const struct cv_identity *identity) {
  struct daemon *daemon = cv_peer_data(peer);
  const struct cv_identity *own = cv_tls_identity(daemon->tls);
  daemon->peer = peer;
  cv_crew_opened(daemon->crew, cv_clock_mono_ms());
  struct cv_why line;
  (void)snprintf(line.text, sizeof(line.text), "connected to broker %s at %s", identity->name, cv_peer_address(peer));
  note(daemon, line.text);
  if (!daemon->announced) {
    daemon->announced = true;
    (void)printf("%s connected as %s/%s\n", program, cv_role_text(own->role), own->name);
    (void)fflush(stdout);
  }
}

static void on_frame(struct cv_peer *peer, const uint8_t *bytes, size_t n) {
  struct daemon *daemon = cv_peer_data(peer);
  struct cv_crowd_frame frame;
  struct cv_why why = {.text = "out of memory"};
  enum cv_err err = cv_crowd_decode(bytes, n, &daemon->in, &frame);
  if (err != CV_OK) {
    (void)cv_fail(&why, err, "a frame of %zu bytes is no valid message of a broker", n);
  } else {
    err = cv_crew_frame(daemon->crew, &frame, cv_clock_mono_ms(), &why);
  }
  if (err != CV_OK) {
    cv_peer_close(peer, why.text);
  }
}

static void on_closed(struct cv_peer *peer, const struct cv_why *why) {
  struct daemon *daemon = cv_peer_data(peer);
  if (daemon->peer == peer) {
    daemon->peer = NULL;
    cv_crew_closed(daemon->crew);
  }
  if (!daemon->stopping) {
    note(daemon, why->text);
  }
}

static void on_failed(void *data, const struct cv_why *why) {
  note(data, why->text);
}

static const struct cv_peer_ops peer_ops = {.opened = on_opened, .frame = on_frame, .closed = on_closed};

/* ---- the operator's window: how many, never which score, or whose ---- */

static enum cv_err health(void *data, struct cv_why *why) {
  const struct daemon *daemon = data;
  if (daemon->stopping) {
    return cv_fail(why, CV_ERR_STATE, "stopping");
  }
  return daemon->peer != NULL ? CV_OK : cv_fail(why, CV_ERR_STATE, "the broker is not connected");
}

static void metrics(void *data, struct cv_buf *out) {
  const struct daemon *daemon = data;
  const struct cv_identity *own = cv_tls_identity(daemon->tls);
  struct cv_crew_figures figures;
  cv_crew_figures(daemon->crew, &figures);
  cv_admin_metric(out, "crowdveil_worker_connected", "1 while the broker is connected.", "gauge", daemon->peer != NULL);
  cv_admin_metric(out, "crowdveil_worker_ids", "Workers that the certificate is for.", "gauge",
                  (double)(own->last - own->first) + 1);
  cv_admin_metric(out, "crowdveil_worker_tokens_accepted_total", "Tokens that the broker took.", "counter",
                  (double)figures.accepted);
  cv_admin_metric(out, "crowdveil_worker_tokens_duplicates_total", "Tokens sent again that the broker had.", "counter",
                  (double)figures.duplicates);
  cv_admin_metric(out, "crowdveil_worker_tokens_expired_total", "Tokens that came too late.", "counter",
                  (double)figures.expired);
  cv_admin_metric(out, "crowdveil_worker_tokens_refused_total", "Tokens that the broker refused.", "counter",
                  (double)figures.refused);
}

/* ---- start and end ---- */

/* Behind a privatizer each further token tells more about the same score, and a broker could ask for ever. */
static uint64_t limit_of(const struct settings *settings) {
  if (settings->accept_tokens != NO_TOKENS) {
    return settings->accept_tokens;
  }
  return cv_accept_is_local(settings->accept_privatizers) ? 1 : 0;
}

static enum cv_err open_given(struct daemon *daemon, struct cv_why *why) {
  const struct settings *settings = daemon->settings;
  const struct cv_identity *own = cv_tls_identity(daemon->tls);
  if (settings->state != NULL) {
    return cv_given_open(settings->state, own->first, own->last, &daemon->given, why);
  }
  if (limit_of(settings) == 0) {
    return CV_OK;
  }
  if (settings->accept_tokens == NO_TOKENS) {
    return cv_fail(why, CV_ERR_INVALID,
                   "accept.tokens is 1 unless it is set, as accept.privatizers is not none, and state is missing; "
                   "expected a folder to remember in, or accept.tokens: 0 for no limit");
  }
  /* a limit that every restart would forget */
  return cv_fail(why, CV_ERR_INVALID, "accept.tokens is set and state is missing; expected a folder to remember in");
}

static bool mark_row(void *data, uint64_t row) {
  return cv_stock_mark(data, row);
}

/* The persons of the data file whose workers are ours, less what they have given before. */
static enum cv_err open_stock(struct daemon *daemon, struct cv_why *why) {
  const struct cv_works *works = &daemon->works;
  const struct cv_persons *persons = works->persons;
  const struct cv_identity *own = cv_tls_identity(daemon->tls);
  if (persons == NULL) {
    return CV_OK;
  }
  if (daemon->given == NULL) {
    return cv_fail(why, CV_ERR_INVALID,
                   "items.worker is set and state is missing; expected a folder to remember in which rows were given");
  }
  const struct cv_stock_config config = {.persons = persons,
                                         .first_worker = works->first_worker,
                                         .first = own->first,
                                         .last = own->last,
                                         .arms = works->work[0].arms,
                                         .seed = works->seed};
  if (cv_stock_new(&config, &daemon->stock) != CV_OK) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  if (cv_stock_persons(daemon->stock) == 0) {
    return cv_fail(why, CV_ERR_INVALID,
                   "%s: its persons are workers %" PRIu64 " to %" PRIu64
                   ", none of whom is among the certificate's %" PRIu64 "-%" PRIu64,
                   works->file, works->first_worker, works->first_worker + persons->persons - 1, own->first, own->last);
  }
  return cv_given_rows(daemon->given, works->work[0].campaign, cv_persons_print(persons), mark_row, daemon->stock, why);
}

static enum cv_err open_crew(struct daemon *daemon, struct cv_why *why) {
  const struct settings *settings = daemon->settings;
  const struct cv_identity *own = cv_tls_identity(daemon->tls);
  const struct cv_crew_config config = {
      .first = own->first,
      .last = own->last,
      .concurrency = (uint32_t)settings->concurrency,
      .arrival_rate = settings->arrival_rate,
      .accept = {.requesters = settings->requesters,
                 .privatizers = settings->accept_privatizers,
                 .mechanisms = settings->accept_mechanisms,
                 .epsilon_micro = (uint64_t)llround(settings->accept_epsilon * (double)CV_MICRO),
                 .delta_pico = (uint64_t)llround(settings->accept_delta * (double)CV_PICO),
                 .tokens = limit_of(settings)},
      .work = daemon->works.work,
      .works = daemon->works.works,
      .stock = daemon->stock,
      .given = daemon->given == NULL ? NULL : cv_given_scores(daemon->given),
      .give = daemon->given == NULL ? NULL : give,
      .give_data = daemon,
      .rng = &daemon->drbg.rng,
      .note = note,
      .note_data = daemon,
  };
  return cv_crew_new(&config, &daemon->crew, why);
}

static enum cv_err open_tls(struct daemon *daemon, struct cv_why *why) {
  const struct settings *settings = daemon->settings;
  const struct cv_tls_files files = tls_files(settings);
  const struct cv_tls_peers broker = {.roles = 1U << CV_ROLE_BROKER, .names = settings->broker_name};
  struct cv_why as_worker;
  enum cv_err err = cv_tls_new(&files, CV_ROLE_WORKER, broker, false, &daemon->tls, &as_worker);
  if (err == CV_OK) {
    return CV_OK;
  }
  return cv_tls_new(&files, CV_ROLE_GATEWAY, broker, false, &daemon->tls, why);
}

static enum cv_err open_admin(struct daemon *daemon, struct cv_why *why) {
  static const struct cv_admin_ops ops = {.health = health, .metrics = metrics};
  const char *path = daemon->settings->admin;
  return path == NULL ? CV_OK : cv_admin_start(&daemon->loop, path, &ops, daemon, &daemon->admin, why);
}

/* The campaign and its data have been read; what is left is certificates, the state and the way to the broker. */
static enum cv_err enter_sandbox(const struct settings *settings, struct cv_why *why) {
  const struct cv_sandbox_needs needs = {
      .reads = {settings->link.ca, settings->link.cert, settings->link.key, settings->link.denied},
      .state = settings->state,
      .socket = settings->admin,
      .dials = settings->broker};
  struct cv_sandbox_report report;
  CV_TRY(cv_sandbox_enter(&settings->sandbox, &needs, &report, why));
  cv_log(report.whole ? CV_LOG_INFO : CV_LOG_WARN, "sandbox: %s", report.text);
  return CV_OK;
}

static enum cv_err open_all(struct daemon *daemon, struct cv_why *why) {
  const struct settings *settings = daemon->settings;
  CV_TRY(cv_works_load(settings->campaign, settings->seed, &daemon->drbg.rng, &daemon->works, why));
  CV_TRY(open_tls(daemon, why));
  CV_TRY(cv_sandbox_become(&settings->sandbox, why));
  CV_TRY(cv_arena_init(&daemon->in, CV_ARENA_BYTES));
  CV_TRY(cv_arena_init(&daemon->scratch, CV_ARENA_BYTES));
  CV_TRY(open_given(daemon, why));
  CV_TRY(open_stock(daemon, why));
  CV_TRY(open_crew(daemon, why));
  CV_TRY(open_admin(daemon, why));
  struct cv_net_limits limits = CV_NET_DEFAULTS;
  limits.silence_ms = (unsigned)settings->link.silence_ms;
  CV_TRY(cv_dialer_start(&daemon->loop, settings->broker, daemon->tls, &peer_ops, daemon, on_failed, &limits,
                         cv_rng_u64(&daemon->drbg.rng), &daemon->dialer, why));
  return enter_sandbox(settings, why);
}

static void start_handles(struct daemon *daemon) {
  (void)uv_check_init(&daemon->loop, &daemon->check);
  (void)uv_timer_init(&daemon->loop, &daemon->tick);
  daemon->check.data = daemon->tick.data = daemon;
  (void)uv_check_start(&daemon->check, on_turn);
  (void)uv_timer_start(&daemon->tick, on_tick, TICK_MS, TICK_MS);
  cv_signals_start(&daemon->signals, &daemon->loop, on_signal, daemon);
}

static void sum_up(const struct daemon *daemon) {
  struct cv_crew_figures figures;
  cv_crew_figures(daemon->crew, &figures);
  (void)printf("%s: %" PRIu64 " tokens accepted, %" PRIu64 " sent again, %" PRIu64 " expired, %" PRIu64 " refused\n",
               program, figures.accepted, figures.duplicates, figures.expired, figures.refused);
}

/* What the persons of the data have given in all; nobody else can know. */
static void sum_up_rows(const struct daemon *daemon) {
  const struct cv_persons *persons = daemon->works.persons;
  const struct cv_identity *own = cv_tls_identity(daemon->tls);
  uint64_t given = 0, most = 0;
  for (uint32_t i = 0; i < persons->persons; i++) {
    uint64_t worker = daemon->works.first_worker + i;
    if (worker >= own->first && worker <= own->last) {
      uint64_t rows = cv_persons_rows(persons, i) - cv_stock_left(daemon->stock, worker);
      given += rows;
      most = rows > most ? rows : most;
    }
  }
  (void)printf("%s: %" PRIu64 " rows of %" PRIu32 " persons given in all, each once, %" PRIu64 " of one at most\n",
               program, given, cv_stock_persons(daemon->stock), most);
}

static void fini(struct daemon *daemon) {
  cv_admin_stop(daemon->admin);
  cv_signals_stop(&daemon->signals);
  (void)uv_loop_close(&daemon->loop);
  cv_crew_free(daemon->crew);
  cv_given_close(daemon->given);
  cv_stock_free(daemon->stock);
  cv_tls_unref(daemon->tls);
  cv_works_fini(&daemon->works);
  cv_drbg_fini(&daemon->drbg);
  cv_arena_fini(&daemon->in);
  cv_arena_fini(&daemon->scratch);
  cv_buf_fini(&daemon->out);
}

static int run(const struct settings *settings) {
  static struct daemon daemon;
  struct cv_why why = {.text = "out of memory"};
  daemon.settings = settings;
  cv_log_init(program, CV_LOG_INFO);
  cv_sandbox_begin(&settings->sandbox);
  cv_drbg_init(&daemon.drbg);
  daemon.turn = (struct cv_turn){.ops = &turn_ops, .data = &daemon};
  if (uv_loop_init(&daemon.loop) != 0) {
    (void)fprintf(stderr, "%s: the event loop cannot start\n", program);
    return 1;
  }
  enum cv_err err = open_all(&daemon, &why);
  if (err != CV_OK) {
    (void)fprintf(stderr, "%s: %s\n", program, why.text);
    fini(&daemon);
    return cv_config_exit_status(err);
  }
  start_handles(&daemon);
  (void)uv_run(&daemon.loop, UV_RUN_DEFAULT);
  cv_log_hushed(&daemon.hush, cv_clock_mono_ms(), true);
  sum_up(&daemon);
  if (daemon.stock != NULL) {
    sum_up_rows(&daemon);
  }
  bool failed = cv_turn_has_failed(&daemon.turn);
  fini(&daemon);
  return failed ? 1 : 0;
}

int main(int argc, char **argv) {
  struct settings settings = {.seed = CV_WORKS_SEED_NONE, .accept_tokens = NO_TOKENS};
  int status = cv_config_start(&table, argc, argv, &settings);
  if (status < 0) {
    status = settings.probe ? cv_probe_run(program, settings.admin) : cv_link_wait(program, &settings.link);
  }
  if (status < 0) {
    status = run(&settings);
  }
  cv_config_fini(&table, &settings);
  return status;
}
