/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowdveil doctor: finds problems of the parties on this machine and says how to fix them. Each party's own program
 * examines its state (--examine); this file checks certificates, the clock and the health of running programs, and
 * compares broker and third-party.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/admin/probe.h"
#include "common/base/finding.h"
#include "common/base/text.h"
#include "common/config/document.h"
#include "common/config/value.h"
#include "deploy/launcher/certificates.h"
#include "deploy/launcher/command.h"
#include "deploy/launcher/pins.h"
#include "deploy/launcher/program.h"
#include "deploy/launcher/role.h"

enum { CONFIGS_MAX = 72, SLACK_S = 300 };

struct settings {
  bool json;
};

static const struct cv_config_rule rules[] = {
    {.key = "json",
     .type = CV_CONFIG_BOOL,
     .offset = offsetof(struct settings, json),
     .fallback = "false",
     .help = "print one JSON object per finding"},
};

static const struct cv_config_table table = {
    .program = "crowdveil doctor",
    .arguments = "CONFIG.YAML|FOLDER...",
    .about =
        "checks parties on this machine: databases, ledger, keys, certificates, clock; says how to fix each problem.\n"
        "CONFIG.YAML is the configuration file of a party, FOLDER the folder of a deployment.",
    .rules = rules,
    .count = CV_COUNT(rules),
};

/* ---- a party ---- */

struct party {
  enum cv_role role;
  char config[4096];
  struct cv_identity identity; /* of its certificate; zeros if that is not valid */
  struct cv_pins pins;
  char *ca, *cert, *key, *denied, *crl, *state; /* owned; NULL if not in the configuration */
  struct cv_found_campaign *campaign;           /* owned */
  size_t campaigns;
  bool is_live;
  bool is_read;  /* the database was read, or there is none yet */
  uint64_t gone; /* campaigns up to this number may be missing */
};

static void party_fini(struct party *party) {
  free(party->ca);
  free(party->cert);
  free(party->key);
  free(party->denied);
  free(party->crl);
  free(party->state);
  free(party->campaign);
  cv_pins_fini(&party->pins);
}

static char *path_in(struct cv_yaml *yaml, const yaml_node_t *mapping, const char *key) {
  struct cv_yaml_pair pair = cv_yaml_find(yaml, mapping, key);
  return pair.value != NULL && pair.value->type == YAML_SCALAR_NODE
             ? cv_value_path(cv_yaml_text(pair.value), yaml->folder)
             : NULL;
}

static enum cv_err read_config(struct party *party, struct cv_why *why) {
  struct cv_yaml yaml;
  CV_TRY(cv_yaml_open(party->config, &yaml, why));
  struct cv_yaml_pair tls = cv_yaml_find(&yaml, yaml.root, "tls");
  enum cv_err err = cv_launcher_role(&yaml, party->config, &party->role, why);
  party->state = path_in(&yaml, yaml.root, "state");
  cv_pins_read(&yaml, &party->pins);
  if (tls.value != NULL && tls.value->type == YAML_MAPPING_NODE) {
    party->ca = path_in(&yaml, tls.value, "ca");
    party->cert = path_in(&yaml, tls.value, "cert");
    party->key = path_in(&yaml, tls.value, "key");
    party->denied = path_in(&yaml, tls.value, "denied");
    party->crl = path_in(&yaml, tls.value, "crl");
  }
  cv_yaml_close(&yaml);
  return err;
}

static void drop_line(void *data, char *line) {
  (void)data;
  (void)line;
}

/* ---- a running program ---- */

static void examine_live(struct cv_findings *findings) {
  struct cv_why why;
  if (findings->live[0] == '\0') {
    cv_findings_add(findings, CV_FINDING_NOTE, "set `admin` to a path, so that its health can be checked",
                    "running; health unknown: no admin endpoint");
    return;
  }
  enum cv_err err = cv_probe_health(findings->live, CV_PROBE_MS, &why);
  if (err == CV_OK) {
    cv_findings_add(findings, CV_FINDING_OK, "", "running and healthy");
  } else if (err == CV_ERR_STATE) {
    cv_findings_add(findings, CV_FINDING_WARNING, "see its log", "running, but not healthy: %s", why.text);
  } else {
    cv_findings_add(findings, CV_FINDING_WRONG, "see its log; it may hang", "running, but does not answer: %s",
                    why.text);
  }
}

/* ---- the clock ---- */

/* Warns about a file with a modification time in the future: the clock was set back since then. */
static void examine_clock(const struct party *party, int64_t now, struct cv_findings *findings) {
  const char *const paths[] = {party->config, party->cert, party->state};
  for (size_t i = 0; i < CV_COUNT(paths); i++) {
    struct stat info;
    if (paths[i] != NULL && stat(paths[i], &info) == 0 && (int64_t)info.st_mtime > now + SLACK_S) {
      cv_findings_add(findings, CV_FINDING_WARNING, "set the clock of this machine",
                      "clock: %s has a modification time %lld s in the future", paths[i],
                      (long long)((int64_t)info.st_mtime - now));
      return;
    }
  }
}

/* ---- limits of a worker ---- */

/* What its program has written (worker/stalled.h); it has the database to itself as long as it runs. */
static void examine_limits(const struct party *party, struct cv_findings *findings) {
  char path[4096], line[512];
  FILE *file =
      party->state == NULL || snprintf(path, sizeof(path), "%s/" CV_STALLED_FILE, party->state) >= (int)sizeof(path)
          ? NULL
          : fopen(path, "re");
  if (file == NULL) {
    return;
  }
  if (fgets(line, sizeof(line), file) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    cv_text_clean(line, strlen(line));
    cv_findings_add(
        findings, CV_FINDING_WARNING,
        "raise accept.tokens in the configuration and start it again, if whoever gives the scores agrees to "
        "give more; or let others answer",
        "it gives no more scores to %s", line);
  }
  (void)fclose(file);
}

/* ---- one party ---- */

/* Runs the party's own program: --check-config first, then --examine, which needs a valid configuration. */
static enum cv_err examine_program(struct party *party, struct cv_findings *findings, struct cv_why *why) {
  const char *const check[] = {"--config", party->config, "--check-config", NULL};
  const char *const examine[] = {"--config", party->config, "--examine", NULL};
  int status = 1;
  CV_TRY(cv_program_run(cv_launcher_program_of(party->role, party->config), check, drop_line, NULL, &status, why));
  if (status != 0) {
    cv_findings_add(findings, CV_FINDING_WRONG, "correct it: the line above says where",
                    "configuration %s: refused by %s", party->config,
                    cv_launcher_program_of(party->role, party->config));
    return CV_OK;
  }
  cv_findings_add(findings, CV_FINDING_OK, "", "configuration %s", party->config);
  /* Workers and gateways have no --examine. */
  if (party->role == CV_ROLE_GATEWAY) {
    return CV_OK;
  }
  CV_TRY(cv_program_run(cv_launcher_program_of(party->role, party->config), examine, cv_findings_line, findings,
                        &status, why));
  /* The campaigns belong to this party from here on; the next program starts with an empty list. */
  party->campaign = findings->campaign;
  party->campaigns = findings->campaigns;
  party->is_live = findings->is_live;
  party->is_read = findings->is_read;
  party->gone = findings->gone;
  findings->campaign = NULL;
  findings->campaigns = findings->campaigns_cap = 0;
  if (findings->is_live) {
    examine_live(findings);
  }
  findings->is_live = findings->is_read = false;
  findings->gone = 0;
  return CV_OK;
}

/* The party's identity, by which parties are compared, comes from its certificate. */
static enum cv_err examine_party(struct party *party, struct cv_findings *findings, struct cv_why *why) {
  const char *base = strrchr(party->config, '/');
  int64_t now = (int64_t)time(NULL);
  CV_TRY(read_config(party, why));
  (void)snprintf(findings->party, sizeof(findings->party), "%.60s", base == NULL ? party->config : base + 1);
  CV_TRY(examine_program(party, findings, why));
  if (party->ca != NULL && party->cert != NULL && party->key != NULL) {
    const struct cv_certificates files = {
        .ca = party->ca,
        .cert = party->cert,
        .key = party->key,
        .denied = party->denied,
        .crl = party->crl,
        .roles = party->role == CV_ROLE_GATEWAY ? 1U << CV_ROLE_GATEWAY | 1U << CV_ROLE_WORKER : 1U << party->role};
    cv_certificates_examine(&files, now, findings, &party->identity);
  }
  examine_clock(party, now, findings);
  if (party->role == CV_ROLE_GATEWAY) {
    examine_limits(party, findings);
  }
  return CV_OK;
}

/* ---- broker and third-party ---- */

/* `broker` is NULL if the broker does not have the campaign. The third-party must never be ahead of the broker. */
static void compare_campaign(const struct cv_found_campaign *broker, const struct cv_found_campaign *thirdparty,
                             struct cv_findings *findings) {
  static const char advice[] =
      "the broker's database is outdated: stop both and run crowdveil recover BROKER.YAML --thirdparty THIRDPARTY.YAML";
  unsigned long long number = thirdparty->number;
  if (broker != NULL && strcmp(broker->state, "recovered") == 0) {
    return; /* `crowdveil recover` has charged for the difference already */
  }
  if (broker == NULL) {
    cv_findings_add(findings, CV_FINDING_WRONG, advice, "campaign %llu: the third-party has it, the broker does not",
                    number);
  } else if (thirdparty->releases > broker->releases || thirdparty->plans > broker->plans) {
    cv_findings_add(findings, CV_FINDING_WRONG, advice,
                    "campaign %llu: the third-party has %llu releases of %llu plans, the broker %llu of %llu", number,
                    (unsigned long long)thirdparty->releases, (unsigned long long)thirdparty->plans,
                    (unsigned long long)broker->releases, (unsigned long long)broker->plans);
  } else if ((thirdparty->releases == broker->releases &&
              strcmp(thirdparty->releases_hash, broker->releases_hash) != 0) ||
             (thirdparty->plans == broker->plans && strcmp(thirdparty->plans_hash, broker->plans_hash) != 0)) {
    cv_findings_add(
        findings, CV_FINDING_WRONG,
        "one database was changed: copy both, then move the third-party's away; the broker will send its releases "
        "again",
        "campaign %llu: releases or plans with the same numbers differ between broker and third-party", number);
  } else if (thirdparty->releases < broker->releases) {
    cv_findings_add(findings, CV_FINDING_NOTE, "",
                    "campaign %llu: the broker has yet to send %llu releases to the third-party", number,
                    (unsigned long long)(broker->releases - thirdparty->releases));
  }
}

/* Compares the databases of broker and third-party. Needs both stopped: a running party changes its database. */
static void compare_parties(const struct party *broker, const struct party *thirdparty, struct cv_findings *findings) {
  size_t before = findings->count, compared = 0;
  (void)snprintf(findings->party, sizeof(findings->party), "broker and third-party");
  if (broker->is_live || thirdparty->is_live) {
    cv_findings_add(findings, CV_FINDING_NOTE, "stop both, then run this again",
                    "not compared: one of them is running");
    return;
  }
  if (!broker->is_read || !thirdparty->is_read) {
    cv_findings_add(findings, CV_FINDING_NOTE, "fix that problem first",
                    "not compared: one of the databases cannot be read");
    return;
  }
  /* Only campaigns of the third-party count: it may serve other brokers, and may have forgotten old campaigns. */
  for (size_t i = 0; i < thirdparty->campaigns; i++) {
    const struct cv_found_campaign *theirs = &thirdparty->campaign[i], *ours = NULL;
    if (broker->identity.name[0] != '\0' && strcmp(theirs->broker, broker->identity.name) != 0) {
      continue;
    }
    for (size_t j = 0; j < broker->campaigns && ours == NULL; j++) {
      ours = broker->campaign[j].number == theirs->number ? &broker->campaign[j] : NULL;
    }
    if (ours == NULL && theirs->number <= broker->gone) {
      continue;
    }
    compare_campaign(ours, theirs, findings);
    compared++;
  }
  if (findings->count == before) {
    cv_findings_add(findings, CV_FINDING_OK, "", "agree about %zu campaigns", compared);
  }
}

/* ---- the command ---- */

struct parties {
  struct party party[CONFIGS_MAX];
  size_t n;
};

static void add_config(struct parties *parties, const char *folder, const char *name) {
  if (parties->n < CONFIGS_MAX) {
    (void)snprintf(parties->party[parties->n++].config, sizeof(parties->party[0].config), "%s%s%s", folder,
                   folder[0] == '\0' ? "" : "/", name);
  }
}

/* Returns true for the configuration files that `crowdveil up` writes. */
static bool ends_in_yaml(const struct dirent *entry) {
  static const char *const parties[] = {"broker", "cobroker", "thirdparty", "gateway", "worker"};
  const char *dot = strrchr(entry->d_name, '.');
  bool known = false;
  for (size_t i = 0; i < CV_COUNT(parties); i++) {
    known = known || strncmp(entry->d_name, parties[i], strlen(parties[i])) == 0;
  }
  return dot != NULL && strcmp(dot, ".yaml") == 0 && known;
}

static int filter(const struct dirent *entry) {
  return ends_in_yaml(entry) ? 1 : 0;
}

/* Adds a configuration file, or all configuration files in the folder of a deployment. */
static enum cv_err add_word(struct parties *parties, const char *word, struct cv_why *why) {
  struct stat info;
  if (stat(word, &info) != 0) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "%s: %s", word, strerror(errno));
  }
  if (!S_ISDIR(info.st_mode)) {
    add_config(parties, "", word);
    return CV_OK;
  }
  struct dirent **entry = NULL;
  int n = scandir(word, &entry, filter, alphasort);
  for (int i = 0; i < n; i++) {
    add_config(parties, word, entry[i]->d_name);
    free(entry[i]);
  }
  free(entry);
  return n > 0
             ? CV_OK
             : cv_fail(
                   why, CV_ERR_NOT_FOUND,
                   "%s: the folder has no broker.yaml, cobroker.yaml, thirdparty.yaml, gateway-*.yaml or worker-*.yaml",
                   word);
}

static const struct party *party_of(const struct parties *parties, enum cv_role role) {
  for (size_t i = 0; i < parties->n; i++) {
    if (parties->party[i].role == role) {
      return &parties->party[i];
    }
  }
  return NULL;
}

static void compare_pins(const struct parties *parties, struct cv_findings *findings) {
  struct cv_pinned pinned[CONFIGS_MAX];
  for (size_t i = 0; i < parties->n; i++) {
    const struct party *party = &parties->party[i];
    const char *base = strrchr(party->config, '/');
    pinned[i] = (struct cv_pinned){
        .pins = &party->pins, .file = base == NULL ? party->config : base + 1, .identity = party->identity};
  }
  cv_pins_compare(pinned, parties->n, findings);
}

static int examine_all(const struct settings *settings, struct parties *parties, struct cv_findings *findings) {
  struct cv_why why;
  for (size_t i = 0; i < parties->n; i++) {
    enum cv_err err = examine_party(&parties->party[i], findings, &why);
    if (err != CV_OK) {
      return cv_command_fail(&table, cv_config_exit_status(err), "%s", why.text);
    }
  }
  const struct party *broker = party_of(parties, CV_ROLE_BROKER), *thirdparty = party_of(parties, CV_ROLE_THIRDPARTY);
  if (broker != NULL && thirdparty != NULL) {
    compare_parties(broker, thirdparty, findings);
  }
  compare_pins(parties, findings);
  /* All findings are printed at the end, grouped by party. */
  size_t bad = cv_findings_bad(findings);
  cv_findings_print(findings, settings->json);
  if (!settings->json) {
    (void)printf(bad == 0 ? "no problems found\n" : bad == 1 ? "1 problem found\n" : "%zu problems found\n", bad);
  }
  return bad == 0 ? 0 : 1;
}

int cv_launcher_doctor(int argc, char **argv) {
  static struct parties parties;
  struct settings settings = {0};
  struct cv_findings findings = {.count = 0};
  const char *words[CV_WORDS_MAX] = {0};
  struct cv_why why;
  int status = cv_command_options(&table, argc, argv, 1, CV_WORDS_MAX, words, &settings);
  for (size_t i = 0; status < 0 && i < CV_WORDS_MAX && words[i] != NULL; i++) {
    if (add_word(&parties, words[i], &why) != CV_OK) {
      status = cv_command_fail(&table, 2, "%s", why.text);
    }
  }
  if (status < 0) {
    status = examine_all(&settings, &parties, &findings);
  }
  for (size_t i = 0; i < parties.n; i++) {
    party_fini(&parties.party[i]);
  }
  cv_findings_fini(&findings);
  cv_config_fini(&table, &settings);
  return status;
}
