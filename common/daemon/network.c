/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/network.h"

#include "common/base/address.h"
#include "common/base/log.h"

static struct cv_tls_files tls_files(const struct cv_network *network) {
  return (struct cv_tls_files)CV_CHANNEL_FILES(&network->config->settings->channel);
}

/* Tries the daemon's roles until one matches the certificate; after a failure `why` has the reason for the last
 * role. */
static enum cv_err tls_new(const struct cv_network *network, struct cv_tls_peers peers, bool server,
                           struct cv_tls **ret, struct cv_why *why) {
  const struct cv_tls_files files = tls_files(network);
  enum cv_err err = CV_ERR_DENIED;
  for (enum cv_role role = CV_ROLE_NONE; role < CV_ROLE_COUNT && err != CV_OK; role++) {
    /* A worker's program accepts a worker's and a gateway's certificate; the certificate decides which it is. */
    if ((network->config->roles & 1U << role) != 0) {
      err = cv_tls_new(&files, role, peers, server, ret, why);
    }
  }
  return err;
}

static enum cv_err check_is_here(const char *addresses, struct cv_why *why) {
  struct cv_addresses found = {.count = 0};
  if (addresses != NULL && addresses[0] != '/') {
    CV_TRY(cv_addresses_parse(addresses, &found, why));
  }
  for (size_t i = 0; i < found.count; i++) {
    if (!cv_address_is_loopback(&found.address[i])) {
      return cv_fail(why, CV_ERR_INVALID,
                     "unsafe_clock with the address %s; expected loopback addresses only: whoever writes the clock "
                     "decides about every time limit",
                     found.text[i]);
    }
  }
  return CV_OK;
}

enum cv_err cv_network_check_clock(const struct cv_daemon_config *config, struct cv_why *why) {
  const char *path = config->settings->unsafe_clock;
  if (path == NULL) {
    return CV_OK;
  }
  CV_TRY(check_is_here(config->listen, why));
  CV_TRY(check_is_here(config->page != NULL ? config->page->listen : NULL, why));
  for (size_t i = 0; i < CV_DAEMON_DIALS; i++) {
    CV_TRY(check_is_here(config->dial[i].address, why));
  }
  for (size_t i = 0; i < CV_DAEMON_SERVERS; i++) {
    CV_TRY(check_is_here(config->dials[i], why));
  }
  cv_log(CV_LOG_WARN, "UNSAFE: the time is what %s says; whoever writes it decides about every time limit", path);
  return CV_OK;
}

enum cv_err cv_network_load(struct cv_network *network, struct cv_why *why) {
  const struct cv_daemon_config *config = network->config;
  if (config->listen != NULL) {
    CV_TRY(tls_new(network, config->from, true, &network->server, why));
  }
  for (size_t i = 0; i < CV_DAEMON_DIALS; i++) {
    if (config->dial[i].address != NULL) {
      CV_TRY(tls_new(network, config->dial[i].to, false, &network->dial[i].tls, why));
    }
  }
  return CV_OK;
}

const struct cv_tls *cv_network_own(const struct cv_network *network) {
  const struct cv_tls *tls = network->server;
  for (size_t i = 0; i < CV_DAEMON_DIALS && tls == NULL; i++) {
    tls = network->dial[i].tls;
  }
  return tls;
}

unsigned cv_network_dialled(const struct cv_daemon_config *config) {
  unsigned roles = 0;
  for (size_t i = 0; i < CV_DAEMON_DIALS; i++) {
    roles |= config->dial[i].address == NULL ? 0 : config->dial[i].to.roles;
  }
  return roles;
}

static struct cv_net_limits limits_of(const struct cv_network *network) {
  struct cv_net_limits limits = network->config->limits;
  limits.silence_ms = (unsigned)network->config->settings->channel.silence_ms;
  return limits;
}

enum cv_err cv_network_bind(struct cv_network *network, uv_loop_t *loop, struct cv_lane *newcomer, struct cv_why *why) {
  const struct cv_net_limits limits = limits_of(network);
  return network->config->listen == NULL
             ? CV_OK
             : cv_listener_bind(loop, network->config->listen, network->server, &CV_LANES_PEER_OPS, newcomer, &limits,
                                &network->listener, why);
}

static enum cv_err check_address(const struct cv_daemon_dial *dial, struct cv_why *why) {
  struct cv_address only;
  return dial->may_be_several ? CV_OK : cv_address_parse(dial->address, &only, why);
}

enum cv_err cv_network_open(struct cv_network *network, uv_loop_t *loop, struct cv_lane *newcomer,
                            cv_network_failed_fn *const failed[CV_DAEMON_DIALS], struct cv_rng *rng,
                            struct cv_why *why) {
  const struct cv_daemon_config *config = network->config;
  const struct cv_net_limits limits = limits_of(network);
  if (network->listener != NULL) {
    CV_TRY(cv_listener_listen(network->listener, why));
  }
  for (size_t i = 0; i < CV_DAEMON_DIALS; i++) {
    if (config->dial[i].address != NULL) {
      CV_TRY(check_address(&config->dial[i], why));
      CV_TRY(cv_dialer_start(loop, config->dial[i].address, network->dial[i].tls, &CV_LANES_PEER_OPS, newcomer,
                             failed[i], &limits, cv_rng_u64(rng), &network->dial[i].dialer, why));
    }
  }
  return CV_OK;
}

void cv_network_stop(struct cv_network *network) {
  cv_listener_stop(network->listener);
  for (size_t i = 0; i < CV_DAEMON_DIALS; i++) {
    cv_dialer_stop(network->dial[i].dialer);
  }
}

void cv_network_fini(struct cv_network *network) {
  cv_tls_unref(network->server);
  for (size_t i = 0; i < CV_DAEMON_DIALS; i++) {
    cv_tls_unref(network->dial[i].tls);
  }
}

/* ---- new files ---- */

static enum cv_err renew(const struct cv_network *network, const struct cv_tls *old, struct cv_tls **ret,
                         struct cv_why *why) {
  const struct cv_tls_files files = tls_files(network);
  return old == NULL ? CV_OK : cv_tls_renew(old, &files, ret, why);
}

enum cv_err cv_network_renew(const struct cv_network *network, struct cv_network_renewed *ret, struct cv_why *why) {
  struct cv_network_renewed made = {0};
  enum cv_err err = renew(network, network->server, &made.server, why);
  for (size_t i = 0; i < CV_DAEMON_DIALS && err == CV_OK; i++) {
    err = renew(network, network->dial[i].tls, &made.client[i], why);
  }
  if (err == CV_OK) {
    *ret = made;
    return CV_OK;
  }
  cv_tls_unref(made.server);
  for (size_t i = 0; i < CV_DAEMON_DIALS; i++) {
    cv_tls_unref(made.client[i]);
  }
  return err;
}

const struct cv_tls *cv_network_renewed_own(const struct cv_network_renewed *renewed) {
  const struct cv_tls *tls = renewed->server;
  for (size_t i = 0; i < CV_DAEMON_DIALS && tls == NULL; i++) {
    tls = renewed->client[i];
  }
  return tls;
}

static void replace(struct cv_tls **tls, struct cv_tls *by) {
  cv_tls_unref(*tls);
  *tls = by;
}

void cv_network_use(struct cv_network *network, const struct cv_network_renewed *renewed) {
  if (renewed->server != NULL) {
    cv_listener_set_tls(network->listener, renewed->server);
    replace(&network->server, renewed->server);
  }
  for (size_t i = 0; i < CV_DAEMON_DIALS; i++) {
    if (renewed->client[i] != NULL) {
      if (network->dial[i].dialer != NULL) {
        cv_dialer_set_tls(network->dial[i].dialer, renewed->client[i]);
      }
      replace(&network->dial[i].tls, renewed->client[i]);
    }
  }
}
