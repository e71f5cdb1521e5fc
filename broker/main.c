/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil-broker: settings in, a shell that runs until it is told to stop. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "broker/examine.h"
#include "common/admin/probe.h"
#include "common/base/grid.h"
#include "common/base/log.h"
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
     .help = "name in the third-party's certificate; another one there is refused"},
    {.key = "state", .type = CV_CONFIG_PATH, .offset = AT(state), .required = true, .help = "folder of the database"},
    {.key = "anchor",
     .type = CV_CONFIG_PATH,
     .offset = AT(anchor),
     .required = true,
     .help = "file outside that folder that says how far the database has come"},
    {.key = "seal_key",
     .type = CV_CONFIG_PATH,
     .offset = AT(seal_key),
     .required = true,
     .help = "file with the key that seals stored sums; made at the first start"},
    CV_LINK_RULES(AT(link)),
    CV_ADMIN_RULES(struct cv_broker_settings),
    {.key = "limits.epsilon",
     .type = CV_CONFIG_REAL,
     .offset = AT(limit_epsilon),
     .low = 1e-6,
     .high = 4000,
     .fallback = "10",
     .help = "largest epsilon of a campaign"},
    {.key = "limits.delta",
     .type = CV_CONFIG_REAL,
     .offset = AT(limit_delta),
     .low = 0,
     .high = 1,
     .fallback = "0",
     .help = "largest delta of a campaign's privatizer: the part of the workers it need not protect"},
    {.key = "limits.trusted_thirdparty",
     .type = CV_CONFIG_BOOL,
     .offset = AT(trusted_thirdparty),
     .fallback = "false",
     .help = "take campaigns that give their third-party exact sums; whoever gives to one is unprotected"},
    {.key = "limits.worker_epsilon",
     .type = CV_CONFIG_REAL,
     .offset = AT(limit_worker_epsilon),
     .low = 1e-6,
     .high = 4000,
     .fallback = "100",
     .help = "lifetime epsilon of a worker over all campaigns"},
    {.key = "limits.release_tokens",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(limit_release_tokens),
     .low = 1,
     .high = 1e6,
     .fallback = "10",
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
     .help = "open campaigns of a requester"},
    {.key = "limits.submits",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(limit_submits),
     .low = 1,
     .high = 1e6,
     .fallback = "60",
     .help = "campaigns that a requester may submit in a minute; no more than limits.kept"},
    {.key = "limits.kept",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(limit_kept),
     .low = 1,
     .high = 1e6,
     .fallback = "1000",
     .help = "campaigns of a requester that are kept; the one that ended first makes room for the next"},
    {.key = "limits.retention",
     .type = CV_CONFIG_TIME,
     .offset = AT(limit_retention_ms),
     .low = 0,
     .high = 3.2e12,
     .fallback = "none",
     .help = "time after its end that a campaign is kept, such as 90d; none: as long as limits.kept permits"},
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
     .help = "4 KiB chunks for the workers of a campaign; one certificate gets half of them at most"},
    {.key = "limits.queue",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(limit_queue),
     .low = 1,
     .high = 1e6,
     .fallback = "16384",
     .help = "workers waiting on one connection"},
    {.key = "limits.connections",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(connections),
     .low = 1,
     .high = 65536,
     .fallback = "1024",
     .help = "connections at once"},
    {.key = "limits.handshakes",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(handshakes),
     .low = 1,
     .high = 65536,
     .fallback = "128",
     .help = "unfinished TLS handshakes at once; of the address with most of them the oldest gives way"},
    {.key = "limits.hellos",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(hellos),
     .low = 1,
     .high = 1e6,
     .fallback = "200",
     .help = "TLS hellos of an address (IPv6: of a /64) that are answered a second; of all strangers four times that"},
    {.key = "lease",
     .type = CV_CONFIG_TIME,
     .offset = AT(lease_ms),
     .low = 100,
     .high = 3600000,
     .fallback = "5s",
     .help = "time a worker has for its answer"},
    {.key = "unsafe_mechanisms",
     .type = CV_CONFIG_BOOL,
     .offset = AT(unsafe_mechanisms),
     .fallback = "false",
     .help = "UNSAFE, for experiments: take campaigns whose mechanism tells more than its epsilon says"},
    {.key = "unsafe_noise_seeded",
     .type = CV_CONFIG_BOOL,
     .offset = AT(noise_seeded),
     .fallback = "false",
     .help = "UNSAFE, for tests: noise is reproducible and protects nobody"},
    {.key = "unsafe_noise_seed",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(noise_seed),
     .low = 0,
     .high = 9e15,
     .fallback = "0",
     .help = "UNSAFE, for tests: the seed of that noise"},
    CV_SANDBOX_RULES(AT(sandbox)),
    {.key = "examine",
     .type = CV_CONFIG_BOOL,
     .offset = AT(examine),
     .fallback = "false",
     .is_option = true,
     .help = "examine the stopped broker's state, print a line a finding, and exit"},
    {.key = "recover",
     .type = CV_CONFIG_BOOL,
     .offset = AT(recover),
     .fallback = "false",
     .is_option = true,
     .help = "recover a stopped broker whose database went back, and exit"},
    {.key = "recover_thirdparty",
     .type = CV_CONFIG_PATH,
     .offset = AT(recover_thirdparty),
     .is_option = true,
     .help = "with --recover: what crowdveil-thirdparty --examine printed"},
    {.key = "lost",
     .type = CV_CONFIG_BOOL,
     .offset = AT(lost),
     .fallback = "false",
     .is_option = true,
     .help = "with --recover: go on although the database, its anchor or its key is lost"},
};

static const struct cv_config_table table = {
    .program = "crowdveil-broker",
    .about = "collects tokens from the crowd and lets only noisy sums out",
    .rules = rules,
    .count = CV_COUNT(rules),
};

int main(int argc, char **argv) {
  struct cv_broker_settings settings = {0};
  int status = cv_config_start(&table, argc, argv, &settings);
  if (status < 0) {
    settings.limit_epsilon_micro = (uint64_t)llround(settings.limit_epsilon * (double)CV_MICRO);
    settings.limit_worker_epsilon_micro = (uint64_t)llround(settings.limit_worker_epsilon * (double)CV_MICRO);
    cv_log_init("crowdveil-broker", CV_LOG_INFO);
    status = settings.probe     ? cv_probe_run(table.program, settings.admin)
             : settings.recover ? cv_broker_recover_state(&settings)
             : settings.examine ? cv_broker_examine(&settings)
                                : cv_link_wait(table.program, &settings.link);
  }
  if (status < 0) {
    struct cv_broker_shell *shell;
    struct cv_why why;
    cv_sandbox_begin(&settings.sandbox);
    if (settings.trusted_thirdparty) {
      cv_log(CV_LOG_WARN, "campaigns with third_party: trusted are accepted here: exact sums, which protect no worker");
    }
    if (settings.unsafe_mechanisms) {
      cv_log(CV_LOG_WARN, "mechanisms that protect less than they say are accepted here");
    }
    if (settings.noise_seeded) {
      cv_log(CV_LOG_WARN, "noise is seeded: this broker protects nobody");
    }
    enum cv_err err = cv_broker_shell_start(&settings, &shell, &why);
    if (err != CV_OK) {
      (void)fprintf(stderr, "crowdveil-broker: %s\n", why.text);
      status = cv_config_exit_status(err);
    } else {
      (void)printf("crowdveil-broker ready on %s\n", cv_broker_shell_address(shell));
      (void)fflush(stdout);
      status = cv_broker_shell_run(shell);
      cv_broker_shell_free(shell);
    }
  }
  cv_config_fini(&table, &settings);
  return status;
}
