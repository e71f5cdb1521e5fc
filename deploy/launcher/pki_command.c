/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil pki: makes a CA in a folder and issues certificates. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/nearest.h"
#include "deploy/launcher/command.h"
#include "deploy/launcher/pki/make.h"
#include "deploy/launcher/pki/pki.h"

enum { DAY_S = 86400, WORDS_MAX = 1 + CV_PKI_PARTIES_MAX };

struct settings {
  char *dir, *out, *host, *name;
  double days, seconds;
  bool renew;
};

static const struct cv_config_rule rules[] = {
    {.key = "dir",
     .type = CV_CONFIG_PATH,
     .offset = offsetof(struct settings, dir),
     .required = true,
     .help = "folder of the CA"},
    {.key = "out",
     .type = CV_CONFIG_PATH,
     .offset = offsetof(struct settings, out),
     .help = "issue: folder for certificate and key (default: the CA's)"},
    {.key = "host",
     .type = CV_CONFIG_TEXT,
     .offset = offsetof(struct settings, host),
     .help = "issue: host names and IP addresses of a party that accepts connections, separated by commas"},
    {.key = "name",
     .type = CV_CONFIG_TEXT,
     .offset = offsetof(struct settings, name),
     .fallback = "Crowdveil CA",
     .help = "ca, make: name in the CA's certificate"},
    {.key = "days",
     .type = CV_CONFIG_REAL,
     .offset = offsetof(struct settings, days),
     .low = -36500,
     .high = 36500,
     .fallback = "365",
     .help = "days until the certificate expires; make: at the latest with the CA"},
    {.key = "seconds",
     .type = CV_CONFIG_REAL,
     .offset = offsetof(struct settings, seconds),
     .low = -3e9,
     .high = 3e9,
     .help = "the same in seconds, for tests; negative: already expired"},
    {.key = "renew",
     .type = CV_CONFIG_BOOL,
     .offset = offsetof(struct settings, renew),
     .fallback = "false",
     .help = "issue: permit an identity that already has a certificate; make: replace valid certificates"},
};

static const struct cv_config_table table = {
    .program = "crowdveil pki",
    .arguments = "ca | issue ROLE/NAME | make ROLE/NAME[@HOST[,HOST]...]=FOLDER...",
    .about =
        "makes a CA and issues certificates for requester/NAME, worker/ID, gateway/FIRST-LAST, broker/NAME and\n"
        "thirdparty/NAME. ca makes a CA; issue makes one certificate; neither overwrites a file. make sets up a whole\n"
        "deployment of up to 256 parties: a CA, unless there is one, and in each FOLDER ca.pem, cert.pem and key.pem.\n"
        "make keeps valid certificates and replaces expired or incomplete ones.",
    .rules = rules,
    .count = CV_COUNT(rules),
};

static int make_ca(const struct settings *settings, int64_t valid_s) {
  struct cv_why why;
  enum cv_err err = cv_pki_make_ca(settings->dir, settings->name, valid_s, &why);
  if (err == CV_ERR_EXISTS) {
    return cv_command_fail(&table, 1, "%s: the folder already has a CA; expected a folder without one", settings->dir);
  }
  if (err != CV_OK) {
    return cv_command_fail(&table, 1, "%s", why.text);
  }
  (void)printf("%s/ca.pem\n", settings->dir);
  return 0;
}

static size_t split_hosts(char *hosts, const char *host[CV_PKI_HOSTS_MAX]) {
  size_t n = 0;
  char *rest = NULL;
  for (char *at = strtok_r(hosts, ", ", &rest); at != NULL && n < CV_PKI_HOSTS_MAX; at = strtok_r(NULL, ", ", &rest)) {
    host[n++] = at;
  }
  return n;
}

static int issue(struct settings *settings, const char *identity, int64_t valid_s) {
  const char *host[CV_PKI_HOSTS_MAX];
  struct cv_pki_request request = {.identity = identity, .hosts = host, .valid_s = valid_s, .renew = settings->renew};
  request.hosts_n = settings->host == NULL ? 0 : split_hosts(settings->host, host);
  const char *out = settings->out == NULL ? settings->dir : settings->out;
  struct cv_pki_files files;
  struct cv_why why;
  enum cv_err err = cv_pki_issue(settings->dir, out, &request, &files, &why);
  if (err != CV_OK) {
    return cv_command_fail(&table, err == CV_ERR_FORMAT || err == CV_ERR_INVALID ? 2 : 1, "%s", why.text);
  }
  (void)printf("%s\n%s\n", files.cert, files.key);
  return 0;
}

/* Prints what make did for a party. */
static int say(const struct cv_pki_party *party) {
  char until[32] = "";
  time_t seconds = (time_t)party->until_s;
  struct tm tm;
  if (gmtime_r(&seconds, &tm) != NULL) {
    (void)strftime(until, sizeof(until), "%Y-%m-%d", &tm);
  }
  const char *role = cv_role_text(party->identity.role), *name = party->identity.name;
  switch (party->done) {
    case CV_PKI_MADE:
      return printf("%s/%s: made in %s\n", role, name, party->folder);
    case CV_PKI_THERE:
      return printf("%s/%s: there already, until %s\n", role, name, until);
    case CV_PKI_RENEWED:
      return printf("%s/%s: renewed\n", role, name);
    default:
      return 0;
  }
}

static int make(const struct settings *settings, const char *const *word, int64_t valid_s) {
  struct cv_pki_party *party;
  struct cv_why why;
  size_t parties = 0;
  while (parties < CV_PKI_PARTIES_MAX && word[parties] != NULL) {
    parties++;
  }
  if (settings->out != NULL || settings->host != NULL) {
    return cv_command_fail(&table, 2, "make does not take --out or --host; expected ROLE/NAME[@HOST[,HOST]...]=FOLDER");
  }
  if (cv_pki_parties_parse(word, parties, settings->dir, &party, &why) != CV_OK) {
    return cv_command_fail(&table, 2, "%s", why.text);
  }
  const struct cv_pki_make make = {
      .ca_folder = settings->dir, .ca_name = settings->name, .valid_s = valid_s, .renew = settings->renew};
  enum cv_err err = cv_pki_make(&make, party, parties, &why);
  for (size_t i = 0; i < parties; i++) {
    (void)say(&party[i]);
  }
  cv_pki_parties_free(party, parties);
  return err == CV_OK ? 0 : cv_command_fail(&table, 1, "%s", why.text);
}

/* Before the options, so that a wrong action is reported before the missing --dir. Returns -1 if there is no error. */
static int check_action(const char *action) {
  static const char *const actions[] = {"ca", "issue", "make"};
  struct cv_why why;
  if (action == NULL) {
    return cv_command_fail(&table, 2, "missing ACTION; usage: crowdveil pki %s", table.arguments);
  }
  for (size_t i = 0; i < CV_COUNT(actions); i++) {
    if (strcmp(action, actions[i]) == 0) {
      return -1;
    }
  }
  (void)cv_nearest_fail(&why, "action", action, actions, CV_COUNT(actions));
  return cv_command_fail(&table, 2, "%s", why.text);
}

static int run(struct settings *settings, const char *const *word) {
  int status = check_action(word[0]);
  if (status >= 0) {
    return status;
  }
  int64_t valid_s = isnan(settings->seconds) ? (int64_t)(settings->days * DAY_S) : (int64_t)settings->seconds;
  if (strcmp(word[0], "ca") == 0 && word[1] == NULL) {
    return make_ca(settings, valid_s);
  }
  if (strcmp(word[0], "issue") == 0 && word[1] != NULL && word[2] == NULL) {
    return issue(settings, word[1], valid_s);
  }
  if (strcmp(word[0], "make") == 0 && word[1] == NULL) {
    return cv_command_fail(&table, 2, "missing party; usage: crowdveil pki make ROLE/NAME[@HOST[,HOST]...]=FOLDER...");
  }
  if (strcmp(word[0], "make") == 0) {
    return make(settings, word + 1, valid_s);
  }
  return cv_command_fail(&table, 2, "wrong arguments of \"%.60s\"; usage: crowdveil pki %s", word[0], table.arguments);
}

int cv_launcher_pki(int argc, char **argv) {
  struct settings settings = {.seconds = (double)NAN};
  const char *words[WORDS_MAX + 1] = {0};
  int status = argc > 1 && argv[1][0] == '-' ? -1 : check_action(argv[1]);
  if (status < 0) {
    status = cv_command_options(&table, argc, argv, 0, WORDS_MAX, words, &settings);
  }
  if (status < 0) {
    status = run(&settings, words);
  }
  cv_config_fini(&table, &settings);
  return status;
}
