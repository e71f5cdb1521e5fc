/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil-cobroker: reads the settings and runs the shell until a signal stops it. */
#include <stdio.h>
#include <stdlib.h>

#include "broker/both/rotate.h"
#include "cobroker/examine.h"
#include "cobroker/sealing.h"
#include "common/base/log.h"
#include "common/config/config.h"

#define AT(field) offsetof(struct cv_cobroker_settings, field)

static const struct cv_config_rule rules[] = {
    {.key = "listen",
     .type = CV_CONFIG_TEXT,
     .offset = AT(listen),
     .fallback = "127.0.0.1:7403",
     .help = "HOST:PORT for the broker, workers and gateways; port 0 lets the system choose"},
    {.key = "broker_name",
     .type = CV_CONFIG_PARTY,
     .offset = AT(broker_name),
     .required = true,
     .help = "name that the broker's certificate must have"},
    {.key = "broker_key",
     .type = CV_CONFIG_TEXT,
     .offset = AT(broker_key),
     .required = true,
     .help = "key that the broker's certificate must have: SHA-256 of its public key, 64 hexadecimal digits"},
    {.key = "state", .type = CV_CONFIG_PATH, .offset = AT(state), .required = true, .help = "folder of the database"},
    {.key = "anchor",
     .type = CV_CONFIG_PATH,
     .offset = AT(anchor),
     .required = true,
     .help = "file outside the state folder with the last commit, to detect an older copy of the database"},
    {.key = "seal_key",
     .type = CV_CONFIG_PATH,
     .offset = AT(seal_key),
     .required = true,
     .help = "file with the key that encrypts stored shares of sums; made at the first start"},
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
     .high = 1e5,
     .fallback = "256",
     .help = "largest number of open campaigns"},
    {.key = "limits.submits",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(limit_submits),
     .low = 1,
     .high = 1e6,
     .fallback = "600",
     .help = "campaigns that the broker may open per minute"},
    {.key = "limits.kept",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(limit_kept),
     .low = 1,
     .high = 1e6,
     .fallback = "10000",
     .help = "records of ended campaigns that are kept; no campaign with a lower number than those is opened any more"},
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
    {.key = "limits.sessions",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(limit_sessions),
     .low = 1,
     .high = 1e7,
     .fallback = "65536",
     .help = "largest number of sessions of workers and gateways"},
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
     .help = "check the state of the stopped co-broker, print one line per finding, and exit"},
    {.key = "recover",
     .type = CV_CONFIG_BOOL,
     .offset = AT(recover),
     .fallback = "false",
     .is_option = true,
     .help = "recover a stopped co-broker whose database is outdated, and exit"},
    {.key = "seal",
     .type = CV_CONFIG_WORD,
     .offset = AT(seal),
     .choices = CV_ROTATE_WORDS,
     .fallback = "run",
     .is_option = true,
     .help = "status: say which key of seal_key wraps the stored keys, and exit; rotate: replace it, and exit"},
    {.key = "recover_broker",
     .type = CV_CONFIG_PATH,
     .offset = AT(recover_broker),
     .is_option = true,
     .help = "with --recover: file with the output of crowdveil-broker --examine"},
    {.key = "lost",
     .type = CV_CONFIG_BOOL,
     .offset = AT(lost),
     .fallback = "false",
     .is_option = true,
     .help = "with --recover: recover although database, anchor or key are lost"},
};

static enum cv_err check(const void *settings, const char *word, struct cv_why *why) {
  struct cv_digest key;
  return cv_cobroker_settings_key(settings, &key, why);
}

static const struct cv_config_table table = {
    .program = "crowdveil-cobroker",
    .about = "holds the second share of each token, and adds noise of its own to the second share of each sum",
    .rules = rules,
    .count = CV_COUNT(rules),
    .check = check,
};

static int instead(const void *settings) {
  const struct cv_cobroker_settings *own = settings;
  return own->recover                 ? cv_cobroker_recover_state(own)
         : own->examine               ? cv_cobroker_examine(own)
         : own->seal != CV_ROTATE_RUN ? cv_cobroker_seal(own)
                                      : -1;
}

static int run(const void *settings) {
  const struct cv_cobroker_settings *own = settings;
  if (own->noise_seeded) {
    cv_log(CV_LOG_WARN, "noise is seeded: this co-broker protects no worker");
  }
  return cv_cobroker_run(own);
}

int main(int argc, char **argv) {
  static const struct cv_daemon_program program = {
      .table = &table, .common = AT(daemon), .instead = instead, .check_copy = cv_cobroker_check_copy, .run = run};
  struct cv_cobroker_settings settings = {0};
  return cv_daemon_main(&program, argc, argv, &settings);
}
