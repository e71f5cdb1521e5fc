/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil-worker: reads the settings, then runs the worker's shell until a signal stops it. */
#include "common/base/mechanisms.h"
#include "common/crypto/crypto.h"
#include "worker/shell.h"
#include "worker/store.h"
#include "worker/works.h"

#define AT(field) offsetof(struct cv_worker_settings, field)

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
     .help = "name that the broker's certificate must have"},
    {.key = "campaign",
     .type = CV_CONFIG_PATH,
     .offset = AT(campaign),
     .required = true,
     .help = "campaign file with the source of the scores, or a folder of campaign files"},
    {.key = "requesters",
     .type = CV_CONFIG_PARTIES,
     .offset = AT(requesters),
     .required = true,
     .help = "names of the requesters whose campaigns to serve"},
    CV_DAEMON_RULES(AT(daemon)),
    {.key = "seed",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(seed),
     .low = 0,
     .high = 9e15,
     .help = "seed of the items and scores (default: the campaign file's, else random)"},
    {.key = "concurrency",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(concurrency),
     .low = 1,
     .high = 8192,
     .fallback = "2048",
     .help = "largest number of assignments at a time"},
    {.key = "arrival_rate",
     .type = CV_CONFIG_REAL,
     .offset = AT(arrival_rate),
     .low = 0,
     .high = 1e9,
     .fallback = "0",
     .help = "workers that arrive per second; 0: as many as the broker accepts"},
    {.key = "accept.privatizers",
     .type = CV_CONFIG_WORDS,
     .offset = AT(accept_privatizers),
     .choices = cv_local_names,
     .fallback = "none",
     .help = "privatizers to accept, separated by commas"},
    {.key = "accept.mechanisms",
     .type = CV_CONFIG_WORDS,
     .offset = AT(accept_mechanisms),
     .choices = cv_traits_names,
     .fallback = "hybrid",
     .help = "mechanisms to accept, separated by commas"},
    {.key = "accept.epsilon",
     .type = CV_CONFIG_REAL,
     .offset = AT(accept_epsilon),
     .low = 0,
     .high = 4000,
     .fallback = "10",
     .help = "largest epsilon to accept"},
    {.key = "accept.delta",
     .type = CV_CONFIG_REAL,
     .offset = AT(accept_delta),
     .low = 0,
     .high = 1,
     .fallback = "0",
     .help = "largest delta of a privatizer to accept: the chance that a token reveals more than epsilon allows"},
    {.key = "accept.tokens",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(accept_tokens),
     .low = 0,
     .high = UINT32_MAX,
     .help = "largest number of tokens of a worker over all campaigns; 0: no limit (default: 1 if a privatizer other "
             "than none is accepted, else 0)"},
    {.key = "state",
     .type = CV_CONFIG_PATH,
     .offset = AT(state),
     .help = "folder of the record of given tokens, which a restart needs; required with a limit of tokens and with "
             "items.worker of a data file"},
    {.key = "exit_when_done",
     .type = CV_CONFIG_BOOL,
     .offset = AT(exit_when_done),
     .fallback = "false",
     .help = "exit when all campaigns have ended or every worker has given its tokens"},
    {.key = "unsafe_show",
     .type = CV_CONFIG_BOOL,
     .offset = AT(unsafe_show),
     .fallback = "false",
     .help = "UNSAFE, for teaching: print each score and token on standard output, for everybody who reads it"},
};

static enum cv_err check(const void *settings, const char *word, struct cv_why *why) {
  const struct cv_worker_settings *worker = settings;
  struct cv_works works;
  struct cv_drbg drbg;
  (void)word;
  cv_drbg_init(&drbg);
  enum cv_err err = cv_works_load(worker->campaign, worker->seed, &drbg.rng, &works, why);
  cv_drbg_fini(&drbg);
  if (err == CV_OK) {
    cv_works_fini(&works);
  }
  return err;
}

static const struct cv_config_table table = {
    .program = "crowdveil-worker",
    .about = "scores assigned items and sends the privatized scores to the broker as tokens",
    .rules = rules,
    .count = CV_COUNT(rules),
    .check = check,
};

static int run(const void *settings) {
  return cv_worker_run(settings);
}

int main(int argc, char **argv) {
  static const struct cv_daemon_program program = {
      .table = &table, .common = AT(daemon), .check_copy = cv_worker_check_copy, .run = run};
  struct cv_worker_settings settings = {.seed = CV_WORKS_SEED_NONE, .accept_tokens = CV_ACCEPT_TOKENS_UNSET};
  return cv_daemon_main(&program, argc, argv, &settings);
}
