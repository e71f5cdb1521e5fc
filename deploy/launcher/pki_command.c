/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil pki: one folder with the CA and every certificate that it has issued. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "deploy/launcher/command.h"
#include "deploy/launcher/pki/pki.h"

enum { HOSTS_MAX = 32, DAY_S = 86400 };

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
     .help = "folder for what is issued; the CA's own if not given"},
    {.key = "host",
     .type = CV_CONFIG_TEXT,
     .offset = offsetof(struct settings, host),
     .help = "host names and IP addresses of a party that others dial, with commas"},
    {.key = "name",
     .type = CV_CONFIG_TEXT,
     .offset = offsetof(struct settings, name),
     .fallback = "Crowdveil CA",
     .help = "what the certificate of the CA shows"},
    {.key = "days",
     .type = CV_CONFIG_REAL,
     .offset = offsetof(struct settings, days),
     .low = -36500,
     .high = 36500,
     .fallback = "365",
     .help = "days until it expires"},
    {.key = "seconds",
     .type = CV_CONFIG_REAL,
     .offset = offsetof(struct settings, seconds),
     .low = -3e9,
     .high = 3e9,
     .help = "the same in seconds, for tests; negative: expired that long ago"},
    {.key = "renew",
     .type = CV_CONFIG_BOOL,
     .offset = offsetof(struct settings, renew),
     .fallback = "false",
     .help = "permit an identity that has a certificate already"},
};

static const struct cv_config_table table = {
    .program = "crowdveil pki",
    .arguments = "ca | issue ROLE/NAME",
    .about =
        "makes a CA, and issues certificates for requester/NAME, worker/ID, gateway/FIRST-LAST, broker/NAME and\n"
        "thirdparty/NAME. No file is overwritten.",
    .rules = rules,
    .count = CV_COUNT(rules),
};

static int make_ca(const struct settings *settings, int64_t valid_s) {
  struct cv_why why;
  enum cv_err err = cv_pki_make_ca(settings->dir, settings->name, valid_s, &why);
  if (err == CV_ERR_EXISTS) {
    return cv_command_fail(&table, 1, "%s: there is a CA already; expected a folder without one", settings->dir);
  }
  if (err != CV_OK) {
    return cv_command_fail(&table, 1, "%s", why.text);
  }
  (void)printf("%s/ca.pem\n", settings->dir);
  return 0;
}

static size_t split_hosts(char *hosts, const char *host[HOSTS_MAX]) {
  size_t n = 0;
  char *rest = NULL;
  for (char *at = strtok_r(hosts, ", ", &rest); at != NULL && n < HOSTS_MAX; at = strtok_r(NULL, ", ", &rest)) {
    host[n++] = at;
  }
  return n;
}

static int issue(struct settings *settings, const char *identity, int64_t valid_s) {
  const char *host[HOSTS_MAX];
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

int cv_command_pki(int argc, char **argv) {
  struct settings settings = {.seconds = (double)NAN};
  const char *words[CV_WORDS_MAX] = {0};
  int status = cv_command_options(&table, argc, argv, 1, 2, words, &settings);
  if (status >= 0) {
    cv_config_fini(&table, &settings);
    return status;
  }
  int64_t valid_s = isnan(settings.seconds) ? (int64_t)(settings.days * DAY_S) : (int64_t)settings.seconds;
  if (strcmp(words[0], "ca") == 0 && words[1] == NULL) {
    status = make_ca(&settings, valid_s);
  } else if (strcmp(words[0], "issue") == 0 && words[1] != NULL) {
    status = issue(&settings, words[1], valid_s);
  } else {
    status = cv_command_fail(&table, 2, "\"%.60s\" is not understood; expected %s", words[0], table.arguments);
  }
  cv_config_fini(&table, &settings);
  return status;
}
