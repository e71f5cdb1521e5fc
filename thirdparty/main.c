/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil-thirdparty: reads the settings, then runs the third-party's shell until a signal stops it. */
#include <stdlib.h>

#include "common/base/spec.h"
#include "thirdparty/examine.h"
#include "thirdparty/shell.h"
#include "thirdparty/store.h"

#define AT(field) offsetof(struct cv_thirdparty_settings, field)

static const struct cv_config_rule rules[] = {
    {.key = "listen",
     .type = CV_CONFIG_TEXT,
     .offset = AT(listen),
     .fallback = "127.0.0.1:7402",
     .help = "HOST:PORT for brokers; port 0 lets the system choose"},
    {.key = "brokers",
     .type = CV_CONFIG_PARTIES,
     .offset = AT(brokers),
     .required = true,
     .help = "names of the brokers that may connect"},
    {.key = "state",
     .type = CV_CONFIG_PATH,
     .offset = AT(state),
     .required = true,
     .help = "existing folder of the database"},
    CV_PAGE_RULES(AT(page)),
    CV_DAEMON_RULES(AT(daemon)),
    {.key = "limits.campaigns",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(campaigns),
     .low = 1,
     .high = 1 << 20,
     .fallback = "256",
     .help = "largest number of open campaigns of a broker"},
    {.key = "limits.arms",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(arms),
     .low = 1,
     .high = CV_ARMS_MAX,
     .fallback = "4096",
     .help = "largest number of arms of a campaign"},
    {.key = "examine",
     .type = CV_CONFIG_BOOL,
     .offset = AT(examine),
     .fallback = "false",
     .is_option = true,
     .help = "check the state of the stopped third-party, print one line per finding, and exit"},
};

static const struct cv_config_table table = {
    .program = "crowdveil-thirdparty",
    .about = "plans campaigns and ranks items from the noisy sums that brokers release",
    .rules = rules,
    .count = CV_COUNT(rules)};

static int instead(const void *settings) {
  const struct cv_thirdparty_settings *own = settings;
  const struct cv_thirdparty_files files = {.state = own->state, .admin = own->daemon.admin};
  return own->examine ? cv_thirdparty_examine(&files) : -1;
}

static int run(const void *settings) {
  return cv_thirdparty_run(settings);
}

int main(int argc, char **argv) {
  static const struct cv_daemon_program program = {
      .table = &table, .common = AT(daemon), .instead = instead, .check_copy = cv_thirdparty_check_copy, .run = run};
  struct cv_thirdparty_settings settings = {0};
  return cv_daemon_main(&program, argc, argv, &settings);
}
