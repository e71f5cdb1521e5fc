/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/parties.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fingerprint.h"
#include "common/base/grid.h"
#include "common/base/local.h"
#include "common/net/certificate.h"
#include "deploy/launcher/pki/files.h"
#include "deploy/launcher/pki/pki.h"

/* Nobody renews certificates during a run, and no campaign may run longer than a year. */
enum { DAY_S = 86400, CA_VALID_S = CV_PKI_CA_DAYS * DAY_S, VALID_S = 366 * DAY_S, SOCKET_BYTES = 100 };
/* The largest that a configuration may permit. */
enum { EPSILON_MOST = 4000 };
static const uint64_t TOKENS_MOST = 1000000000000;

/* ---- certificates ---- */

struct range {
  uint64_t first, last;
};

/* The worker ids of program `number`. The first gateways take one more worker each if the division has a remainder. */
static struct range share_of(const struct cv_parties *parties, uint32_t number) {
  uint64_t shared = parties->workers - parties->alone;
  if (number > parties->gateways) {
    uint64_t id = parties->before + shared + (number - parties->gateways);
    return (struct range){id, id};
  }
  uint64_t each = shared / parties->gateways, more = shared % parties->gateways;
  uint64_t before = (number - 1) * each + (number - 1 < more ? number - 1 : more);
  before += parties->before;
  return (struct range){before + 1, before + each + (number - 1 < more)};
}

/* With the separator of a certificate name ("worker/1000") or of a folder ("gateway-1-500"). */
static struct cv_parties_label identity_of(const struct cv_parties *parties, uint32_t number, char separator) {
  struct range range = share_of(parties, number);
  struct cv_parties_label name;
  if (number > parties->gateways) {
    (void)snprintf(name.text, sizeof(name.text), "worker%c%" PRIu64, separator, range.first);
  } else {
    (void)snprintf(name.text, sizeof(name.text), "gateway%c%" PRIu64 "-%" PRIu64, separator, range.first, range.last);
  }
  return name;
}

struct cv_parties_label cv_parties_name(const struct cv_parties *parties, uint32_t number) {
  struct cv_parties_label name;
  if (number > parties->gateways) {
    return identity_of(parties, number, '-');
  }
  (void)snprintf(name.text, sizeof(name.text), "gateway-%u", number);
  return name;
}

/* `dialled`: the party accepts connections, so its certificate needs host names. */
static enum cv_err issue(const struct cv_parties *parties, const char *identity, bool dialled, struct cv_why *why) {
  static const char *const hosts[] = {"localhost", "127.0.0.1"};
  const struct cv_pki_request request = {
      .identity = identity, .hosts = hosts, .hosts_n = dialled ? CV_COUNT(hosts) : 0, .valid_s = VALID_S};
  char name[128];
  int role = (int)strcspn(identity, "/");
  (void)snprintf(name, sizeof(name), "tls/%.*s-%s", role, identity, identity + role + 1);
  return cv_pki_issue(cv_folder_file(parties->folder, "pki"), cv_folder_file(parties->folder, name), &request, NULL,
                      why);
}

enum cv_err cv_parties_make(const struct cv_parties *parties, struct cv_why *why) {
  static const char *const folders[] = {"broker", "thirdparty", "anchor",          "keys",         "tls",
                                        "rows",   "cobroker",   "cobroker-anchor", "cobroker-keys"};
  for (size_t i = 0; i < CV_COUNT(folders) - (parties->is_two ? 0 : 3); i++) {
    CV_TRY(cv_folder_add(parties->folder, folders[i], why));
  }
  CV_TRY(cv_pki_make_ca(cv_folder_file(parties->folder, "pki"), "Crowdveil on this machine", CA_VALID_S, why));
  CV_TRY(issue(parties, "thirdparty/" CV_PARTIES_THIRDPARTY, true, why));
  CV_TRY(issue(parties, "broker/" CV_PARTIES_BROKER, true, why));
  if (parties->is_two) {
    CV_TRY(issue(parties, "cobroker/" CV_PARTIES_COBROKER, true, why));
  }
  CV_TRY(issue(parties, "requester/" CV_PARTIES_REQUESTER, false, why));
  for (uint32_t i = 1; i <= parties->gateways + parties->alone; i++) {
    CV_TRY(issue(parties, identity_of(parties, i, '/').text, false, why));
  }
  return CV_OK;
}

void cv_parties_files(const struct cv_parties *parties, const char *party, struct cv_parties_paths *ret) {
  char name[192];
  (void)snprintf(name, sizeof(name), "tls/%s/ca.pem", party);
  (void)snprintf(ret->ca, sizeof(ret->ca), "%s", cv_folder_file(parties->folder, name));
  (void)snprintf(name, sizeof(name), "tls/%s/crl.pem", party);
  (void)snprintf(ret->crl, sizeof(ret->crl), "%s", cv_folder_file(parties->folder, name));
  (void)snprintf(name, sizeof(name), "tls/%s/%s.pem", party, party);
  (void)snprintf(ret->cert, sizeof(ret->cert), "%s", cv_folder_file(parties->folder, name));
  (void)snprintf(name, sizeof(name), "tls/%s/%s.key", party, party);
  (void)snprintf(ret->key, sizeof(ret->key), "%s", cv_folder_file(parties->folder, name));
}

/* ---- configurations: written as JSON, which is YAML and quoted by jansson ---- */

static json_t *tls_of(const struct cv_parties *parties, const char *party) {
  struct cv_parties_paths files;
  cv_parties_files(parties, party, &files);
  return json_pack("{s:s, s:s, s:s, s:s}", "ca", files.ca, "cert", files.cert, "key", files.key, "crl", files.crl);
}

/* The fingerprint of a party's key, as its certificate says. */
static enum cv_err fingerprint_of(const struct cv_parties *parties, const char *party, struct cv_fingerprint *ret,
                                  struct cv_why *why) {
  struct cv_parties_paths files;
  struct cv_identity identity;
  X509 *cert = NULL;
  cv_parties_files(parties, party, &files);
  enum cv_err err = cv_pki_read_cert(files.cert, &cert, why);
  if (err == CV_OK) {
    err = cert != NULL ? cv_certificate_identity(cert, &identity, why)
                       : cv_fail(why, CV_ERR_NOT_FOUND, "%s: No such file", files.cert);
  }
  X509_free(cert);
  if (err == CV_OK) {
    *ret = cv_fingerprint_of(&identity.key);
  }
  return err;
}

static void put_path(const struct cv_parties *parties, json_t *config, const char *key, const char *name) {
  (void)json_object_set_new(config, key, json_string(cv_folder_file(parties->folder, name)));
}

/* Sets the admin socket, unless its path is too long for a Unix socket. */
static void put_socket(const struct cv_parties *parties, json_t *config, const char *name) {
  if (strlen(cv_folder_file(parties->folder, name)) < SOCKET_BYTES) {
    put_path(parties, config, "admin", name);
  }
}

enum cv_err cv_parties_socket(const struct cv_parties *parties, const char *name, char *to, size_t size,
                              struct cv_why *why) {
  const char *path = cv_folder_file(parties->folder, name);
  if (strlen(path) >= SOCKET_BYTES || strlen(path) >= size) {
    return cv_fail(why, CV_ERR_LIMIT,
                   "--page: %s is too long for a Unix socket; expected a --state with a shorter path", path);
  }
  (void)snprintf(to, size, "%s", path);
  return CV_OK;
}

/* Sets the limit of delta if the campaign's privatizer has one. */
static void put_delta(json_t *limits, const struct cv_spec *spec) {
  const struct cv_param *delta = cv_params_find(&spec->privatizer.params, "delta");
  if (delta != NULL && !delta->is_text) {
    (void)json_object_set_new(limits, "delta", json_real(delta->number));
  }
}

static enum cv_err write_config(const struct cv_parties *parties, const char *name, json_t *config,
                                struct cv_why *why) {
  char *text = json_dumps(config, JSON_INDENT(2));
  json_decref(config);
  if (text == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s: %s", name, cv_err_text(CV_ERR_NOMEM));
  }
  enum cv_err err = cv_folder_write(cv_folder_file(parties->folder, name), text, why);
  free(text);
  return err;
}

enum cv_err cv_parties_write_thirdparty(const struct cv_parties *parties, struct cv_why *why) {
  json_t *config = json_pack("{s:s, s:s, s:o}", "listen", "127.0.0.1:0", "brokers", CV_PARTIES_BROKER, "tls",
                             tls_of(parties, "thirdparty-main"));
  put_path(parties, config, "state", "thirdparty");
  (void)json_object_set_new(config, "limits", json_pack("{s:i}", "arms", CV_ARMS_MAX));
  put_socket(parties, config, "thirdparty/thirdparty.sock");
  return write_config(parties, "thirdparty.yaml", config, why);
}

/* As an epsilon of a configuration. */
static double epsilon_of(uint64_t micro) {
  const double at = (double)micro / (double)CV_MICRO;
  return at < 1e-6 ? 1e-6 : at < EPSILON_MOST ? at : EPSILON_MOST;
}

/* What a broker and a co-broker have in common: the limits, their own files, and what only tests ask for. */
static void put_risks(json_t *config, const struct cv_launcher_risks *risks) {
  /* A mechanism that exceeds its epsilon is charged more than that. */
  uint64_t token = risks->mechanisms ? UINT64_MAX : risks->token_micro;
  json_t *limits =
      json_pack("{s:i, s:f, s:f, s:I, s:I, s:i}", "arms", CV_ARMS_MAX, "epsilon", epsilon_of(token), "worker_epsilon",
                epsilon_of(cv_spec_worker_micro(risks->spec, token)), "release_tokens",
                (json_int_t)cv_spec_release_tokens(risks->spec), "tokens",
                (json_int_t)(risks->spec->tokens < TOKENS_MOST ? risks->spec->tokens : TOKENS_MOST), "chunks", 65536);
  put_delta(limits, risks->spec);
  (void)json_object_set_new(config, "limits", limits);
  if (risks->noise_seed != NULL) {
    (void)json_object_set_new(config, "unsafe_noise_seeded", json_true());
    (void)json_object_set_new(config, "unsafe_noise_seed", json_integer((json_int_t)*risks->noise_seed));
  }
  if (risks->mechanisms) {
    (void)json_object_set_new(config, "unsafe_mechanisms", json_true());
  }
}

enum cv_err cv_parties_write_broker(const struct cv_parties *parties, const char *thirdparty, const char *cobroker,
                                    const struct cv_launcher_risks *risks, struct cv_why *why) {
  struct cv_fingerprint key = {""};
  if (cobroker != NULL) {
    CV_TRY(fingerprint_of(parties, "cobroker-" CV_PARTIES_COBROKER, &key, why));
  }
  json_t *config = json_pack("{s:s, s:s, s:s, s:o}", "listen", "127.0.0.1:0", "thirdparty", thirdparty,
                             "thirdparty_name", CV_PARTIES_THIRDPARTY, "tls", tls_of(parties, "broker-main"));
  put_path(parties, config, "state", "broker");
  put_path(parties, config, "anchor", "anchor/broker");
  put_path(parties, config, "seal_key", "keys/seal");
  put_socket(parties, config, "broker/broker.sock");
  put_risks(config, risks);
  if (risks->spec->thirdparty_trusted) {
    (void)json_object_set_new(json_object_get(config, "limits"), "trusted_thirdparty", json_true());
  }
  if (cobroker != NULL) {
    (void)json_object_set_new(config, "cobroker", json_string(cobroker));
    (void)json_object_set_new(config, "cobroker_key", json_string(key.text));
  }
  return write_config(parties, "broker.yaml", config, why);
}

enum cv_err cv_parties_write_cobroker(const struct cv_parties *parties, const struct cv_launcher_risks *risks,
                                      struct cv_why *why) {
  struct cv_fingerprint key;
  CV_TRY(fingerprint_of(parties, "broker-" CV_PARTIES_BROKER, &key, why));
  json_t *config = json_pack("{s:s, s:s, s:s, s:o}", "listen", "127.0.0.1:0", "broker_name", CV_PARTIES_BROKER,
                             "broker_key", key.text, "tls", tls_of(parties, "cobroker-" CV_PARTIES_COBROKER));
  put_path(parties, config, "state", "cobroker");
  put_path(parties, config, "anchor", "cobroker-anchor/cobroker");
  put_path(parties, config, "seal_key", "cobroker-keys/seal");
  put_socket(parties, config, "cobroker/cobroker.sock");
  put_risks(config, risks);
  return write_config(parties, "cobroker.yaml", config, why);
}

/* The co-broker's address, and the pair of brokers that this worker accepts. */
static enum cv_err put_pair(const struct cv_parties *parties, const char *cobroker, json_t *config, json_t *accept,
                            struct cv_why *why) {
  struct cv_fingerprint first, second;
  char pair[2 * CV_FINGERPRINT_DIGITS + 2];
  CV_TRY(fingerprint_of(parties, "broker-" CV_PARTIES_BROKER, &first, why));
  CV_TRY(fingerprint_of(parties, "cobroker-" CV_PARTIES_COBROKER, &second, why));
  (void)snprintf(pair, sizeof(pair), "%s+%s", first.text, second.text);
  (void)json_object_set_new(config, "cobroker", json_string(cobroker));
  (void)json_object_set_new(accept, "pairs", json_string(pair));
  return CV_OK;
}

/* The larger epsilon of the privatizer and the mechanism: a worker compares both. */
static uint64_t asked_micro(const struct cv_spec *spec) {
  struct cv_local law;
  bool is_local = cv_local_init(&spec->privatizer, spec->arms, &law, NULL) == CV_OK &&
                  law.epsilon_micro != CV_EPSILON_NONE && law.epsilon_micro > spec->epsilon_micro;
  return is_local ? law.epsilon_micro : spec->epsilon_micro;
}

enum cv_err cv_parties_write_worker(const struct cv_parties *parties, uint32_t number,
                                    const struct cv_launcher_work *work, struct cv_why *why) {
  struct cv_parties_label name = cv_parties_name(parties, number);
  char file[64];
  /* The worker accepts exactly the privatizer and mechanism of this campaign. It gives nothing to another one, and to
   * this one what tokens_per_worker says, so that it needs no record of its own. */
  json_t *accept = json_pack("{s:s, s:s, s:f, s:i}", "privatizers", work->spec->privatizer.name, "mechanisms",
                             work->spec->mechanism.name, "epsilon",
                             epsilon_of(asked_micro(work->spec) + work->beside_micro), "tokens", 0);
  put_delta(accept, work->spec);
  json_t *config = json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "broker", work->broker, "broker_name", CV_PARTIES_BROKER,
                             "campaign", work->campaign, "requesters", CV_PARTIES_REQUESTER, "tls",
                             tls_of(parties, identity_of(parties, number, '-').text), "accept", accept);
  if (work->seed != NULL) {
    (void)json_object_set_new(config, "seed", json_integer((json_int_t)*work->seed));
  }
  enum cv_err err = cv_folder_add(parties->folder, name.text, why);
  if (err == CV_OK && work->cobroker != NULL) {
    err = put_pair(parties, work->cobroker, config, accept, why);
  }
  if (err != CV_OK) {
    json_decref(config);
    return err;
  }
  if (work->shares_rows) {
    put_path(parties, config, "row_key", CV_PARTIES_ROW_KEY);
  }
  if (work->is_shown) {
    (void)json_object_set_new(config, "unsafe_show", json_true());
  }
  if (work->remembers) {
    put_path(parties, config, "state", name.text);
  }
  (void)snprintf(file, sizeof(file), "%s/worker.sock", name.text);
  put_socket(parties, config, file);
  (void)snprintf(file, sizeof(file), "%s.yaml", name.text);
  return write_config(parties, file, config, why);
}
