/* SPDX-License-Identifier: Apache-2.0 */
/* A connection of the broker's core: the fields that every role has, and a pointer to those of its own role. */
#ifndef CV_BROKER_CONN_H
#define CV_BROKER_CONN_H

#include <stdbool.h>

#include "common/net/identity.h"
#include "proto/codec/frame.h"

struct cv_broker_conn {
  struct cv_broker_conn *next, *prev; /* all connections */
  struct cv_identity identity;
  char who[CV_NAME_BYTES + 16]; /* "gateway/1-9" */
  void *shell;
  bool greeted, hello_sent, close_due;
  bool held; /* back-pressure: messages that can wait are withheld */
  char goodbye[CV_WHY_BYTES];
  /* The state of its role; owned. The others are NULL. */
  struct cv_broker_workers *workers; /* of a worker or gateway */
  struct cv_broker_requester *requester;
  struct cv_broker_thirdparty *thirdparty;
  struct cv_broker_cobroker *cobroker;
};

#endif
