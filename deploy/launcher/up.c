/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowdveil up: runs a campaign with all its parties on this machine, from new certificates to the result.
 *
 *   folder, certificates -> third-party ready -> with two brokers: co-broker ready -> broker ready -> Submit, workers
 *     -> Watch -> Finished -> stop all
 *
 * A failure at any point (a child that ends, a refusal by the broker, a signal) stops all programs in the same order.
 */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/grid.h"
#include "common/base/local.h"
#include "common/base/text.h"
#include "common/crypto/crypto.h"
#include "common/crypto/ring.h"
#include "common/net/loop.h"
#include "deploy/launcher/children.h"
#include "deploy/launcher/client.h"
#include "deploy/launcher/command.h"
#include "deploy/launcher/export.h"
#include "deploy/launcher/hindrance.h"
#include "deploy/launcher/joined.h"
#include "deploy/launcher/json.h"
#include "deploy/launcher/parties.h"
#include "deploy/launcher/progress.h"
#include "deploy/launcher/result_json.h"
#include "deploy/launcher/table.h"
#include "prepare/prepare.h"

/* WORKERS_MAX: size of the table in which a broker counts what each worker has spent. */
enum { WORKERS_MAX = 60000000, PATIENCE_MS = 20000, GATEWAYS_MAX = 32, ALONE_MAX = 32 };
_Static_assert(3 + GATEWAYS_MAX + ALONE_MAX <= CV_CHILDREN_MAX, "third-party, brokers, and every program for workers");

struct settings {
  char *state;
  uint64_t brokers, workers, gateways, worker_processes, seed, noise_seed;
  uint64_t page_port;
  bool keep, json, page, show_worker, unsafe_mechanisms;
};

static const struct cv_config_rule rules[] = {
    {.key = "state",
     .type = CV_CONFIG_PATH,
     .offset = offsetof(struct settings, state),
     .help = "new or empty folder for all state, kept afterwards (default: a temporary folder)"},
    {.key = "brokers",
     .type = CV_CONFIG_WHOLE,
     .offset = offsetof(struct settings, brokers),
     .low = 1,
     .high = 2,
     .help = "2: also a co-broker, so that neither broker can read a score; 1: one broker (default: as the file says)"},
    {.key = "workers",
     .type = CV_CONFIG_WHOLE,
     .offset = offsetof(struct settings, workers),
     .low = 1,
     .high = WORKERS_MAX,
     .help = "number of simulated workers (default: enough for the token limit)"},
    {.key = "gateways",
     .type = CV_CONFIG_WHOLE,
     .offset = offsetof(struct settings, gateways),
     .low = 1,
     .high = GATEWAYS_MAX,
     .fallback = "2",
     .help = "number of gateways, among which the workers are divided evenly"},
    {.key = "worker_processes",
     .type = CV_CONFIG_WHOLE,
     .offset = offsetof(struct settings, worker_processes),
     .high = ALONE_MAX,
     .fallback = "0",
     .help = "number of workers, the last ones, that run as their own process with their own certificate"},
    {.key = "seed",
     .type = CV_CONFIG_WHOLE,
     .offset = offsetof(struct settings, seed),
     .high = 9e15,
     .help = "seed of the items and their scores (default: the file's, else random)"},
    {.key = "unsafe_mechanisms",
     .type = CV_CONFIG_BOOL,
     .offset = offsetof(struct settings, unsafe_mechanisms),
     .fallback = "false",
     .help = "UNSAFE, for experiments: let the broker accept mechanisms that exceed their stated epsilon"},
    {.key = "unsafe_noise_seed",
     .type = CV_CONFIG_WHOLE,
     .offset = offsetof(struct settings, noise_seed),
     .high = 9e15,
     .help = "UNSAFE, for tests: seed of the noise, which then protects nobody"},
    {.key = "keep",
     .type = CV_CONFIG_BOOL,
     .offset = offsetof(struct settings, keep),
     .fallback = "false",
     .help = "keep all programs running after the result, until Ctrl-C"},
    {.key = "page",
     .type = CV_CONFIG_BOOL,
     .offset = offsetof(struct settings, page),
     .fallback = "false",
     .help = "show the campaign in a browser: print a link, and keep all programs running until Ctrl-C"},
    {.key = "unsafe_show_worker",
     .type = CV_CONFIG_BOOL,
     .offset = offsetof(struct settings, show_worker),
     .fallback = "false",
     .help = "UNSAFE, for teaching: one more simulated worker, whose score and token the page shows"},
    {.key = "page_port",
     .type = CV_CONFIG_WHOLE,
     .offset = offsetof(struct settings, page_port),
     .high = 65535,
     .fallback = "0",
     .help = "port of the page on 127.0.0.1; 0 lets the system choose"},
    {.key = "json",
     .type = CV_CONFIG_BOOL,
     .offset = offsetof(struct settings, json),
     .fallback = "false",
     .help = "print the result as one JSON object on standard output, everything else on standard error"},
};

static const struct cv_config_table table = {
    .program = "crowdveil up",
    .arguments = "FILE",
    .about = "runs a campaign file with all its parties on this machine and prints the result",
    .rules = rules,
    .count = CV_COUNT(rules),
    .check = cv_launcher_check_file,
};

struct up {
  struct settings settings;
  struct cv_prepared prepared;
  char file[PATH_MAX]; /* campaign file, absolute path */
  struct cv_folder folder;
  struct cv_parties parties;
  uv_loop_t loop;
  uv_signal_t signal[3];
  struct cv_children children;
  struct cv_client client;
  struct cv_client_settings asking;
  struct cv_parties_paths requester;
  char thirdparty[300], broker[300], cobroker[300];
  struct cv_view view;
  struct cv_joined joined; /* the page */
  FILE *people;            /* progress and tables: standard output, or standard error with --json */
  struct cv_outcome outcome;
  struct cv_export export; /* of a campaign against an adversary: the arms in the order in which they were pulled */
  bool is_accepted, is_finished, is_stopping;
  bool needs_logs; /* a program failed: keep the temporary folder, which has its log */
  int status;
};

/* ---- stopping ---- */

static void stop(struct up *up, int status) {
  if (!up->is_stopping) {
    up->is_stopping = true;
    up->status = status;
    cv_view_end(&up->view);
    cv_client_stop(&up->client);
    cv_joined_close(&up->joined);
    cv_children_stop(&up->children);
  }
}

static void fail(struct up *up, const struct cv_why *why) {
  if (!up->is_stopping) {
    cv_view_end(&up->view);
    stop(up, cv_command_fail(&table, 1, "%s", why->text));
  }
}

static void on_gone(void *data) {
  struct up *up = data;
  for (size_t i = 0; i < CV_COUNT(up->signal); i++) {
    uv_close((uv_handle_t *)&up->signal[i], NULL);
  }
}

static void on_signal(uv_signal_t *handle, int number) {
  struct up *up = handle->data;
  if (up->is_stopping) { /* the second signal: do not wait for the children */
    cv_children_kill(&up->children);
  } else if (up->is_finished) {
    stop(up, up->status);
  } else {
    cv_view_end(&up->view);
    stop(up, cv_command_fail(&table, 128 + number, "stopped by signal: %s", strsignal(number)));
  }
}

static void on_slow(void *data, const struct cv_why *why) {
  struct up *up = data;
  if (!up->is_stopping) {
    (void)fprintf(stderr, "crowdveil up: %s\n", why->text);
  }
}

static void on_failed(void *data, const struct cv_why *why) {
  struct up *up = data;
  up->needs_logs = up->needs_logs || !up->is_stopping;
  fail(up, why);
}

/* ---- the campaign ---- */

static void tell_kept(const struct up *up) {
  (void)fprintf(
      up->people,
      "\nStill running until Ctrl-C: broker on %s, third-party on %s, state in %s\n"
      "Try: crowdveil status --broker %s --broker-name " CV_PARTIES_BROKER " --tls-ca %s --tls-cert %s --tls-key %s\n",
      up->broker, up->thirdparty, cv_text_line(up->folder.path).text, up->broker, cv_text_line(up->requester.ca).text,
      cv_text_line(up->requester.cert).text, cv_text_line(up->requester.key).text);
  (void)fflush(up->people);
}

static void conclude(struct up *up) {
  (void)fprintf(up->people, "\n");
  cv_table_print(&up->outcome, up->people);
  cv_hindrance_print(&up->outcome.progress, up->outcome.name, "", up->people);
  if (up->settings.keep || up->settings.page) {
    tell_kept(up);
  } else {
    stop(up, up->status);
  }
}

static void on_finished(struct up *up, const struct cv_finished *finished) {
  const struct cv_outcome_known known = {.kind = up->prepared.kind,
                                         .spec = &up->prepared.file.spec,
                                         .name = up->prepared.name,
                                         .mean = up->prepared.truth,
                                         .file = &up->prepared,
                                         .is_seed_known = true};
  if (up->is_finished) {
    return; /* sent again after a reconnection */
  }
  if (finished->progress.arms != up->prepared.file.spec.arms ||
      cv_outcome_init(&up->outcome, finished, &known) != CV_OK) {
    struct cv_why why;
    (void)cv_fail(&why, CV_ERR_FORMAT, "the broker's result has %u items; expected %u", finished->progress.arms,
                  up->prepared.file.spec.arms);
    fail(up, &why);
    return;
  }
  up->is_finished = true;
  cv_joined_finished(&up->joined, finished);
  up->status = cv_launcher_end_status(finished->progress.end);
  cv_view_end(&up->view);
  if (!cv_outcome_needs_export(&up->outcome, cv_quality_adversary(up->prepared.source.quality))) {
    conclude(up);
  } else {
    const struct cv_order_frame request = {.kind = CV_ORDER_EXPORT, .as.campaign = finished->progress.campaign};
    cv_client_ask(&up->client, &request);
  }
}

static void on_part(struct up *up, const struct cv_part *part) {
  struct cv_why why;
  const struct cv_adversary *adversary = cv_quality_adversary(up->prepared.source.quality);
  if (!up->is_finished || up->outcome.is_exported) {
    return; /* sent again after a reconnection */
  }
  if (cv_outcome_take_part(&up->outcome, adversary, &up->export, part, &why) != CV_OK) {
    fail(up, &why);
  } else if (up->outcome.is_exported) {
    conclude(up);
  }
}

/* The co-broker's address; NULL without one. */
static const char *cobroker_of(const struct up *up) {
  return up->parties.is_two ? up->cobroker : NULL;
}

/* Before the workers start, of which none waits for another one to make it. */
static enum cv_err make_row_key(struct up *up, struct cv_why *why) {
  struct cv_ring ring = {.n = 0};
  enum cv_err err =
      cv_ring_create(cv_folder_file(&up->folder, CV_PARTIES_ROW_KEY), cv_clock_wall_ms() / 1000, &ring, why);
  cv_ring_fini(&ring);
  return err == CV_ERR_EXISTS ? CV_OK : err;
}

static enum cv_err start_workers(struct up *up, struct cv_why *why) {
  /* A seed drawn here must be handed to the workers, else each program would draw another one. */
  const struct cv_items *items = &up->prepared.file.items;
  bool from_file = up->settings.seed == CV_SEED_NONE && items->has_seed;
  const uint32_t programs = up->parties.gateways + up->parties.alone;
  struct cv_launcher_work work = {
      .broker = up->broker,
      .cobroker = cobroker_of(up),
      .campaign = up->file,
      .spec = &up->prepared.file.spec,
      .beside_micro = up->prepared.file.gold.gold.epsilon_micro,
      .remembers = up->prepared.source.persons.persons > 0,
      .shares_rows = up->prepared.source.print != 0 && cv_spec_is_local(&up->prepared.file.spec),
      .seed = from_file ? NULL : &up->prepared.seed};
  CV_TRY(work.shares_rows ? make_row_key(up, why) : CV_OK);
  for (uint32_t i = 1; i <= programs; i++) {
    struct cv_parties_label name = cv_parties_name(&up->parties, i);
    char file[64];
    (void)snprintf(file, sizeof(file), "%s.yaml", name.text);
    work.is_shown = up->settings.show_worker && i == programs; /* the last one, which is alone */
    CV_TRY(cv_parties_write_worker(&up->parties, i, &work, why));
    CV_TRY(
        cv_children_start(&up->children, name.text, "crowdveil-worker", cv_folder_file(&up->folder, file), false, why));
    if (work.is_shown) {
      cv_children_keep_private(&up->children);
    }
  }
  return CV_OK;
}

/* Workers start only now: if the broker refuses the campaign, its reason must be the only error. */
static void on_accepted(struct up *up, uint64_t campaign) {
  const struct cv_order_frame watch = {.kind = CV_ORDER_WATCH,
                                       .as.watch = {.campaign = campaign, .standings = up->view.is_terminal}};
  struct cv_why why;
  if (up->is_accepted) {
    return; /* sent again after a reconnection */
  }
  up->is_accepted = true;
  cv_client_ask(&up->client, &watch);
  if (start_workers(up, &why) != CV_OK) {
    fail(up, &why);
  }
}

static void on_standings(struct up *up, const struct cv_standings *standings) {
  if (!up->is_finished && cv_view_stand(&up->view, standings->standing, standings->standings) != CV_OK) {
    const struct cv_why why = {.text = "out of memory"};
    fail(up, &why);
  }
}

static void on_answer(void *data, const struct cv_order_frame *frame) {
  struct up *up = data;
  struct cv_why why;
  switch (frame->kind) {
    case CV_ORDER_ACCEPTED:
      on_accepted(up, frame->as.accepted.campaign);
      break;
    case CV_ORDER_PROGRESS:
      if (!up->is_finished) {
        cv_view_show(&up->view, &frame->as.progress, cv_clock_mono_ms());
        cv_joined_progress(&up->joined, &frame->as.progress);
      }
      break;
    case CV_ORDER_STANDINGS:
      on_standings(up, &frame->as.standings);
      break;
    case CV_ORDER_FINISHED:
      on_finished(up, &frame->as.finished);
      break;
    case CV_ORDER_PART:
      on_part(up, &frame->as.part);
      break;
    case CV_ORDER_ERROR:
      (void)cv_fail(&why, CV_ERR_DENIED, "the broker refuses: %s", frame->as.error);
      fail(up, &why);
      break;
    default:
      break;
  }
}

static enum cv_err submit(struct up *up, struct cv_why *why) {
  static char broker_name[] = CV_PARTIES_BROKER;
  static const struct cv_client_ops ops = {.answer = on_answer, .failed = on_failed};
  struct cv_order_frame frame = {
      .kind = CV_ORDER_SUBMIT,
      .as.submit = {.spec = up->prepared.file.spec, .gold = up->prepared.file.gold.gold},
  };
  struct cv_drbg drbg;
  cv_parties_files(&up->parties, "requester-local", &up->requester);
  up->asking = (struct cv_client_settings){
      .broker = up->broker, .ca = up->requester.ca, .cert = up->requester.cert, .key = up->requester.key};
  up->asking.broker_name = broker_name;
  CV_TRY(cv_client_start(&up->client, &up->loop, &up->asking, PATIENCE_MS, &ops, up, why));
  /* The key makes Submit idempotent: the client sends it again after a reconnection. */
  cv_drbg_init(&drbg);
  for (size_t i = 0; i < CV_CLIENT_KEY_BYTES; i++) {
    frame.as.submit.client_key[i] = (uint8_t)cv_rng_u64(&drbg.rng);
  }
  cv_drbg_fini(&drbg);
  cv_client_ask(&up->client, &frame);
  return CV_OK;
}

/* ---- starting third-party and brokers ---- */

static enum cv_err start_thirdparty(struct up *up, struct cv_why *why) {
  CV_TRY(cv_parties_write_thirdparty(&up->parties, why));
  return cv_children_start(&up->children, "thirdparty", "crowdveil-thirdparty",
                           cv_folder_file(&up->folder, "thirdparty.yaml"), true, why);
}

static struct cv_launcher_risks risks_of(const struct up *up) {
  return (struct cv_launcher_risks){
      .spec = &up->prepared.file.spec,
      .token_micro = cv_exposure_token_micro(&up->prepared.file),
      .noise_seed = up->settings.noise_seed == CV_SEED_NONE ? NULL : &up->settings.noise_seed,
      .mechanisms = up->settings.unsafe_mechanisms};
}

static enum cv_err start_cobroker(struct up *up, struct cv_why *why) {
  const struct cv_launcher_risks risks = risks_of(up);
  CV_TRY(cv_parties_write_cobroker(&up->parties, &risks, why));
  return cv_children_start(&up->children, "cobroker", "crowdveil-cobroker",
                           cv_folder_file(&up->folder, "cobroker.yaml"), true, why);
}

static enum cv_err start_broker(struct up *up, struct cv_why *why) {
  const struct cv_launcher_risks risks = risks_of(up);
  CV_TRY(cv_parties_write_broker(&up->parties, up->thirdparty, cobroker_of(up), &risks, why));
  return cv_children_start(&up->children, "broker", "crowdveil-broker", cv_folder_file(&up->folder, "broker.yaml"),
                           true, why);
}

static void on_ready(void *data, const char *name, const char *address) {
  struct up *up = data;
  struct cv_why why;
  enum cv_err err;
  /* The broker's configuration needs the addresses of the others, so they start one after the other. */
  if (strcmp(name, "thirdparty") == 0) {
    (void)snprintf(up->thirdparty, sizeof(up->thirdparty), "%s", address);
    cv_joined_watch(&up->joined);
    err = up->parties.is_two ? start_cobroker(up, &why) : start_broker(up, &why);
  } else if (strcmp(name, "cobroker") == 0) {
    (void)snprintf(up->cobroker, sizeof(up->cobroker), "%s", address);
    err = start_broker(up, &why);
  } else {
    (void)snprintf(up->broker, sizeof(up->broker), "%s", address);
    err = submit(up, &why);
  }
  if (err != CV_OK) {
    fail(up, &why);
  }
}

/* ---- preparation ---- */

/* The number of workers: the persons of a data file; else --workers; else as many as the campaign can use. */
static uint64_t workers_needed(const struct up *up) {
  const struct cv_spec *spec = &up->prepared.file.spec;
  uint64_t persons = up->prepared.source.persons.persons;
  if (persons > 0 && (up->settings.workers == 0 || up->settings.workers > persons)) {
    return persons;
  }
  if (up->settings.workers > 0) {
    return up->settings.workers;
  }
  if (spec->worker != NULL) { /* a recruitment: ids up to the largest one that can be hired */
    uint64_t last = 1;
    for (uint32_t i = 0; i < spec->arms; i++) {
      last = spec->worker[i] > last ? spec->worker[i] : last;
    }
    return last;
  }
  /* Each answers about an item once: an item may need as many workers as there are tokens. */
  bool is_once = cv_spec_questions(spec, up->prepared.file.gold.gold.items) > 0;
  uint64_t each = is_once ? 1 : spec->tokens_per_worker, needed = (spec->tokens + each - 1) / each;
  return needed < WORKERS_MAX ? needed : WORKERS_MAX;
}

static void tell_programs(const struct up *up) {
  const struct cv_parties *parties = &up->parties;
  uint64_t shared = parties->workers - parties->alone;
  (void)fprintf(up->people, "%s %s on %u %s", cv_count_text(shared).text, shared == 1 ? "worker" : "workers",
                parties->gateways, parties->gateways == 1 ? "gateway" : "gateways");
  if (parties->alone > 0) {
    (void)fprintf(up->people, " and %u on %s own", parties->alone, parties->alone == 1 ? "its" : "their");
  }
  (void)fprintf(up->people, ", state in %s%s\n", cv_text_line(up->folder.path).text,
                up->folder.is_temporary && !up->settings.keep && !up->settings.page ? " (temporary)" : "");
}

static void tell_plan(const struct up *up) {
  const struct cv_spec *spec = &up->prepared.file.spec;
  (void)fprintf(up->people, "campaign %s: %u %s, policy %s, mechanism %s", cv_text_shown(spec->name).text, spec->arms,
                spec->worker == NULL ? "items" : "workers", spec->policy.name, spec->mechanism.name);
  if (spec->epsilon_micro > 0) {
    (void)fprintf(up->people, " with epsilon %g", (double)spec->epsilon_micro / (double)CV_MICRO);
  }
  if (cv_spec_is_local(spec)) {
    (void)fprintf(up->people, ", privatizer %s", spec->privatizer.name);
  }
  (void)fprintf(up->people, "%s, seed %" PRIu64 "\n", up->parties.is_two ? ", two brokers" : "", up->prepared.seed);
  tell_programs(up);
  struct cv_exposure exposure;
  if (cv_exposure_plan(&up->prepared, cv_exposure_token_micro(&up->prepared.file), &exposure) == CV_OK) {
    cv_exposure_print(&exposure, "", up->people);
  }
  cv_unit_print_notes(&up->prepared, up->people);
  if (up->settings.show_worker) {
    (void)fprintf(up->people, "UNSAFE: the page shows the score and the token of one worker\n");
  }
  if (up->settings.noise_seed != CV_SEED_NONE) {
    (void)fprintf(up->people, "UNSAFE: the noise is seeded and protects nobody\n");
  }
  (void)fflush(up->people);
}

static void start_signals(struct up *up) {
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
  for (size_t i = 0; i < CV_COUNT(numbers); i++) {
    (void)uv_signal_init(&up->loop, &up->signal[i]);
    up->signal[i].data = up;
    (void)uv_signal_start(&up->signal[i], on_signal, numbers[i]);
  }
}

/* Reads the campaign, makes folder and certificates. Starts no program: errors here are wrong usage, exit status 2. */
static enum cv_err prepare(struct up *up, const char *file, struct cv_why *why) {
  CV_TRY(cv_launcher_prepare_for(&table, file, up->settings.seed, (uint32_t)up->settings.brokers, &up->prepared, why));
  CV_TRY(cv_score_source_needs_means(&up->prepared.file, why));
  if (realpath(file, up->file) == NULL) {
    return cv_fail(why, CV_ERR_IO, "%s: cannot resolve the path", file);
  }
  const bool shows = up->settings.show_worker;
  uint64_t workers = workers_needed(up) + shows, alone = up->settings.worker_processes + shows;
  /* An additional worker of a recruitment or of a data file's persons would never be asked. */
  if (shows &&
      (!up->settings.page || up->prepared.file.spec.worker != NULL || up->prepared.source.persons.persons > 0)) {
    return cv_fail(why, CV_ERR_INVALID,
                   "--unsafe-show-worker shows one more simulated worker on the page; expected --page, and a campaign"
                   " that neither hires workers nor reads persons from a file");
  }
  if (alone > 0 && alone >= workers) {
    return cv_fail(why, CV_ERR_INVALID,
                   "--worker-processes %" PRIu64 " of %s %s leaves no worker for a gateway; expected fewer", alone,
                   cv_count_text(workers).text, workers == 1 ? "worker" : "workers");
  }
  CV_TRY(cv_folder_make(up->settings.state, &up->folder, why));
  up->parties = (struct cv_parties){
      .folder = &up->folder,
      .workers = workers,
      .before = up->prepared.source.persons.persons > 0 ? up->prepared.file.items.csv.first_worker - 1 : 0,
      .alone = (uint32_t)alone,
      .is_two = up->prepared.file.spec.brokers == 2,
      .gateways = (uint32_t)(up->settings.gateways < workers - alone ? up->settings.gateways : workers - alone)};
  return cv_parties_make(&up->parties, why);
}

/* Before any program: a port in use is wrong usage. */
static enum cv_err open_page(struct up *up, struct cv_why *why) {
  struct cv_joined *joined = &up->joined;
  struct cv_drbg drbg;
  if (!up->settings.page) {
    return CV_OK;
  }
  CV_TRY(cv_parties_socket(&up->parties, "thirdparty/thirdparty.sock", joined->thirdparty, sizeof(joined->thirdparty),
                           why));
  CV_TRY(cv_parties_socket(&up->parties, "broker/broker.sock", joined->broker, sizeof(joined->broker), why));
  if (up->parties.is_two) {
    CV_TRY(cv_parties_socket(&up->parties, "cobroker/cobroker.sock", joined->cobroker, sizeof(joined->cobroker), why));
  }
  cv_drbg_init(&drbg);
  enum cv_err err = cv_joined_open(joined, &up->loop, &up->prepared, up->settings.page_port, &drbg.rng, why);
  cv_drbg_fini(&drbg);
  if (err == CV_OK) {
    cv_joined_say(joined, up->people);
    (void)fflush(up->people);
  }
  return err;
}

static void on_shown(void *data, const char *line) {
  struct up *up = data;
  cv_joined_shown(&up->joined, line);
}

static void run(struct up *up) {
  static const struct cv_children_ops ops = {
      .line = on_shown, .ready = on_ready, .slow = on_slow, .failed = on_failed, .gone = on_gone};
  struct cv_why why;
  if (cv_loop_open(&up->loop, &why) != CV_OK || cv_loop_start_threads(&up->loop, &why) != CV_OK) {
    up->status = cv_command_fail(&table, 1, "%s", why.text);
    return;
  }
  uv_disable_stdio_inheritance();
  cv_children_init(&up->children, &up->loop, up->folder.path, &ops, up);
  start_signals(up); /* before the first child, so that no signal leaves one behind */
  cv_view_init(&up->view, up->people);
  cv_view_know(&up->view, up->prepared.kind, up->prepared.file.spec.epsilon_micro, up->prepared.name);
  tell_plan(up);
  if (open_page(up, &why) != CV_OK || start_thirdparty(up, &why) != CV_OK) {
    fail(up, &why);
  }
  (void)uv_run(&up->loop, UV_RUN_DEFAULT);
  cv_client_fini(&up->client);
  cv_joined_fini(&up->joined);
  cv_view_fini(&up->view);
  (void)uv_loop_close(&up->loop);
}

int cv_launcher_up(int argc, char **argv) {
  static struct up up;
  const char *words[CV_WORDS_MAX] = {0};
  struct cv_why why;
  up.settings.seed = up.settings.noise_seed = CV_SEED_NONE;
  int status = cv_command_options(&table, argc, argv, 1, 1, words, &up.settings);
  if (status < 0) {
    up.people = up.settings.json ? stderr : stdout;
    if (prepare(&up, words[0], &why) != CV_OK) {
      status = cv_command_fail(&table, 2, "%s", why.text);
    } else {
      run(&up);
      status = up.status;
    }
  }
  if (up.is_finished && up.settings.json) {
    cv_result_print_json(&up.outcome, up.prepared.file.spec.policy.name);
  }
  if (up.folder.is_temporary && !up.needs_logs) {
    cv_folder_remove(&up.folder);
  }
  cv_outcome_fini(&up.outcome);
  cv_export_fini(&up.export);
  cv_prepared_fini(&up.prepared);
  cv_config_fini(&table, &up.settings);
  return status;
}
