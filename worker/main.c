/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil-worker: reads the settings, then runs the worker's shell until a signal stops it. */
#include <stdlib.h>

#include "common/base/mechanisms.h"
#include "common/crypto/crypto.h"
#include "worker/shell.h"
#include "worker/store.h"
#include "worker/works.h"

#define AT(field) offsetof(struct cv_worker_settings, field)

static const struct cv_config_rule rules[] = {
    {.key = "broker",
     .type = CV_CONFIG_ADDRESSES,
     .offset = AT(broker),
     .fallback = "127.0.0.1:7401",
     .help = "address of the broker, or those of its processes, of which one is active"},
    {.key = "broker_name",
     .type = CV_CONFIG_PARTY,
     .offset = AT(broker_name),
     .required = true,
     .help = "name that the broker's certificate must have"},
    {.key = "cobroker",
     .type = CV_CONFIG_TEXT,
     .offset = AT(cobroker),
     .help = "HOST:PORT of the co-broker; with accept.pairs only"},
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
    {.key = "row_key",
     .type = CV_CONFIG_PATH,
     .offset = AT(row_key),
     .help =
         "file of the key from which the order of a data file's rows and how each is randomized follow, made if it is "
         "missing; several workers with one data file have the same key (default: one in the state folder)"},
    {.key = "part",
     .type = CV_CONFIG_TEXT,
     .offset = AT(part),
     .help =
         "K of N: this worker has part K of the rows of its data files, and N - 1 others have the rest, so that no row "
         "leaves twice although their keys differ (default: all rows)"},
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
     .fallback = "1",
     .help = "largest epsilon to accept"},
    {.key = "accept.delta",
     .type = CV_CONFIG_REAL,
     .offset = AT(accept_delta),
     .low = 0,
     .high = 1,
     .fallback = "0",
     .help = "largest delta of a privatizer to accept: the chance that a token reveals more than epsilon allows"},
    {.key = "accept.pairs",
     .type = CV_CONFIG_TEXT,
     .offset = AT(accept_pairs),
     .help =
         "pairs of brokers whose campaigns with two brokers to serve, and then no other campaigns: BROKER+COBROKER, "
         "the fingerprints of their keys, separated by commas (default: only campaigns with one broker)"},
    {.key = "accept.tokens",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(accept_tokens),
     .low = 0,
     .high = UINT32_MAX,
     .fallback = "1",
     .help = "largest number of tokens of a worker over all campaigns, ever; 0: no limit"},
    {.key = "state",
     .type = CV_CONFIG_PATH,
     .offset = AT(state),
     .help =
         "folder of the record of given tokens and rows, which a restart needs; required with a limit of tokens, and "
         "with a data file behind a privatizer, with items.worker, or without a seed"},
    {.key = "exit_when_done",
     .type = CV_CONFIG_BOOL,
     .offset = AT(exit_when_done),
     .fallback = "false",
     .help = "exit when all campaigns have ended or every worker has given its tokens"},
    {.key = "exec",
     .type = CV_CONFIG_TEXT,
     .offset = AT(exec),
     .help =
         "program, with arguments, that gives the scores: one line of JSON in, one score out; the campaign file then "
         "only names the items"},
    {.key = "exec_processes",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(exec_processes),
     .low = 1,
     .high = CV_SPAWNER_SLOTS_MAX,
     .fallback = "1",
     .help = "how many of these programs run at a time"},
    {.key = "exec_ahead",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(exec_ahead),
     .low = 1,
     .high = 64,
     .fallback = "1",
     .help = "largest number of questions that one of them has at a time"},
    {.key = "exec_timeout",
     .type = CV_CONFIG_TIME,
     .offset = AT(exec_timeout_ms),
     .low = 10,
     .high = 86400000,
     .fallback = "60s",
     .help = "longest silence of a program that has a question, before it is killed and started again"},
    {.key = "exec_user",
     .type = CV_CONFIG_TEXT,
     .offset = AT(exec_user),
     .help = "user that the programs run as, if started as root (default: that of the worker)"},
    {.key = "form",
     .type = CV_CONFIG_TEXT,
     .offset = AT(form.listen),
     .help =
         "HOST:PORT of the form in which people give the scores, on this machine only; port 0 lets the system choose "
         "(default: off)"},
    {.key = "form_hosts",
     .type = CV_CONFIG_TEXT,
     .offset = AT(form.hosts),
     .help = "names by which browsers find the form, for a reverse proxy or a container; it may then listen on any "
             "address"},
    {.key = "form_tls",
     .type = CV_CONFIG_BOOL,
     .offset = AT(form.has_tls),
     .fallback = "false",
     .help = "browsers reach the form through a reverse proxy with TLS: links begin with https, cookies need it"},
    {.key = "form_proxy",
     .type = CV_CONFIG_TEXT,
     .offset = AT(form.proxy),
     .help = "IP addresses of the reverse proxy, a list: its X-Forwarded-For or Forwarded says whose request it is "
             "(default: with form_tls, this machine's)"},
    {.key = "form_people",
     .type = CV_CONFIG_PATH,
     .offset = AT(form.people),
     .help = "file of the people who may open the form, a line with number and token each; --form-invite adds some"},
    {.key = "form_steps",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(form.steps),
     .low = 1,
     .high = 1000,
     .fallback = "10",
     .help = "highest score that a person can give in the form; the lowest is 0"},
    {.key = "form_invite",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(form_invite),
     .low = 1,
     .high = CV_INVITED_MAX,
     .is_option = true,
     .help = "add so many people to form_people, print the links of all, and exit"},
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
  struct cv_works_ask ask;
  struct cv_duo *pairs;
  size_t count;
  (void)word;
  CV_TRY(cv_worker_read_pairs(worker, &pairs, &count, why));
  free(pairs);
  CV_TRY(cv_worker_ask_works(worker, &ask, why));
  cv_drbg_init(&drbg);
  enum cv_err err = cv_works_load(worker->campaign, &ask, &drbg.rng, &works, why);
  cv_drbg_fini(&drbg);
  if (err == CV_OK) {
    cv_works_fini(&works);
  }
  return err == CV_OK ? cv_worker_check_state(worker, why) : err;
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
  static const struct cv_daemon_program program = {.table = &table,
                                                   .common = AT(daemon),
                                                   .instead = cv_worker_invite,
                                                   .check_copy = cv_worker_check_copy,
                                                   .run = run};
  struct cv_worker_settings settings = {.seed = CV_WORKS_SEED_NONE};
  return cv_daemon_main(&program, argc, argv, &settings);
}
