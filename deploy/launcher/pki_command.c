/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil pki: makes a CA in a folder; issues, renews, lists and revokes certificates; prints their fingerprints. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/fingerprint.h"
#include "common/base/nearest.h"
#include "common/base/text.h"
#include "common/net/certificate.h"
#include "deploy/launcher/command.h"
#include "deploy/launcher/pki/files.h"
#include "deploy/launcher/pki/make.h"
#include "deploy/launcher/pki/pki.h"
#include "deploy/launcher/pki/revoke.h"
#include "deploy/launcher/pki_list.h"

enum { DAY_S = 86400, WORDS_MAX = 1 + CV_PKI_PARTIES_MAX };

struct settings {
  char *dir, *out, *host, *name;
  double days, seconds;
  bool renew, new_key, json;
};

static const struct cv_config_rule rules[] = {
    {.key = "dir",
     .type = CV_CONFIG_PATH,
     .offset = offsetof(struct settings, dir),
     .help = "folder of the CA; all but fingerprint need it"},
    {.key = "out",
     .type = CV_CONFIG_PATH,
     .offset = offsetof(struct settings, out),
     .help = "issue, renew: folder of certificate and key (default: the CA's)"},
    {.key = "host",
     .type = CV_CONFIG_TEXT,
     .offset = offsetof(struct settings, host),
     .help =
         "issue, renew: host names and IP addresses, separated by commas; brokers, co-brokers and third-parties need "
         "one; renew keeps the old ones by default"},
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
    {.key = "new_key",
     .type = CV_CONFIG_BOOL,
     .offset = offsetof(struct settings, new_key),
     .fallback = "false",
     .help = "renew, make: replace the key, too, with its fingerprint; open campaigns with two brokers end by it"},
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
        "revoke ROLE/NAME|SERIAL | fingerprint CERT.PEM",
    .about =
        "makes a CA and issues certificates for requester/NAME, worker/ID, gateway/FIRST-LAST, broker/NAME, "
        "cobroker/NAME and thirdparty/NAME. ca makes a CA; issue makes one certificate; neither overwrites a file. "
        "make sets up a whole deployment of up to 256 parties: a CA, unless there is one, and in each FOLDER "
        "ca.pem, crl.pem, cert.pem and key.pem; it keeps valid certificates and replaces expired or incomplete "
        "ones. renew replaces the certificate of one party and keeps its key. list shows all certificates of the "
        "CA. revoke adds certificates to the CA's crl.pem; copy it to the parties, whose setting tls.crl names it, "
        "and send them SIGHUP. fingerprint prints the fingerprint of a certificate's key, by which brokers, "
        "co-brokers and workers know each other.",
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
  (void)printf("%s/ca.pem\n", cv_text_line(settings->dir).text);
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

static enum cv_err read_identity(const char *path, struct cv_identity *ret, struct cv_why *why) {
  X509 *cert = NULL;
  enum cv_err err = cv_pki_read_cert(path, &cert, why);
  if (err == CV_OK && cert == NULL) {
    err = cv_fail(why, CV_ERR_NOT_FOUND, "%s: No such file; expected a certificate", path);
  } else if (err == CV_OK && cv_certificate_identity(cert, ret, why) != CV_OK) {
    cv_why_prefix(why, "%s", path);
    err = CV_ERR_FORMAT;
  }
  X509_free(cert);
  return err;
}

static int fingerprint(struct settings *settings, const char *const *word) {
  struct cv_identity identity;
  struct cv_why why;
  if (read_identity(word[0], &identity, &why) != CV_OK) {
    return cv_command_fail(&table, 1, "%s", why.text);
  }
  (void)printf("%s\n", cv_fingerprint_of(&identity.key).text);
  return 0;
}

/* To all who have noted the fingerprint of the old key the new one is another party. */
static void tell_new_key(const struct cv_identity *identity, const char *cert, FILE *out) {
  struct cv_identity holder;
  if ((identity->role == CV_ROLE_BROKER || identity->role == CV_ROLE_COBROKER) &&
      read_identity(cert, &holder, NULL) == CV_OK) {
    (void)fprintf(out,
                  ", fingerprint %s: its open campaigns with two brokers end; give the fingerprint to the other broker "
                  "and to the workers",
                  cv_fingerprint_of(&holder.key).text);
  }
}

static int issue_or_renew(struct settings *settings, const char *identity, bool renew) {
  const char *host[CV_PKI_HOSTS_MAX];
  struct cv_pki_request request = {.identity = identity,
                                   .hosts = host,
                                   .valid_s = valid_s(settings, CV_PKI_LEAF_DAYS),
                                   .renew = settings->renew,
                                   .new_key = settings->new_key};
  request.hosts_n = settings->host == NULL ? 0 : split_hosts(settings->host, host);
  const char *out = settings->out == NULL ? settings->dir : settings->out;
  struct cv_pki_files files;
  struct cv_identity holder;
  struct cv_why why;
  bool is_new = false;
  enum cv_err err = renew ? cv_pki_renew(settings->dir, out, &request, &files, &is_new, &why)
                          : cv_pki_issue(settings->dir, out, &request, &files, &why);
  if (err != CV_OK) {
    return cv_command_fail(&table, err == CV_ERR_FORMAT || err == CV_ERR_INVALID ? 2 : 1, "%s", why.text);
  }
  (void)printf("%s\n%s\n", cv_text_line(files.cert).text, cv_text_line(files.key).text);
  if (is_new && cv_pki_identity(identity, &holder, &why) == CV_OK) {
    (void)fprintf(stderr, "%s: %s/%s has a new key", table.program, cv_role_text(holder.role), holder.name);
    tell_new_key(&holder, files.cert, stderr);
    (void)fputc('\n', stderr);
  }
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
  (void)printf("%s/crl.pem\n", cv_text_line(settings->dir).text);
  return 0;
}

static int say_renewed(const struct cv_pki_party *party) {
  char cert[CV_PKI_PATH];
  (void)printf("%s/%s: renewed%s", cv_role_text(party->identity.role), party->identity.name,
               party->is_new_key ? " with a new key" : "");
  if (party->is_new_key && cv_pki_join(cert, party->path, "cert", ".pem", NULL) == CV_OK) {
    tell_new_key(&party->identity, cert, stdout);
  }
  return printf("\n");
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
      return printf("%s/%s: made in %s\n", role, name, cv_text_line(party->folder).text);
    case CV_PKI_THERE:
      return printf("%s/%s: there already, until %s\n", role, name, until);
    case CV_PKI_RENEWED:
      return say_renewed(party);
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
                                   .renew = settings->renew,
                                   .new_key = settings->new_key};
  enum cv_err err = cv_pki_make(&make, party, parties, &why);
  for (size_t i = 0; i < parties; i++) {
    (void)say(&party[i]);
  }
  cv_pki_parties_free(party, parties);
  return err == CV_OK ? 0 : cv_command_fail(&table, 1, "%s", why.text);
}

/* ---- which action ---- */

enum { OUT = 1, HOST = 2, NAME = 4, VALID = 8, RENEW = 16, JSON = 32, DIR = 64, NEW_KEY = 128 };

static const struct action {
  const char *name;
  int (*run)(struct settings *settings, const char *const *word); /* the words after the action */
  unsigned options;                                               /* that it takes; DIR: and needs */
  size_t least, most;                                             /* words */
  const char *usage;
} actions[] = {
    {"ca", make_ca, DIR | NAME | VALID, 0, 0, "ca"},
    {"issue", issue, DIR | OUT | HOST | VALID | RENEW, 1, 1, "issue ROLE/NAME"},
    {"make", make, DIR | NAME | VALID | RENEW | NEW_KEY, 1, CV_PKI_PARTIES_MAX,
     "make ROLE/NAME[@HOST[,HOST]...]=FOLDER..."},
    {"renew", renew, DIR | OUT | HOST | VALID | NEW_KEY, 1, 1, "renew ROLE/NAME"},
    {"list", list, DIR | JSON, 0, 0, "list"},
    {"revoke", revoke, DIR, 1, 1, "revoke ROLE/NAME|SERIAL"},
    {"fingerprint", fingerprint, 0, 1, 1, "fingerprint CERT.PEM"},
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
  } given[] = {{DIR, settings->dir != NULL, "--dir"},     {OUT, settings->out != NULL, "--out"},
               {HOST, settings->host != NULL, "--host"},  {NAME, settings->name != NULL, "--name"},
               {VALID, !isnan(settings->days), "--days"}, {VALID, !isnan(settings->seconds), "--seconds"},
               {RENEW, settings->renew, "--renew"},       {NEW_KEY, settings->new_key, "--new-key"},
               {JSON, settings->json, "--json"}};
  for (size_t i = 0; i < CV_COUNT(given); i++) {
    if (given[i].is_given && (action->options & given[i].option) == 0) {
      return cv_command_fail(&table, 2, "%s does not take %s; usage: crowdveil pki %s", action->name, given[i].name,
                             action->usage);
    }
  }
  if ((action->options & DIR) != 0 && settings->dir == NULL) {
    return cv_command_fail(&table, 2, "missing option --dir (folder of the CA); usage: crowdveil pki %s",
                           action->usage);
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
