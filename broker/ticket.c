/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/ticket.h"

#include <string.h>

enum { BODY = CV_BROKER_TICKET_BYTES - CV_BROKER_TICKET_TAG };

static uint8_t *put32(uint8_t *at, uint32_t value) {
  for (int i = 0; i < 4; i++) {
    at[i] = (uint8_t)(value >> (8 * i));
  }
  return at + 4;
}

static uint32_t get32(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

#define MASKED (UINT32_C(1) << 31) /* of the number of the campaign */

/* Masks all fields but the campaign, or unmasks them: the tag, which depends on all of them, is the nonce. */
static enum cv_err mask(uint8_t bytes[CV_BROKER_TICKET_BYTES], const struct cv_tagger *tagger) {
  /* Its length is that of no ticket's body. */
  uint8_t nonce[5 + CV_BROKER_TICKET_TAG] = "mask", pad[BODY - 4];
  memcpy(nonce + 5, bytes + BODY, CV_BROKER_TICKET_TAG);
  CV_TRY(tagger->tag(tagger->data, nonce, sizeof(nonce), pad, sizeof(pad)));
  for (size_t i = 0; i < sizeof(pad); i++) {
    bytes[4 + i] ^= pad[i];
  }
  return CV_OK;
}

enum cv_err cv_ticket_seal(const struct cv_ticket *ticket, const struct cv_tagger *tagger,
                           uint8_t ret_bytes[CV_BROKER_TICKET_BYTES]) {
  uint8_t bytes[CV_BROKER_TICKET_BYTES];
  uint8_t *at = bytes;
  at = put32(at, ticket->campaign | (ticket->is_masked ? MASKED : 0));
  at = put32(at, ticket->plan);
  at = put32(at, ticket->item);
  at = put32(at, ticket->position);
  at = put32(at, (uint32_t)ticket->worker);
  at = put32(at, (uint32_t)(ticket->worker >> 32));
  at = put32(at, ticket->slot);
  at = put32(at, ticket->lease);
  at = put32(at, ticket->expiry);
  /* The tag covers all fields, so that no worker can move its token to another place, worker or slot. */
  CV_TRY(tagger->tag(tagger->data, bytes, BODY, at, CV_BROKER_TICKET_TAG));
  if (ticket->is_masked) {
    CV_TRY(mask(bytes, tagger));
  }
  memcpy(ret_bytes, bytes, sizeof(bytes));
  return CV_OK;
}

enum cv_err cv_ticket_open(const uint8_t sealed[CV_BROKER_TICKET_BYTES], const struct cv_tagger *tagger,
                           struct cv_ticket *ret) {
  uint8_t bytes[CV_BROKER_TICKET_BYTES], tag[CV_BROKER_TICKET_TAG];
  memcpy(bytes, sealed, sizeof(bytes));
  uint32_t campaign = get32(bytes);
  if ((campaign & MASKED) != 0) {
    CV_TRY(mask(bytes, tagger));
  }
  CV_TRY(tagger->tag(tagger->data, bytes, BODY, tag, sizeof(tag)));
  uint8_t differs = 0;
  /* No early exit: the time of the comparison must not reveal how many bytes of the tag are right. */
  for (size_t i = 0; i < sizeof(tag); i++) {
    differs |= (uint8_t)(tag[i] ^ bytes[BODY + i]);
  }
  if (differs != 0) {
    return CV_ERR_DENIED;
  }
  *ret = (struct cv_ticket){
      .campaign = campaign & ~MASKED,
      .plan = get32(bytes + 4),
      .item = get32(bytes + 8),
      .position = get32(bytes + 12),
      .worker = get32(bytes + 16) | (uint64_t)get32(bytes + 20) << 32,
      .slot = get32(bytes + 24),
      .lease = get32(bytes + 28),
      .expiry = get32(bytes + 32),
      .is_masked = (campaign & MASKED) != 0,
  };
  return CV_OK;
}
