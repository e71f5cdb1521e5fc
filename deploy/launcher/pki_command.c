/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil pki: makes a CA in a folder; issues, renews, lists and revokes certificates. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/nearest.h"
#include "common/net/certificate.h"
#include "deploy/launcher/command.h"
#include "deploy/launcher/pki/make.h"
#include "deploy/launcher/pki/pki.h"
#include "deploy/launcher/pki/revoke.h"
#include "deploy/launcher/pki_list.h"

enum { DAY_S = 86400, WORDS_MAX = 1 + CV_PKI_PARTIES_MAX };

struct settings {
  char *dir, *out, *host, *name;
  double days, seconds;
  bool renew, json;
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
     .help = "issue, renew: folder of certificate and key (default: the CA's)"},
    {.key = "host",
     .type = CV_CONFIG_TEXT,
     .offset = offsetof(struct settings, host),
     .help = "issue, renew: host names and IP addresses, separated by commas; a broker and a third-party need one; "
             "renew keeps the old ones by default"},
    {.key = "name",
     .type = CV_CONFIG_TEXT,
     .offset = offsetof(struct settings, name),
     .help = "ca, make: name in the CA's certificate (default: Crowdveil CA)"},
    {.key = "days",
     .type = CV_CONFIG_REAL,
     .offset = offsetof(struct settings, days),
     .low = -36500,
     .high = 36500,
     .help = "days until the certificate expires (default: 90, ca 3650), with the CA at the latest; a CA of make has "
             "3650, or these if they are more"},
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
     .help = "issue: permit an identity that already has a certificate; make: also replace valid and revoked ones"},
    {.key = "json",
     .type = CV_CONFIG_BOOL,
     .offset = offsetof(struct settings, json),
     .fallback = "false",
     .help = "list: print one JSON object per certificate"},
};

static const struct cv_config_table table = {
    .program = "crowdveil pki",
    .arguments =
        "ca | issue ROLE/NAME | make ROLE/NAME[@HOST[,HOST]...]=FOLDER... | renew ROLE/NAME | list | "
        "revoke ROLE/NAME|SERIAL",
    .about =
        "makes a CA and issues certificates for requester/NAME, worker/ID, gateway/FIRST-LAST, broker/NAME and\n"
        "thirdparty/NAME. ca makes a CA; issue makes one certificate; neither overwrites a file. make sets up a whole\n"
        "deployment of up to 256 parties: a CA, unless there is one, and in each FOLDER ca.pem, crl.pem, cert.pem and\n"
        "key.pem; it keeps valid certificates and replaces expired or incomplete ones. renew replaces certificate and\n"
        "key of one party. list shows all certificates of the CA. revoke adds certificates to the CA's crl.pem; copy\n"
        "it to the parties, whose setting tls.crl names it, and send them SIGHUP.",
    .rules = rules,
    .count = CV_COUNT(rules),
};

/* ---- actions ---- */

/* The validity that the options ask for, otherwise `days`. */
static int64_t valid_s(const struct settings *settings, int days) {
  return !isnan(settings->seconds) ? (int64_t)settings->seconds
         : !isnan(settings->days)  ? (int64_t)(settings->days * DAY_S)
                                   : (int64_t)days * DAY_S;
}

static const char *ca_name(const struct settings *settings) {
  return settings->name == NULL ? "Crowdveil CA" : settings->name;
}

static int make_ca(struct settings *settings, const char *const *word) {
  struct cv_why why;
  enum cv_err err = cv_pki_make_ca(settings->dir, ca_name(settings), valid_s(settings, CV_PKI_CA_DAYS), &why);
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

static int issue_or_renew(struct settings *settings, const char *identity, bool renew) {
  const char *host[CV_PKI_HOSTS_MAX];
  struct cv_pki_request request = {
      .identity = identity, .hosts = host, .valid_s = valid_s(settings, CV_PKI_LEAF_DAYS), .renew = settings->renew};
  request.hosts_n = settings->host == NULL ? 0 : split_hosts(settings->host, host);
  const char *out = settings->out == NULL ? settings->dir : settings->out;
  struct cv_pki_files files;
  struct cv_why why;
  enum cv_err err = renew ? cv_pki_renew(settings->dir, out, &request, &files, &why)
                          : cv_pki_issue(settings->dir, out, &request, &files, &why);
  if (err != CV_OK) {
    return cv_command_fail(&table, err == CV_ERR_FORMAT || err == CV_ERR_INVALID ? 2 : 1, "%s", why.text);
  }
  (void)printf("%s\n%s\n", files.cert, files.key);
  return 0;
}

static int issue(struct settings *settings, const char *const *word) {
  return issue_or_renew(settings, word[0], false);
}

static int renew(struct settings *settings, const char *const *word) {
  return issue_or_renew(settings, word[0], true);
}

static int list(struct settings *settings, const char *const *word) {
  struct cv_why why;
  enum cv_err err = cv_pki_list_print(settings->dir, settings->json, &why);
  return err == CV_OK ? 0 : cv_command_fail(&table, 1, "%s", why.text);
}

static void say_revoked(void *data, const struct cv_pki_entry *entry) {
  (void)printf("%s/%s: revoked %s on %s\n", cv_role_text(entry->identity.role), entry->identity.name, entry->serial.hex,
               cv_certificate_date(entry->revoked).text);
}

static int revoke(struct settings *settings, const char *const *word) {
  struct cv_why why;
  enum cv_err err = cv_pki_revoke(settings->dir, word[0], say_revoked, NULL, &why);
  if (err != CV_OK) {
    return cv_command_fail(&table, err == CV_ERR_FORMAT ? 2 : 1, "%s", why.text);
  }
  (void)printf("%s/crl.pem\n", settings->dir);
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
    case CV_PKI_REVOKED:
      return printf("%s/%s: revoked; --renew makes another certificate\n", role, name);
    default:
      return 0;
  }
}

static int make(struct settings *settings, const char *const *word) {
  struct cv_pki_party *party;
  struct cv_why why;
  size_t parties = 0;
  while (parties < CV_PKI_PARTIES_MAX && word[parties] != NULL) {
    parties++;
  }
  if (cv_pki_parties_parse(word, parties, settings->dir, &party, &why) != CV_OK) {
    return cv_command_fail(&table, 2, "%s", why.text);
  }
  int64_t leaf_s = valid_s(settings, CV_PKI_LEAF_DAYS), ca_s = (int64_t)CV_PKI_CA_DAYS * DAY_S;
  const struct cv_pki_make make = {.ca_folder = settings->dir,
                                   .ca_name = ca_name(settings),
                                   .ca_valid_s = leaf_s > ca_s ? leaf_s : ca_s,
                                   .valid_s = leaf_s,
                                   .renew = settings->renew};
  enum cv_err err = cv_pki_make(&make, party, parties, &why);
  for (size_t i = 0; i < parties; i++) {
    (void)say(&party[i]);
  }
  cv_pki_parties_free(party, parties);
  return err == CV_OK ? 0 : cv_command_fail(&table, 1, "%s", why.text);
}

/* ---- which action ---- */

enum { OUT = 1, HOST = 2, NAME = 4, VALID = 8, RENEW = 16, JSON = 32 };

static const struct action {
  const char *name;
  int (*run)(struct settings *settings, const char *const *word); /* the words after the action */
  unsigned options;                                               /* that it takes besides --dir */
  size_t least, most;                                             /* words */
  const char *usage;
} actions[] = {
    {"ca", make_ca, NAME | VALID, 0, 0, "ca"},
    {"issue", issue, OUT | HOST | VALID | RENEW, 1, 1, "issue ROLE/NAME"},
    {"make", make, NAME | VALID | RENEW, 1, CV_PKI_PARTIES_MAX, "make ROLE/NAME[@HOST[,HOST]...]=FOLDER..."},
    {"renew", renew, OUT | HOST | VALID, 1, 1, "renew ROLE/NAME"},
    {"list", list, JSON, 0, 0, "list"},
    {"revoke", revoke, 0, 1, 1, "revoke ROLE/NAME|SERIAL"},
};

static const struct action *find_action(const char *name) {
  for (size_t i = 0; i < CV_COUNT(actions); i++) {
    if (strcmp(name, actions[i].name) == 0) {
      return &actions[i];
    }
  }
  return NULL;
}

/* Before the options, so that a wrong action is reported before the missing --dir. Returns -1 if there is no error. */
static int check_action(const char *name) {
  const char *names[CV_COUNT(actions)];
  struct cv_why why;
  if (name == NULL) {
    return cv_command_fail(&table, 2, "missing ACTION; usage: crowdveil pki %s", table.arguments);
  }
  if (find_action(name) != NULL) {
    return -1;
  }
  for (size_t i = 0; i < CV_COUNT(actions); i++) {
    names[i] = actions[i].name;
  }
  (void)cv_nearest_fail(&why, "action", name, names, CV_COUNT(names));
  return cv_command_fail(&table, 2, "%s", why.text);
}

/* An option without effect would be a misunderstanding: --days of revoke, --out of make. */
static int check_options(const struct action *action, const struct settings *settings) {
  const struct {
    unsigned option;
    bool is_given;
    const char *name;
  } given[] = {{OUT, settings->out != NULL, "--out"},
               {HOST, settings->host != NULL, "--host"},
               {NAME, settings->name != NULL, "--name"},
               {VALID, !isnan(settings->days), "--days"},
               {VALID, !isnan(settings->seconds), "--seconds"},
               {RENEW, settings->renew, "--renew"},
               {JSON, settings->json, "--json"}};
  for (size_t i = 0; i < CV_COUNT(given); i++) {
    if (given[i].is_given && (action->options & given[i].option) == 0) {
      return cv_command_fail(&table, 2, "%s does not take %s; usage: crowdveil pki %s", action->name, given[i].name,
                             action->usage);
    }
  }
  return -1;
}

static int run(struct settings *settings, const char *const *word) {
  int status = check_action(word[0]);
  if (status >= 0) {
    return status;
  }
  const struct action *action = find_action(word[0]);
  size_t words = 0;
  while (word[1 + words] != NULL) {
    words++;
  }
  if (words < action->least || words > action->most) {
    return cv_command_fail(&table, 2, "%s arguments of \"%s\"; usage: crowdveil pki %s",
                           words < action->least ? "missing" : "too many", action->name, action->usage);
  }
  status = check_options(action, settings);
  return status >= 0 ? status : action->run(settings, word + 1);
}

int cv_launcher_pki(int argc, char **argv) {
  struct settings settings = {.days = (double)NAN, .seconds = (double)NAN};
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
