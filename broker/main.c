/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil-broker: reads the settings and runs the shell until a signal stops it. */
#include <stdio.h>
#include <stdlib.h>

#include "broker/both/rotate.h"
#include "broker/examine.h"
#include "broker/sealing.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/config/config.h"

#define AT(field) offsetof(struct cv_broker_settings, field)

static const struct cv_config_rule rules[] = {
    {.key = "listen",
     .type = CV_CONFIG_TEXT,
     .offset = AT(listen),
     .fallback = "127.0.0.1:7401",
     .help = "HOST:PORT for workers, gateways and requesters; port 0 lets the system choose"},
    {.key = "thirdparty",
     .type = CV_CONFIG_TEXT,
     .offset = AT(thirdparty),
     .fallback = "127.0.0.1:7402",
     .help = "HOST:PORT of the third-party"},
    {.key = "thirdparty_name",
     .type = CV_CONFIG_PARTY,
     .offset = AT(thirdparty_name),
     .required = true,
     .help = "name that the third-party's certificate must have"},
    {.key = "cobroker",
     .type = CV_CONFIG_TEXT,
     .offset = AT(cobroker),
     .fallback = "",
     .help = "HOST:PORT of the co-broker; without it, campaigns with two brokers are refused"},
    {.key = "cobroker_key",
     .type = CV_CONFIG_TEXT,
     .offset = AT(cobroker_key),
     .fallback = "",
     .help = "fingerprint of the co-broker's key, 64 hexadecimal digits; required with cobroker"},
    {.key = "state",
     .type = CV_CONFIG_PATH,
     .offset = AT(state),
     .help = "folder of the database; required unless the state is on a server (store)"},
    {.key = "store",
     .type = CV_CONFIG_TEXT,
     .offset = AT(store),
     .help =
         "in place of state: postgresql://USER@HOST:PORT/DATABASE?sslrootcert=FILE, a database that several brokers "
         "share, of which one is active; with the program crowdveil-broker-postgresql"},
    {.key = "store_durability",
     .type = CV_CONFIG_WORD,
     .offset = AT(store_durability),
     .choices = CV_BROKER_DURABILITIES,
     .fallback = "replicated",
     .help = "replicated: serve only while a synchronous replica of the server has every commit; one-server: without"},
    {.key = "anchor",
     .type = CV_CONFIG_PATH,
     .offset = AT(anchor),
     .required = true,
     .help = "file outside the state folder with the last commit, to detect an older copy of the database"},
    {.key = "seal_key",
     .type = CV_CONFIG_PATH,
     .offset = AT(seal_key),
     .required = true,
     .help = "file with the key that encrypts stored sums; made at the first start"},
    CV_DAEMON_RULES(AT(daemon)),
    {.key = "limits.epsilon",
     .type = CV_CONFIG_REAL,
     .offset = AT(limit_epsilon),
     .low = 1e-6,
     .high = 4000,
     .fallback = "1",
     .help = "largest epsilon of a campaign"},
    {.key = "limits.delta",
     .type = CV_CONFIG_REAL,
     .offset = AT(limit_delta),
     .low = 0,
     .high = 1,
     .fallback = "0",
     .help = "largest delta of a campaign's privatizer: the share of workers that it may leave unprotected"},
    {.key = "limits.trusted_thirdparty",
     .type = CV_CONFIG_BOOL,
     .offset = AT(trusted_thirdparty),
     .fallback = "false",
     .help = "accept campaigns with exact sums for the third-party, which protect no worker"},
    {.key = "limits.worker_epsilon",
     .type = CV_CONFIG_REAL,
     .offset = AT(limit_worker_epsilon),
     .low = 1e-6,
     .high = 4000,
     .fallback = "10",
     .help = "largest epsilon of a worker over all campaigns"},
    {.key = "limits.release_tokens",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(limit_release_tokens),
     .low = 1,
     .high = 1e6,
     .fallback = "20",
     .help = "smallest number of tokens in a release"},
    {.key = "limits.arms",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(limit_arms),
     .low = 1,
     .high = CV_ARMS_MAX,
     .fallback = "4096",
     .help = "largest number of arms of a campaign"},
    {.key = "limits.campaigns",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(limit_campaigns),
     .low = 1,
     .high = 1000,
     .fallback = "16",
     .help = "largest number of open campaigns of a requester"},
    {.key = "limits.submits",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(limit_submits),
     .low = 1,
     .high = 1e6,
     .fallback = "60",
     .help = "campaigns that a requester may submit per minute; at most limits.kept"},
    {.key = "limits.kept",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(limit_kept),
     .low = 1,
     .high = 1e6,
     .fallback = "1000",
     .help = "campaigns of a requester that are kept; a new one replaces the one that ended first"},
    {.key = "limits.retention",
     .type = CV_CONFIG_TIME,
     .offset = AT(limit_retention_ms),
     .low = 0,
     .high = 3.2e12,
     .fallback = "none",
     .help = "time that an ended campaign is kept, such as 90d; none: no time limit"},
    {.key = "limits.tokens",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(limit_tokens),
     .low = 1,
     .high = 1e12,
     .fallback = "10000000000",
     .help = "largest token limit of a campaign"},
    {.key = "limits.chunks",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(limit_chunks),
     .low = 1,
     .high = 1e6,
     .fallback = "4096",
     .help = "4 KiB chunks of memory for the workers of a campaign; one certificate can use half of them"},
    {.key = "limits.queue",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(limit_queue),
     .low = 1,
     .high = 1e6,
     .fallback = "16384",
     .help = "largest number of waiting workers per connection"},
    {.key = "limits.connections",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(connections),
     .low = 1,
     .high = 65536,
     .fallback = "1024",
     .help = "largest number of connections"},
    {.key = "limits.handshakes",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(handshakes),
     .low = 1,
     .high = 65536,
     .fallback = "128",
     .help = "largest number of unfinished TLS handshakes; beyond it the oldest of the busiest address is closed"},
    {.key = "limits.hellos",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(hellos),
     .low = 1,
     .high = 1e6,
     .fallback = "200",
     .help = "TLS handshakes per second and address (IPv6: /64); of all new addresses together four times as many"},
    {.key = "lease",
     .type = CV_CONFIG_TIME,
     .offset = AT(lease_ms),
     .low = 100,
     .high = 3600000,
     .fallback = "5s",
     .help = "time that a worker has to answer an assignment"},
    {.key = "unsafe_mechanisms",
     .type = CV_CONFIG_BOOL,
     .offset = AT(unsafe_mechanisms),
     .fallback = "false",
     .help = "UNSAFE, for experiments: accept mechanisms that exceed their stated epsilon"},
    {.key = "unsafe_noise_seeded",
     .type = CV_CONFIG_BOOL,
     .offset = AT(noise_seeded),
     .fallback = "false",
     .help = "UNSAFE, for tests: use reproducible noise, which protects nobody"},
    {.key = "unsafe_noise_seed",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(noise_seed),
     .low = 0,
     .high = 9e15,
     .fallback = "0",
     .help = "UNSAFE, for tests: the seed of the reproducible noise"},
    {.key = "examine",
     .type = CV_CONFIG_BOOL,
     .offset = AT(examine),
     .fallback = "false",
     .is_option = true,
     .help = "check the state of the stopped broker, print one line per finding, and exit"},
    {.key = "migrate",
     .type = CV_CONFIG_TEXT,
     .offset = AT(migrate),
     .is_option = true,
     .help =
         "URI of the owner of the database in store: make its tables, or change those of an older version, and exit"},
    {.key = "recover",
     .type = CV_CONFIG_BOOL,
     .offset = AT(recover),
     .fallback = "false",
     .is_option = true,
     .help = "recover a stopped broker whose database is outdated, and exit"},
    {.key = "seal",
     .type = CV_CONFIG_WORD,
     .offset = AT(seal),
     .choices = CV_ROTATE_WORDS,
     .fallback = "run",
     .is_option = true,
     .help = "status: say which key of seal_key wraps the stored keys, and exit; rotate: replace it, and exit"},
    {.key = "recover_thirdparty",
     .type = CV_CONFIG_PATH,
     .offset = AT(recover_thirdparty),
     .is_option = true,
     .help = "with --recover: file with the output of crowdveil-thirdparty --examine"},
    {.key = "recover_cobroker",
     .type = CV_CONFIG_PATH,
     .offset = AT(recover_cobroker),
     .is_option = true,
     .help = "with --recover: file with the output of crowdveil-cobroker --examine"},
    {.key = "recover_anchor",
     .type = CV_CONFIG_TEXT,
     .offset = AT(recover_anchor),
     .is_option = true,
     .repeats = true,
     .help = "with --recover and store: file with the anchor of another broker; may be repeated"},
    {.key = "lost",
     .type = CV_CONFIG_BOOL,
     .offset = AT(lost),
     .fallback = "false",
     .is_option = true,
     .help = "with --recover: recover although database, anchor or key are lost"},
};

static enum cv_err check(const void *settings, const char *word, struct cv_why *why) {
  struct cv_digest key;
  struct cv_remote_needs needs;
  CV_TRY(cv_broker_settings_store(settings, &needs, why));
  return cv_broker_settings_cobroker(settings, &key, why);
}

static const struct cv_config_table table = {
    .program = CV_BROKER_PROGRAM,
    .about = "collects tokens from workers and releases only noisy sums to the third-party",
    .rules = rules,
    .count = CV_COUNT(rules),
    .check = check,
};

/* Warns of settings that weaken the protection of workers. */
static void warn(const struct cv_broker_settings *settings) {
  if (settings->trusted_thirdparty) {
    cv_log(CV_LOG_WARN,
           "limits.trusted_thirdparty: this broker accepts campaigns with exact sums, which protect no worker");
  }
  if (settings->unsafe_mechanisms) {
    cv_log(CV_LOG_WARN, "unsafe_mechanisms: this broker accepts mechanisms that protect less than their epsilon");
  }
  if (settings->noise_seeded) {
    cv_log(CV_LOG_WARN, "noise is seeded: this broker protects no worker");
  }
}

/* A new store's master key, unless there is a file: all brokers of the store have to have the same. */
static enum cv_err make_key(const char *path, struct cv_why *why) {
  struct cv_ring ring;
  enum cv_err err = cv_ring_create(path, cv_clock_wall_ms() / 1000, &ring, why);
  if (err == CV_ERR_EXISTS) {
    return CV_OK;
  }
  CV_TRY(err);
  (void)printf("%s: new key; copy it to the machine of each broker of this store\n", cv_text_line(path).text);
  cv_ring_fini(&ring);
  return CV_OK;
}

static int migrate(const struct cv_broker_settings *settings) {
  const struct cv_remote_ops *remote = CV_BROKER_REMOTE;
  struct cv_why done, why = {.text = "--migrate: the state is in a file; expected the setting store"};
  bool is_new = false;
  if (settings->store == NULL || remote->migrate(settings->migrate, settings->store, &is_new, &done, &why) != CV_OK ||
      (is_new && make_key(settings->seal_key, &why) != CV_OK)) {
    cv_log(CV_LOG_ERROR, "%s", why.text);
    return 1;
  }
  (void)printf("%s\n", done.text);
  return 0;
}

/* Examines or recovers the state of a stopped broker, or looks after its master keys. */
static int instead(const void *settings) {
  const struct cv_broker_settings *own = settings;
  if (own->migrate != NULL) {
    return migrate(own);
  }
  return own->recover                 ? cv_broker_recover_state(own)
         : own->examine               ? cv_broker_examine(own)
         : own->seal != CV_ROTATE_RUN ? cv_broker_seal(own)
                                      : -1;
}

static int run(const void *settings) {
  warn(settings);
  return cv_broker_run(settings);
}

int main(int argc, char **argv) {
  static const struct cv_daemon_program program = {
      .table = &table, .common = AT(daemon), .instead = instead, .check_copy = cv_broker_check_copy, .run = run};
  struct cv_broker_settings settings = {0};
  return cv_daemon_main(&program, argc, argv, &settings);
}
