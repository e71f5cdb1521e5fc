/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must hold. Told what is said and stored, it fails the world at the first thing that does not fit. It knows each
 * place's score, and of persons each row's.
 *
 *   1 A token that was acknowledged is in exactly one epoch's sum, once, whatever crashes. After every batch each open
 *     epoch has as many tokens and the sum that its filled places say, and as many slots are taken as tokens counted;
 *     no place and no slot is acknowledged twice; after every restart what was acknowledged is there; each release is
 *     the sum of its places and its noise. (Places and slots of a campaign that is over are not kept: not checked.)
 *   2 A release that may have left the broker is never drawn again. Each that leaves, is exported or is loaded after a
 *     restart equals the one first stored; the noise of an epoch was stored before its tokens came and stays the same.
 *     A broker put back to an older copy is refused by its anchor; with its anchor put back, too, the third-party's
 *     campaign freezes. (After that nothing else is checked.)
 *   3 The ledger is charged before a release leaves. A release is stored, with what its stream has cost by then, and
 *     the anchor says so durably before it is sent; workers' accounts say at least what was acknowledged and after
 *     restarts and at the end exactly what the accepted tokens cost, within each worker's limit.
 *   4 The third-party applies a release once. It names none before it is stored; at the end its database is replayed
 *     through the policy and gives the same decisions.
 *   5 No ticket, partial sum or plain key material lies on a disk: both disks are searched at losses of power and at
 *     the end for the last tickets and partial sums; no nonce seals twice. (Logs, core dumps and memory: not here.)
 *   6 Every queue is bounded: workers waiting, assignments, requests, places to give again, chunks to write, the
 *     journal in memory, the third-party's backlog, bytes on the wire, events. (Real sockets and real time: not here.)
 *   7 With noise that is a function of the place the end equals the run without faults (oracle.h): plans, releases with
 *     their noisy sums, standings, epsilon spent; ended early, as much of it as there is.
 *   8 Bad input is refused and costs its sender only: frames fuzzed, streams broken, orders for what is another's; an
 *     honest peer is never closed on. (Files, options and certificates: not here.)
 *   9 A recruitment pays for each accepted token of an arm once, its cost, to the arm's worker, who alone gets places
 *     of it; what was paid and what open epochs may still cost is within the budget. So it is on record after every
 *     batch and restart, and so the requester is told. A broker that was put back and recovered gives no more for a
 *     campaign of before; what was acknowledged before and after is within the budget. (With its anchor put back, too,
 *     it may spend again what it has forgotten, and no more than that.)
 *  10 On a feedback graph an assignment shows the arm of its place and those of its neighbours that the plan names,
 *     their sums get a value each, once, as in 1; no other arm is released; the worker pays for each score shown.
 *  11 Who comes through an honest gateway gives no more than its owner permits, whatever is asked and whoever dies: a
 *     score leaves after the gateway has kept that it was given.
 *  12 No two connections of the broker vouch for the same worker, but for an older one of the same certificate, which
 *     goes; who comes later is turned away for that reason alone; nobody is asked for a worker of another's.
 *  13 No epoch is smaller than the operator's smallest release, unless each token is protected by itself, for certain.
 *  14 A gateway's workers give nothing to a campaign of a requester that it does not serve, whatever it is called; and
 *     a third-party hears nothing of a campaign that another one has opened, and what it says of it changes nothing.
 *  15 A campaign that has ended has left memory, and is what it was whenever it is fetched: its record says what its
 *     requester was told, an export has all its releases. One that was purged or forgotten is not there again, nobody
 *     else's goes, its number is given to no other, and what it has cost its workers stays on their accounts.
 *  16 A person gives each of its rows once, ever, whoever dies, for the row's arm and with its score, and after its
 *     gateway has kept that. It comes for an arm that it has a row of, and is dealt that arm or none; where nothing
 *     goes wrong whoever is wanted comes.
 *   D A deadline ends a campaign in time on either clock: within its length of any one uptime however the wall clock
 *     jumps, within its length of wall time if that does not jump; early only after a jump.
 */
#ifndef CV_SIM_TRUTH_H
#define CV_SIM_TRUTH_H

#include "broker/core.h"
#include "tests/sim/thirdparty.h"
#include "tests/sim/world.h"

struct truth *truth_new(struct world *world);
void truth_free(struct truth *truth);

/* The commit that the broker's anchor says, should the power fail now. */
uint64_t truth_anchored(const struct world *world);
/* The broker's core has closed a batch; it is stored and anchored; it has started again from what was stored. */
void truth_flushed(struct truth *truth, struct cv_broker *core);
void truth_stored(struct truth *truth, uint64_t commit);
void truth_restarted(struct truth *truth, struct cv_broker *core);
/* A peer has connected to the broker, or was turned away. */
void truth_joined(struct truth *truth, const struct cv_broker *core, const struct cv_identity *identity, bool joined);
/* The broker has looked at its clocks. */
void truth_ticked(struct truth *truth, const struct cv_broker *core);
/* A value is sealed under this nonce; who is told of those, NULL: nobody. */
void truth_sealed(struct truth *truth, const uint8_t *nonce);
void truth_listen_to_seals(struct truth *truth);
/* Looks on both disks for what must not be there. */
void truth_search(struct truth *truth);
/* Leaves the broker. */
void truth_told_crowd(struct truth *truth, const struct cv_crowd_frame *frame);
void truth_told_rank(struct truth *truth, const struct cv_rank_frame *frame);
/* The same to a third-party of another name; and some campaign that the right one has opened for certain, 0: none. */
void truth_told_impostor(struct truth *truth, const struct cv_rank_frame *frame);
uint64_t truth_opened(const struct truth *truth, uint64_t which);
void truth_thirdparty_lost(struct truth *truth);
/* The broker has made of these tokens what its answers say from number `from` on; it tells them once that is stored. */
void truth_counted(struct truth *truth, const struct cv_crowd_frame *answers, size_t from,
                   const struct cv_token *token);
/* Leaves an honest gateway. */
void truth_gave(struct truth *truth, const struct cv_crowd_frame *frame);
/* A requester asks for its campaign number `owner`, from 1 over all requesters; it is told which one that is. */
void truth_asking(struct truth *truth, uint32_t owner);
void truth_accepted(struct truth *truth, uint32_t owner, uint64_t id);
/* Its requester purges a campaign; is told that it is purged; is told that it was. */
void truth_purging(struct truth *truth, uint64_t id);
void truth_purged(struct truth *truth, uint64_t id);
void truth_gone(struct truth *truth, uint64_t id);
/* Reaches the requester. */
void truth_finished(struct truth *truth, const struct cv_finished *finished);
void truth_exported(struct truth *truth, const struct cv_part *part);

/* Going back: the snapshot's moment, whether enough has happened since, whether the database is behind its anchor. */
void truth_snapshot(struct truth *truth);
bool truth_has_moved(const struct truth *truth);
bool truth_is_behind(const struct truth *truth);
/* Nothing was stored yet, as far as was known: with that copy the database is lost. */
bool truth_snapshot_is_empty(const struct truth *truth);
void truth_rolled_back(struct truth *truth);
/* 3, after a recovery: the ledger covers what was released and given before, though the database has forgotten it. */
void truth_recovered(struct truth *truth, struct cv_broker *core);

/* Everybody has been told the end and it is quiet. */
void truth_end(struct truth *truth);

/* For the one that looks into the tickets that the broker says something about. */
const struct cv_tagger *world_tagger(struct world *world);

#endif
