/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lanes: the four urgencies of gradient traffic, and how the marker writes them on packets. */
#ifndef GRADLANE_ABI_LANE_H
#define GRADLANE_ABI_LANE_H

#include "core.h"

#define GL_LANE_VERSION 1

enum gl_lane {
	GL_LANE_URGENT = 0, /* needed first by the next forward pass */
	GL_LANE_HIGH = 1,
	GL_LANE_NORMAL = 2,
	GL_LANE_BULK = 3, /* needed last */
	GL_LANES = 4,
};

/* SO_PRIORITY values that need no privilege are 0..6; 0 means "not tagged". */
#define GL_TAGS 7

/* Settings of the marker; one entry in the array map gl_lane_config, key 0. */
struct gl_lane_config {
	__u8 lane_of_tag[GL_TAGS +
			 1]; /* SO_PRIORITY to lane; GL_LANES: not a tag, default_lane holds */
	__u8 dscp[GL_LANES]; /* six bits, 0..63 */
	__u8 queue_priority[GL_LANES]; /* skb->priority behind the marker: what queues go by */
	__u8 default_lane;	       /* of a job's untagged sockets */
	__u8 mark;		       /* 1: write DSCP and priority; 0: count only */
	__u8 reserved[6];
};
GL_STATIC_ASSERT(sizeof(struct gl_lane_config) == 24, "gl_lane_config is part of the contract");

/* Per-processor counters of the marker, by lane: the map gl_lane_count. */
struct gl_lane_count {
	__u64 packets;	 /* on the wire: segments, not offloaded super-packets */
	__u64 bytes;	 /* on the wire, headers from the link layer on */
	__u64 rewritten; /* packets whose DSCP had to be changed */
};
GL_STATIC_ASSERT(sizeof(struct gl_lane_count) == 24, "gl_lane_count is part of the contract");

#endif
