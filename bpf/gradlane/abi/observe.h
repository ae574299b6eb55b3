/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Named counters: why something fell open, and what was done. Every missing map entry, option or
 * permission that makes gradlane step aside is counted under one of these names.
 */
#ifndef GRADLANE_ABI_OBSERVE_H
#define GRADLANE_ABI_OBSERVE_H

#include "core.h"

#define GL_OBSERVE_VERSION 1

/* X(enumerator, name, meaning); the index is the key in the per-processor array gl_count. */
#define GL_COUNTERS(X)                                                                             \
	X(GL_COUNT_SOCKETS, "sockets", "job sockets that were connected or accepted")              \
	X(GL_COUNT_SCC_ON, "scc_on", "sockets that were given SCC")                                \
	X(GL_COUNT_SCC_PEER_UNAWARE, "scc_peer_unaware",                                           \
	  "sockets left as they are: the peer does not speak SCC's option")                        \
	X(GL_COUNT_SCC_FAR, "scc_far", "sockets left as they are: the peer is too far away")       \
	X(GL_COUNT_SCC_REFUSED, "scc_refused", "the kernel refused to switch a socket to SCC")     \
	X(GL_COUNT_NO_STORAGE, "no_storage", "no memory for a socket's storage")                   \
	X(GL_COUNT_NO_CONFIG, "no_config", "settings were missing; nothing was changed")           \
	X(GL_COUNT_GRANTS_SENT, "grants_sent", "grants written on acknowledgements")               \
	X(GL_COUNT_GRANTS_NO_ROOM, "grants_no_room",                                               \
	  "acknowledgements without a grant: no room among the TCP options")                       \
	X(GL_COUNT_GRANTS_RECEIVED, "grants_received", "grants taken over by senders")             \
	X(GL_COUNT_GRANTS_BAD, "grants_bad", "grants refused: malformed or of another version")    \
	X(GL_COUNT_FLOOR_REFUSED, "floor_refused",                                                 \
	  "the kernel refused the retransmission floor for a socket")                              \
	X(GL_COUNT_PARSE, "parse", "packets left unmarked: headers that could not be parsed")

enum gl_counter {
#define GL_COUNTER_ENUM(id, name, meaning) id,
	GL_COUNTERS(GL_COUNTER_ENUM)
#undef GL_COUNTER_ENUM
	GL_COUNTER_MAX,
};

#endif
