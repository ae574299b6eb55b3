/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SCC, the congestion control against incast: the receiver counts who is sending to it, grants each
 * sender a share of its link in a TCP option on acknowledgements, and the sender paces to it.
 */
#ifndef GRADLANE_ABI_SCC_H
#define GRADLANE_ABI_SCC_H

#include "core.h"
#include "lane.h"

#ifndef __VMLINUX_H__
#include <linux/bpf.h> /* struct bpf_spin_lock */
#endif

#define GL_SCC_VERSION 1

/* Name of the congestion control in the kernel: TCP_CONGESTION, `ss -i`. */
#define GL_SCC_NAME "gl_scc"

/*
 * The TCP option: experimental kind 254 with an experiment identifier (RFC 6994), "gL".
 * On SYN and SYN-ACK it has GL_OPTION_CAPABLE_LENGTH bytes and means "I read grants"; on pure
 * acknowledgements GL_OPTION_GRANT_LENGTH bytes: kind, length, identifier, rate, restart window,
 * version.
 */
#define GL_OPTION_KIND 254
#define GL_OPTION_ID 0x674c
#define GL_OPTION_CAPABLE_LENGTH 4
#define GL_OPTION_GRANT_LENGTH 8

/* A grant on the wire, behind kind and length; network byte order. */
struct gl_grant_option {
	__u8 kind;
	__u8 length;
	__u16 id;
	__u16 rate;	     /* gl_encode_rate(): 11 bits of mantissa, 5 of exponent, in kB/s */
	__u8 restart_window; /* in quarters of a segment; what may be sent at once after a pause */
	__u8 version;	     /* GL_SCC_VERSION */
};
GL_STATIC_ASSERT(sizeof(struct gl_grant_option) == GL_OPTION_GRANT_LENGTH, "the option is 8 bytes");

/* Settings of an instance for SCC and the socket policy: array map gl_scc_config, key 0. */
struct gl_scc_config {
	__u64 payload_rate;  /* TCP payload that the link can carry, bytes per second; 0: no grants
			      */
	__u32 buffer;	     /* of the switch port towards this host, bytes */
	__u32 round_trip_us; /* inside the data centre, without queues */
	__u32 floor_us;	     /* retransmission floor for near peers; 0: the kernel's */
	__u32 near_us;	     /* peers further away than this are left alone */
	__u32 minimum_share; /* of each lower lane, in 1/1024; used by the strict policy */
	__u8 weight[GL_LANES];	       /* used by the weighted policy */
	__u8 weighted;		       /* 0: strict, 1: weighted */
	__u8 enabled;		       /* 0: sockets keep their congestion control */
	__u8 lane_of_tag[GL_TAGS + 1]; /* which lane a packet leaves in, by SO_PRIORITY */
	__u8 lane_of_dscp[64];	       /* which lane a packet arrived in */
	__u8 reserved[6];
};
GL_STATIC_ASSERT(sizeof(struct gl_scc_config) == 112, "gl_scc_config is part of the contract");

/* Activity is counted in slots of this length; the wheel of GL_WHEEL slots covers 65 ms. */
#define GL_SLOT_NS 512000ULL
#define GL_WHEEL 128

/*
 * Who is sending over this host's link: array map gl_activity, key enum gl_direction. A flow is
 * counted in the slot in which its last payload passed; slots that fall out of a lane's idle time
 * no longer count. So nothing has to be told when a flow ends, and a crash leaves no wrong count.
 */
enum gl_direction {
	GL_ARRIVING = 0,
	GL_LEAVING = 1,
	GL_DIRECTIONS = 2,
};

struct gl_activity {
	struct bpf_spin_lock lock;
	__u32 slot;		      /* the latest slot seen, in GL_SLOT_NS since boot */
	__u32 active[GL_LANES];	      /* senders now */
	__u32 idle_slots[GL_LANES];   /* a flow silent for longer is no sender */
	__u32 pushed_slots[GL_LANES]; /* the same for one that had nothing more to send */
	__u64 grant[GL_LANES];	      /* what each sender of the lane is told, bytes per second */
	__u32 peak;		      /* most senders at once in this period */
	__u32 last_peak[2];	      /* and in the two before */
	__u32 peak_slot;	      /* when this period began */
	__u32 burst;		      /* bursts so far: each begins after silence */
	__u32 burst_flows[GL_LANES];  /* flows that have taken part in this one */
	__u64 burst_bytes[GL_LANES];  /* what they have sent in it */
	__u32 begin_slot;	      /* when it began */
	__u32 join_slot;	      /* when the latest one joined */
	__u32 expected;		      /* senders that were expected at the begin */
	__u32 trim;    /* grants are multiplied by trim / 1024, to use what senders leave unused */
	__u64 arrived; /* payload bytes since trim_ns */
	__u64 trim_ns;
	__u16 count[GL_LANES][GL_WHEEL];
};

/* Flags of a socket. */
enum gl_socket_flag {
	GL_SOCKET_AWARE = 1,   /* the peer reads and writes grants */
	GL_SOCKET_SCC = 2,     /* SCC was set by the socket policy */
	GL_SOCKET_GRANTED = 4, /* a grant has arrived */
};

/* No job lane was looked up yet. */
#define GL_LANE_UNKNOWN 0xff

/* A flow's place in the count of one direction. */
struct gl_place {
	__u32 slot;	  /* in which its last payload counts */
	__u32 lane;	  /* in which that passed */
	__u32 burst;	  /* in which it took part last */
	__u32 burst_lane; /* and its lane then */
	__u64 bytes;	  /* its progress in that */
};

/*
 * What gradlane knows of a job's socket: socket storage gl_socket, one map per kernel. Written by
 * the instance's socket policy, read by the marker and by SCC.
 */
struct gl_socket {
	__u32 flags;   /* enum gl_socket_flag */
	__u8 job_lane; /* of untagged sockets of its job; GL_LANE_UNKNOWN: not yet looked up */
	__u8 restart_window;	 /* last granted by the peer, quarters of a segment */
	__u8 own_restart_window; /* what this host's own link allows, quarters of a segment */
	__u8 window_out;	 /* the restart window last told to the peer */
	struct gl_place place[GL_DIRECTIONS];
	__u64 grant;		  /* last granted by the peer, bytes per second */
	__u64 grant_ns;		  /* when it arrived */
	__u64 own_grant;	  /* the share of this host's own link; 0: not known */
	__u32 queue_tolerance_us; /* queueing delay that does not slow the sender */
	__u32 ack_slack_us; /* acknowledgements may be that late without stopping the sender */
};
GL_STATIC_ASSERT(sizeof(struct gl_socket) == 88, "gl_socket is part of the contract");

#endif
