/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A port of an emulated switch: the classifier of the HTB qdisc that holds the port's lanes. It
 * sees each packet once, below the lock of the queue, before the packet is queued; so it chooses
 * the lane, shares one buffer among the lanes as switches do (dynamic thresholds, with a factor of
 * 1), and sets the ECN mark. Each port has its own instance of this program. */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define LANES 4

#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd

#define TC_ACT_OK 0
#define TC_ACT_SHOT 2

/* The HTB qdisc has the handle MAJOR:0, lane L the class MAJOR:(CLASS + L) and the queue
 * (QUEUE + L):0. */
const volatile __u32 htb_major = 0x10;
const volatile __u32 first_class = 0x10;
const volatile __u32 first_queue_major = 0x20;

/* Lanes that the port has, 1..LANES. Packets of the missing ones share the last. */
const volatile __u32 lanes = LANES;
/* DSCP of each lane but the last, which takes all the rest. */
const volatile __u8 lane_dscp[LANES] = {};
/* Bytes that all lanes together may hold; 0: no limit here, the lanes' own queues have one. */
const volatile __u32 limit_bytes = 0;
/* A lane shares the buffer for so long after a packet has come to it. */
const volatile __u64 active_ns = 0;
/* A packet that finds more bytes than this in its lane leaves with the mark "congestion
 * experienced", if its transport can take it; 0: no marks. */
const volatile __u32 ecn_threshold_bytes = 0;
/* The link is cut without a sign: nothing passes. */
const volatile bool drop_all = false;

/* When a packet came to each lane last. */
__u64 last_arrival_ns[LANES];

/* How full arriving packets find the buffer, in parts of limit_bytes: entry I counts those that
 * find at least I and less than I + 1 parts. */
#define FILLING_PARTS 64
__u64 filling[FILLING_PARTS];
/* Packets that the full buffer dropped, as the frames that they would have been. */
__u64 dropped = 0;

/* Bytes queued in a qdisc of the packet's interface and below it; 0 if it is not there. */
static __u32 queued_bytes(struct __sk_buff *skb, __u32 major)
{
	const __u32 handle = major << 16;
	/* include/linux/hash.h: hash_min() of a table with 2^4 buckets. */
	const __u32 bucket = (handle * 0x61C88647u) >> 28;
	struct net_device *device = NULL;
	struct hlist_node *node;

	/* The context of a tc program is the sk_buff itself; bpf_cast_to_kern_ctx() says so
	 * since 6.2 only. */
	bpf_probe_read_kernel(&device, sizeof(device),
			      (void *)skb + bpf_core_field_offset(struct sk_buff, dev));
	node = BPF_CORE_READ(device, qdisc_hash[bucket].first);
	for (int i = 0; i < 16 && node; i++) {
		struct Qdisc *qdisc = (void *)node - bpf_core_field_offset(struct Qdisc, hash);

		if (BPF_CORE_READ(qdisc, handle) == handle)
			return BPF_CORE_READ(qdisc, qstats.backlog);
		node = BPF_CORE_READ(node, next);
	}
	return 0;
}

/* Enters a packet's arrival; true if no packet came to any other lane lately. */
static bool is_alone(__u32 lane)
{
	const __u64 now = bpf_ktime_get_ns();
	bool alone = true;

	for (__u32 i = 0; i < LANES; i++) {
		if (i == lane)
			last_arrival_ns[i] = now;
		else if (last_arrival_ns[i] && now - last_arrival_ns[i] < active_ns)
			alone = false;
	}
	return alone;
}

static void note_filling(__u32 in_all)
{
	__u32 part = (__u64)in_all * FILLING_PARTS / limit_bytes;

	if (part >= FILLING_PARTS)
		part = FILLING_PARTS - 1;
	/* Told again, for the verifier loses the bound. */
	barrier_var(part);
	filling[part & (FILLING_PARTS - 1)]++;
}

/* Whether the buffer takes a packet. A lane alone may have all of it. Otherwise each lane may hold
 * as much as is free, so that none can keep the others out: of N lanes that want all they can get,
 * each holds 1/(N+1). */
static bool is_admitted(__u32 lane, __u32 length, __u32 in_all, __u32 in_lane)
{
	const __u32 counted = is_alone(lane) ? in_all : in_all + in_lane;

	return counted + length <= limit_bytes;
}

/* The six bits of an IP packet, -1 of any other. */
static int dscp_of(struct __sk_buff *skb)
{
	__u8 head[2];

	if (bpf_skb_load_bytes_relative(skb, 0, head, sizeof(head), BPF_HDR_START_NET))
		return -1;
	if (skb->protocol == bpf_htons(ETH_P_IP))
		return head[1] >> 2;
	if (skb->protocol == bpf_htons(ETH_P_IPV6))
		return ((head[0] & 0xf) << 2) | (head[1] >> 6);
	return -1;
}

static __u32 lane_of(int dscp)
{
	const __u32 last = lanes - 1;

	for (__u32 lane = 0; lane < LANES && lane < last; lane++)
		if (dscp == lane_dscp[lane])
			return lane;
	return last;
}

SEC("tc")
int gl_lab_port(struct __sk_buff *skb)
{
	const int dscp = dscp_of(skb);
	__u32 lane = 0;

	if (drop_all)
		return TC_ACT_SHOT;
	/* What is not IP is ARP here: a few small packets, without which nobody is reachable. They
	 * go first and take no part in the sharing. */
	if (dscp >= 0) {
		lane = lane_of(dscp);
		if (limit_bytes) {
			const __u32 in_all = queued_bytes(skb, htb_major);
			const __u32 in_lane = queued_bytes(skb, first_queue_major + lane);

			note_filling(in_all);
			if (!is_admitted(lane, skb->wire_len, in_all, in_lane)) {
				dropped += skb->gso_segs > 1 ? skb->gso_segs : 1;
				return TC_ACT_SHOT;
			}
			if (ecn_threshold_bytes && in_lane > ecn_threshold_bytes)
				bpf_skb_ecn_set_ce(skb);
		}
	}
	skb->tc_classid = first_class + lane;
	return TC_ACT_OK;
}

char _license[] SEC("license") = "Dual BSD/GPL";
